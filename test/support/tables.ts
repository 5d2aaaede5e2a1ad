/**
 * Reads and changes rows of devices, pushes, batches, jobs, users and messages for tests. Only this
 * file contains column names, so a renamed column changes one file.
 */
import { randomBytes } from 'node:crypto';
import type { Handle } from '../../shared/db/pool.ts';
import { query } from '../../shared/db/query.ts';
import type { App } from '../../shared/domain/apps/app.ts';

/** App whose rows are selected. */
type OfApp = Pick<App, 'appId'>;

/** Table, with the column for each member of a row. */
interface Table<Row> {
  readonly name: string;
  readonly columns: Readonly<Record<keyof Row & string, string>>;
}

/** Row of an installation. */
export interface Device {
  readonly id: number;
  readonly objectId: string;
  readonly deviceType: string;
  readonly deviceToken: string | null;
  readonly deviceProfile: string;
  readonly installationId: string | null;
  readonly registrationId: string | null;
  readonly vendor: string | null;
  readonly vendorName: string | null;
  readonly topic: string | null;
  readonly teamId: string | null;
  readonly timeZone: string | null;
  readonly badge: number;
  readonly channels: readonly string[];
  readonly fields: Readonly<Record<string, unknown>>;
  readonly valid: boolean;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  readonly importedAt: Date | null;
}

const installation: Table<Device> = {
  name: 'installation',
  columns: {
    id: 'id',
    objectId: 'object_id',
    deviceType: 'device_type',
    deviceToken: 'device_token',
    deviceProfile: 'device_profile',
    installationId: 'installation_id',
    registrationId: 'registration_id',
    vendor: 'vendor',
    vendorName: 'vendor_name',
    topic: 'topic',
    teamId: 'team_id',
    timeZone: 'time_zone',
    badge: 'badge',
    channels: 'channels',
    fields: 'fields',
    valid: 'valid',
    createdAt: 'created_at',
    updatedAt: 'updated_at',
    importedAt: 'imported_at',
  },
};

/** Row of a push. Its record is derived from this row. */
export interface Push {
  readonly id: number;
  readonly objectId: string;
  readonly state: string;
  readonly error: string | null;
  readonly devices: number | null;
  readonly isPlanned: boolean;
  readonly isPlanHeld: boolean;
  readonly acked: number;
  readonly quietWaits: number;
  readonly totals: unknown;
  readonly recurringId: number | null;
  readonly expiresAt: Date;
  readonly finishedAt: Date | null;
}

const notification: Table<Push> = {
  name: 'notification',
  columns: {
    id: 'id',
    objectId: 'object_id',
    state: 'state',
    error: 'error',
    devices: 'devices',
    isPlanned: 'is_planned',
    isPlanHeld: 'is_plan_held',
    acked: 'acked',
    quietWaits: 'quiet_waits',
    totals: 'totals',
    recurringId: 'recurring_id',
    expiresAt: 'expires_at',
    finishedAt: 'finished_at',
  },
};

/** Row of a batch. */
export interface Batch {
  readonly id: number;
  readonly pushId: number;
  /** Ids of devices. */
  readonly recipients: readonly number[];
  readonly attempt: number;
  readonly tries: number;
  readonly isHeld: boolean;
  readonly isSettled: boolean;
  readonly hasJob: boolean;
  readonly language: string | null;
  readonly quiet: string | null;
  readonly quietUntil: Date | null;
  readonly notBefore: Date | null;
  readonly totals: unknown;
}

const pushBatch: Table<Batch> = {
  name: 'push_batch',
  columns: {
    id: 'id',
    pushId: 'push_id',
    recipients: 'recipients',
    attempt: 'attempt',
    tries: 'tries',
    isHeld: 'is_held',
    isSettled: 'is_settled',
    hasJob: 'has_job',
    language: 'language',
    quiet: 'quiet',
    quietUntil: 'quiet_until',
    notBefore: 'not_before',
    totals: 'totals',
  },
};

/** Row of a user. */
export interface User {
  readonly id: number;
  readonly objectId: string;
  readonly passwordHash: string | null;
  readonly emailVerified: boolean;
  readonly mobilePhoneVerified: boolean;
}

