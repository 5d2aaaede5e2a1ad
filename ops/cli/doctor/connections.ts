import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { type Finding, found, reasonOf } from '../../../api/services/operator/doctor/checks.ts';
import { isDoneWithin } from '../../../shared/clock.ts';
import type { Config } from '../../../shared/config/config.ts';
import { connectionUrl } from '../../../shared/config/environment.ts';
import { listenerName } from '../../../shared/db/listener.ts';

const name = 'connections';

type ConnectionConfig = Pick<
  Config,
  | 'databaseUrl'
  | 'databaseReadUrl'
  | 'databaseDirectUrl'
  | 'pooler'
  | 'connections'
  | 'dispatcherThreads'
>;

/**
 * Returns the number of connections to the primary that one api and one dispatcher may open with
 * these variables.
 */
export function connectionsOf({
  connections: of,
  dispatcherThreads,
  databaseUrl,
  databaseReadUrl,
}: ConnectionConfig) {
  const scans = databaseReadUrl === databaseUrl ? of.scans : 0;
  // The express thread is not included in DISPATCHER_THREADS. One more connection listens for
  // notifications.
  const threads = (dispatcherThreads + 1) * of.thread;
  return {
    api: of.calls + of.admission + of.saves + of.queries + 1,
    dispatcher: of.dispatcher + of.small + scans + threads + 1,
  };
}

/**
 * Checks whether DATABASE_URL and DATABASE_DIRECT_URL connect through a pooler. Checks that the
 * connections of the running processes fit into `max_connections`.
 */
export async function checkConnections(config: ConnectionConfig): Promise<Finding[]> {
  const isPooled = await withClient(config.databaseUrl, hasPooler);
  const isDirectPooled = await withClient(config.databaseDirectUrl, hasPooler);
  const findings = poolerFindings(config, { isPooled, isDirectPooled });
  const state = await withClient(config.databaseDirectUrl, readConnections);
  return [...findings, ...(isPooled ? [pooledSum(state)] : [checkSum(config, state)])];
}

function poolerFindings(
  { pooler }: ConnectionConfig,
  { isPooled, isDirectPooled }: { isPooled: boolean; isDirectPooled: boolean },
): Finding[] {
  if (isDirectPooled) return [found({ name: 'pooler', status: 'fail', code: 'poolerDirect' })];
  if (isPooled && pooler === 'none')
    return [found({ name: 'pooler', status: 'warn', code: 'poolerUnset' })];
  if (!isPooled && pooler === 'transaction')
    return [found({ name: 'pooler', status: 'warn', code: 'poolerNeedless' })];
  return isPooled ? [found({ name: 'pooler', status: 'ok', code: 'poolerFine' })] : [];
}

/**
 * Checks that a pooler at DATABASE_URL supports prepared statements. Prepares a statement and runs
 * it again while another client occupies the connection on which it was prepared.
 */
export async function checkStatements({
  databaseUrl,
  pooler,
}: ConnectionConfig): Promise<Finding[]> {
  if (pooler === 'transaction' || !(await withClient(databaseUrl, hasPooler))) return [];
  const statement = { name: 'carillon_doctor', text: 'SELECT 1' };
  const isSupported = await withClient(databaseUrl, async (own) => {
    await own.query(statement);
    return withClient(databaseUrl, async (other) => {
      await other.query('BEGIN');
      await other.query('SELECT 1');
      const kept = await own.query(statement).then(
        () => true,
        () => false,
      );
      await other.query('ROLLBACK');
      return kept;
    });
  });
  return [
    isSupported
      ? found({ name: 'statements', status: 'ok', code: 'statementsFine' })
      : found({ name: 'statements', status: 'fail', code: 'statementsLost' }),
  ];
}

interface ConnectionState {
  max: number;
  used: number;
  apis: number;
  dispatchers: number;
}

function checkSum(
  config: ConnectionConfig,
  { max, used, apis, dispatchers }: ConnectionState,
): Finding {
  const each = connectionsOf(config);
  // Counts a process that does not run yet as one process.
  const counts = { api: Math.max(apis, 1), dispatcher: Math.max(dispatchers, 1) };
  const sum = counts.api * each.api + counts.dispatcher * each.dispatcher;
  const parts = `${counts.api} api × ${each.api} + ${counts.dispatcher} dispatcher × ${each.dispatcher} = ${sum}`;
  const params = { parts, max, used };
  return sum <= max
    ? found({ name, status: 'ok', code: 'connectionsFine', params })
    : found({ name, status: 'warn', code: 'connectionsMany', params });
}

const pooledSum = ({ max, used }: ConnectionState): Finding =>
  used <= max * 0.9
    ? found({ name, status: 'ok', code: 'pooledFine', params: { used, max } })
    : found({ name, status: 'warn', code: 'pooledMany', params: { used, max } });

/**
 * True if the server process differs from the one that was announced to the client. A pooler
 * announces its own ids.
 */
async function hasPooler(client: pg.Client): Promise<boolean> {
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  return !('processID' in client) || client.processID !== rows[0]?.pid;
}

async function readConnections(client: pg.Client): Promise<ConnectionState> {
  const { rows } = await client.query<ConnectionState>(
    `SELECT current_setting('max_connections')::int -
      current_setting('superuser_reserved_connections')::int AS max,
            count(*)::int AS used,
            count(*) FILTER (WHERE application_name = $1
            AND datname = current_database())::int AS apis,
            count(*) FILTER (WHERE application_name = $2
            AND datname = current_database())::int AS dispatchers
       FROM pg_stat_activity WHERE backend_type = 'client backend'`,
    [listenerName('api'), listenerName('dispatcher')],
  );
  return rows[0] ?? { max: 0, used: 0, apis: 0, dispatchers: 0 };
}

/** Maximum delay of a notification. It usually arrives within a few milliseconds. */
const notifyTimeoutMs = 3000;

/**
 * Checks that a notification sent through DATABASE_URL arrives at a connection of
 * DATABASE_DIRECT_URL.
 */
export async function checkNotifications(
  { databaseUrl, databaseDirectUrl }: Pick<Config, 'databaseUrl' | 'databaseDirectUrl'>,
  timeoutMs = notifyTimeoutMs,
): Promise<Finding> {
  const channel = `carillon_doctor_${randomUUID()}`;
  const subject = 'notifications';
  try {
    const hasArrived = await withClient(databaseDirectUrl, async (listening) => {
      const arrived = new Promise<void>((resolve) =>
        listening.once('notification', () => resolve()),
      );
      await listening.query(`LISTEN ${pg.escapeIdentifier(channel)}`);
      await withClient(databaseUrl, (client) =>
        client.query('SELECT pg_notify($1, $2)', [channel, '']),
      );
      return isDoneWithin(arrived, timeoutMs);
    });
    return hasArrived
      ? found({ name: subject, status: 'ok', code: 'notificationsFine' })
      : found({
          name: subject,
          status: 'fail',
          code: 'notificationsLate',
          params: { ms: timeoutMs },
        });
  } catch (error) {
    const params = { why: reasonOf(error) };
    return found({ name: subject, status: 'fail', code: 'notificationsUntried', params });
  }
}

async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({
    connectionString: connectionUrl(url),
    application_name: 'carillon doctor',
    connectionTimeoutMillis: 5000,
  });
  client.on('error', () => undefined);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