const appUser: Table<User> = {
  name: 'app_user',
  columns: {
    id: 'id',
    objectId: 'object_id',
    passwordHash: 'password_hash',
    emailVerified: 'email_verified',
    mobilePhoneVerified: 'mobile_phone_verified',
  },
};

/** Row of a message: a mail or an SMS. */
export interface Message {
  readonly id: number;
  readonly state: string;
  readonly reason: string | null;
  readonly attempts: number;
  readonly recipient: string;
}

const outbox: Table<Message> = {
  name: 'outbox',
  columns: {
    id: 'id',
    state: 'state',
    reason: 'reason',
    attempts: 'attempts',
    recipient: 'recipient',
  },
};

/** Reads the devices of an app in the order of their creation. */
export const readDevices = (db: Handle, app: OfApp): Promise<Device[]> =>
  readRows(db, installation, app);

/** Finds the device of an app with these values. Fails if there is none. */
export const findDevice = (db: Handle, app: OfApp, wanted: Partial<Device>): Promise<Device> =>
  findRow(db, installation, app, wanted);

/**
 * Adds devices to an app. Missing ids are random. All devices must have the same members. Returns
 * the internal ids.
 */
export function insertDevices(
  db: Handle,
  app: OfApp,
  devices: readonly Partial<Device>[],
): Promise<number[]> {
  const rows = devices.map((device) => {
    const all = { objectId: randomBytes(12).toString('hex'), ...device };
    const named = membersOf(installation, all).map(({ column, value }) => [column, value]);
    return { app_id: app.appId, ...Object.fromEntries(named) };
  });
  const columns = Object.keys(rows[0] ?? { app_id: '' }).join(', ');
  return query(db).column<number>(
    `INSERT INTO installation (${columns})
     SELECT ${columns} FROM jsonb_populate_recordset(NULL::installation, $1::jsonb) RETURNING id`,
    [JSON.stringify(rows)],
  );
}

/**
 * Changes members of an app's devices. If tokens are given, only of the devices with these tokens.
 */
export const changeDevices = (
  db: Handle,
  app: OfApp,
  changes: Partial<Device>,
  tokens?: readonly string[],
): Promise<number> =>
  changeRows(db, installation, changes, {
    condition: `app_id = $1${tokens === undefined ? '' : ' AND device_token = ANY ($2)'}`,
    values: [app.appId, ...(tokens === undefined ? [] : [tokens])],
  });

/** Changes members of an app's devices that have these values. */
export function changeDevicesWith(
  db: Handle,
  app: OfApp,
  wanted: Partial<Device>,
  changes: Partial<Device>,
): Promise<number> {
  const { condition, values } = conditionOf(installation, app, wanted);
  return changeRows(db, installation, changes, { condition, values });
}

/** Reads the pushes of an app in the order of acceptance. */
export const readPushes = (db: Handle, app: OfApp): Promise<Push[]> =>
  readRows(db, notification, app);

/** Reads a push of an app. Fails if it does not exist. */
export const readPush = (db: Handle, app: OfApp, objectId: string): Promise<Push> =>
  findRow(db, notification, app, { objectId });

/** Changes members of a push. Without an id, changes all pushes of the app. */
export const changePush = (
  db: Handle,
  app: OfApp,
  changes: Partial<Push>,
  objectId?: string,
): Promise<number> =>
  changeRows(db, notification, changes, {
    condition: `app_id = $1${objectId === undefined ? '' : ' AND object_id = $2'}`,
    values: [app.appId, ...(objectId === undefined ? [] : [objectId])],
  });

/** Makes the scheduled pushes of an app start now. */
export async function startScheduledPushes(db: Handle, app: OfApp): Promise<void> {
  await db.query('UPDATE scheduled_push SET push_time = now() WHERE app_id = $1', [app.appId]);
}

/** Reads the batches of an app in the order of planning. */
export const readBatches = (db: Handle, app: OfApp): Promise<Batch[]> =>
  readRows(db, pushBatch, app);

/**
 * Changes members of an app's batches. If an attempt is given, only of the batches at this attempt.
 */
export const changeBatches = (
  db: Handle,
  app: OfApp,
  changes: Partial<Batch>,
  attempt?: number,
): Promise<number> =>
  changeRows(db, pushBatch, changes, {
    condition: `app_id = $1${attempt === undefined ? '' : ' AND attempt = $2'}`,
    values: [app.appId, ...(attempt === undefined ? [] : [attempt])],
  });

/** Failure of a push for a device. */
export interface Failure {
  readonly device: Pick<Device, 'id' | 'objectId'>;
  readonly outcome: string;
  readonly status: number;
  readonly reason: string;
  readonly isUnsure: boolean;
  readonly createdAt: Date;
}

const pushFailure: Table<Omit<Failure, 'device'>> = {
  name: 'push_failure',
  columns: {
    outcome: 'outcome',
    status: 'status',
    reason: 'reason',
    isUnsure: 'is_unsure',
    createdAt: 'created_at',
  },
};

/** Ends a push with APNs failures, as a dispatcher does. */
export async function endWithFailures(
  db: Handle,
  app: OfApp,
  objectId: string,
  failures: readonly Omit<Failure, 'isUnsure' | 'createdAt'>[],
): Promise<void> {
  const perOutcome: Record<string, number> = {};
  for (const { outcome } of failures) perOutcome[outcome] = (perOutcome[outcome] ?? 0) + 1;
  await changePush(
    db,
    app,
    { state: 'done', finishedAt: new Date(), totals: { apns: perOutcome } },
    objectId,
  );
  const { id } = await readPush(db, app, objectId);
  for (const { device, outcome, status, reason } of failures)
    await db.query(
      `INSERT INTO push_failure (app_id, push_id, installation, object_id, connector, outcome,
        status, reason)
       VALUES ($1, $2, $3, $4, 'apns', $5, $6, $7)`,
      [app.appId, id, device.id, device.objectId, outcome, status, reason],
    );
}

/** Changes members of an app's failures for the devices with these tokens. */
export const changeFailures = (
  db: Handle,
  app: OfApp,
  changes: Partial<Omit<Failure, 'device'>>,
  tokens: readonly string[],
): Promise<number> =>
  changeRows(db, pushFailure, changes, {
    condition: `app_id = $1
      AND installation IN (SELECT id FROM installation WHERE app_id = $1
        AND device_token = ANY ($2))`,
    values: [app.appId, tokens],
  });

/** Usage of an app on a day. */
interface Usage {
  readonly calls?: number;
  readonly peakCallsPerMinute?: number;
  readonly recipients?: number;
}

/** Writes the usage of an app on a day (`YYYY-MM-DD`). The default is today in UTC. */
export async function insertUsage(
  db: Handle,
  app: OfApp,
  { calls = 0, peakCallsPerMinute = 0, recipients = 0 }: Usage,
  day = new Date().toISOString().slice(0, 'YYYY-MM-DD'.length),
): Promise<void> {
  await db.query(
    `INSERT INTO usage_day (app_id, day, calls, peak_calls_per_minute, recipients)
     VALUES ($1, $2, $3, $4, $5)`,
    [app.appId, day, calls, peakCallsPerMinute, recipients],
  );
}

/** Counts the jobs of an app. The queue is a LIKE pattern. */
export const countJobs = (
  db: Handle,
  app: OfApp,
  { queue = '%', state = '%' }: { queue?: string; state?: string } = {},
): Promise<number> =>
  query(db).number(
    `SELECT count(*) FROM pgboss.job WHERE data ->> 'appId' = $1 AND name LIKE $2
      AND state::text LIKE $3`,
    [app.appId, queue, state],
  );

/** Counts the due and running jobs of an app. */
export const countDueJobs = (db: Handle, app: OfApp): Promise<number> =>
  query(db).number(
    `SELECT count(*) FROM pgboss.job
      WHERE data ->> 'appId' = $1 AND (state = 'active' OR state IN ('created', 'retry')
        AND start_after <= now())`,
    [app.appId],
  );

/** Makes the postponed jobs of an app start now. */
export async function startJobs(db: Handle, app: OfApp): Promise<void> {
  await db.query(
    `UPDATE pgboss.job SET start_after = now() WHERE data ->> 'appId' = $1 AND state = 'created'`,
    [app.appId],
  );
}

/** Reads a user of an app. Fails if it does not exist. */
export const readUser = (db: Handle, app: OfApp, objectId: string): Promise<User> =>
  findRow(db, appUser, app, { objectId });

/** Changes members of a user of an app. */
export const changeUser = (
  db: Handle,
  app: OfApp,
  changes: Partial<User>,
  objectId: string,
): Promise<number> =>
  changeRows(db, appUser, changes, {
    condition: 'app_id = $1 AND object_id = $2',
    values: [app.appId, objectId],
  });

/** Changes members of all messages of an app. */
export const changeMessages = (
  db: Handle,
  app: OfApp,
  changes: Partial<Message>,
): Promise<number> =>
  changeRows(db, outbox, changes, { condition: 'app_id = $1', values: [app.appId] });

/** Makes the dispatchers read the states of gateway accounts now. */
export async function requestAccountRead(db: Handle): Promise<void> {
  await db.query('UPDATE shared_reading SET accounts_next_at = now()');
}

/** Counts the sessions of devices on the device channel. */
export const countSessions = (db: Handle, devices: readonly number[]): Promise<number> =>
  query(db).number('SELECT count(*) FROM channel_session WHERE installation = ANY ($1)', [devices]);

/** Table whose rows belong to apps. */
type AppTable = 'app_user' | 'channel_inbox' | 'installation' | 'notification';

/** Counts the rows of a table that belong to an app. */
export const countRows = (db: Handle, table: AppTable, app: OfApp): Promise<number> =>
  query(db).number(`SELECT count(*) FROM ${table} WHERE app_id = $1`, [app.appId]);

/** Deletes the rows of a table that belong to an app. */
export async function deleteRows(db: Handle, table: AppTable, app: OfApp): Promise<void> {
  await db.query(`DELETE FROM ${table} WHERE app_id = $1`, [app.appId]);
}

/** Returns a time in the past. */
export const daysAgo = (days: number): Date => new Date(Date.now() - days * 24 * 60 * 60 * 1000);

function readRows<Row extends object>(
  db: Handle,
  table: Table<Row>,
  { appId }: OfApp,
): Promise<Row[]> {
  return query(db).rows<Row>(`${selectOf(table)} WHERE app_id = $1 ORDER BY id`, [appId]);
}

function findRow<Row extends object>(
  db: Handle,
  table: Table<Row>,
  app: OfApp,
  wanted: Partial<Row>,
): Promise<Row> {
  const { condition, values } = conditionOf(table, app, wanted);
  return query(db).one<Row>(`${selectOf(table)} WHERE ${condition} ORDER BY id LIMIT 1`, values);
}

/** Returns the SQL condition for rows of an app that have these values. */
function conditionOf<Row>(table: Table<Row>, { appId }: OfApp, wanted: Partial<Row>) {
  const members = membersOf(table, wanted);
  return {
    condition: ['app_id = $1', ...members.map(({ column }, i) => `${column} = $${i + 2}`)].join(
      ' AND ',
    ),
    values: [appId, ...members.map(({ value }) => value)],
  };
}

function changeRows<Row>(
  db: Handle,
  table: Table<Row>,
  changes: Partial<Row>,
  { condition, values }: { condition: string; values: unknown[] },
): Promise<number> {
  const members = membersOf(table, changes);
  const assignments = members.map(({ column }, i) => `${column} = $${values.length + i + 1}`);
  return query(db).rowCount(
    `UPDATE ${table.name} SET ${assignments.join(', ')} WHERE ${condition}`,
    [...values, ...members.map(({ value }) => value)],
  );
}

/** Returns the given members of a row with their columns. */
function membersOf<Row>(
  { columns }: Table<Row>,
  row: Partial<Row>,
): { column: string; value: unknown }[] {
  const values = new Map<string, unknown>(Object.entries(row));
  return Object.entries<string>(columns).flatMap(([member, column]) =>
    values.has(member) ? [{ column, value: values.get(member) }] : [],
  );
}

const selectOf = <Row>({ name, columns }: Table<Row>): string =>
  `SELECT ${Object.entries<string>(columns)
    .map(([member, column]) => `${column} AS "${member}"`)
    .join(', ')} FROM ${name}`;
