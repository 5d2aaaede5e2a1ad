import { inspectCredentials } from '../../../../connectors/registry.ts';
import { dayMs } from '../../../../shared/clock.ts';
import type { Vault } from '../../../../shared/crypto.ts';
import { isStatementTimeout } from '../../../../shared/db/limits/database-errors.ts';
import type { Database, Handle } from '../../../../shared/db/pool.ts';
import { findApp, listAppIds, listApps, listFreezes } from '../../../../shared/db/tables/apps.ts';
import { listGatewayFailures } from '../../../../shared/db/tables/gateways.ts';
import { listKeptTokens } from '../../../../shared/db/tables/invalid-tokens.ts';
import {
  listProcesses,
  listReports,
  processGoneMs,
  type ReportedProcess,
  type SeenProcess,
} from '../../../../shared/db/tables/processes.ts';
import { listProfiles, listRotations, openProfile } from '../../../../shared/db/tables/profiles.ts';
import { findRestoration } from '../../../../shared/db/tables/restorations.ts';
import { listWaitingApprovals } from '../../../../shared/db/tables/scheduled-pushes.ts';
import {
  countSealedSoon,
  findSecretRotation,
  listKeyMismatches,
  oldValues,
} from '../../../../shared/db/tables/secrets.ts';
import { listPlatforms } from '../../../../shared/db/tables/users.ts';
import { listTroubled } from '../../../../shared/db/tables/webhooks.ts';
import { addressesIn } from '../../../../shared/domain/addresses.ts';
import { hasAnswered } from '../../../../shared/domain/breaker.ts';
import { isJsonObject } from '../../../../shared/domain/json.ts';
import { displayName, isConnectorId } from '../../../../shared/domain/labels.ts';
import { type ReasonCode, readReason, reasonAs } from '../../../../shared/domain/reasons.ts';
import type { Code } from '../../../../shared/domain/texts/catalogue.ts';
import { replyText, type TextParams, writeFinding } from '../../../../shared/domain/texts/texts.ts';
import { anonymous } from '../../../../shared/domain/users/auth-data.ts';
import { isAlwaysChecked } from '../../../../shared/domain/users/auth-platforms.ts';
import { serviceOwner } from '../../../../shared/domain/webhooks/endpoint.ts';
import { isRefusedUrl } from '../../../../shared/http/outbound-addresses.ts';

/** Code of a finding. */
type FindingCode = Code<'doctor'>;

/** Result of one check. */
export interface Finding {
  name: string;
  status: 'ok' | 'warn' | 'fail';
  /** Current state. */
  detail: string;
  /** Action to take. Empty if the check succeeded. */
  advice: string;
  /** Code and parameters of the text. */
  code: FindingCode;
  params: TextParams;
}

interface CodedFinding {
  name: string;
  status: Finding['status'];
  code: FindingCode;
  params?: TextParams;
}

/** Returns a finding with its text in English. */
export const found = ({ name, status, code, params = {} }: CodedFinding): Finding => ({
  name,
  status,
  ...writeFinding({ code, params }, 'en'),
  code,
  params,
});

/** Returns a finding in the form of documents. */
export const shownFinding = (finding: Finding) => ({ ...finding, ...replyText(finding) });

/**
 * Returns the message of the innermost error, which has the most detail (for example, a refused
 * connection).
 */
export function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return reasonOf(error.errors[0]);
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? reasonOf(error.cause) : error.message;
}

/**
 * Clock differences above which the doctor warns. Gateway tokens and scheduled pushes depend on the
 * time. A clock can appear late if the database wrote its row late, so `maxBehindMs` is larger.
 */
const maxAheadMs = 1000;
const maxBehindMs = 10_000;
/**
 * Minimum number of files that a process should be able to open, and the share of the limit that it
 * may use.
 */
const minFiles = 4096;
const fullShare = 0.8;
/**
 * Seconds after the last success of a background job after which the job is late. The scheduler
 * runs at least twice a second.
 */
const lateAfter = 1800;
const schedulerLateAfter = 60;

/**
 * Checks the running processes: versions, clocks, open files, and the background jobs of the
 * dispatchers.
 */
export async function checkProcesses(db: Handle): Promise<Finding[]> {
  const processes = await listProcesses(db, processGoneMs);
  const reports = await listReports(db, processGoneMs);
  return [
    ...checkNumbers(processes),
    ...reports.flatMap(checkClock),
    ...checkFiles(reports),
    ...checkBackgroundJobs(reports),
  ];
}

/** Checks that a dispatcher runs and that all processes have the same version. */
function checkNumbers(processes: readonly SeenProcess[]): Finding[] {
  const versions = [...new Set(processes.map(({ version }) => version))];
  const ofKind = (kind: SeenProcess['kind']) => processes.filter((one) => one.kind === kind).length;
  const params = { apis: ofKind('api'), dispatchers: ofKind('dispatcher') };
  const name = 'processes';
  const finding =
    params.dispatchers === 0
      ? found({ name, status: 'fail', code: 'noDispatcher', params })
      : found({ name, status: 'ok', code: 'processes', params });
  if (versions.length <= 1) return [finding];
  const several = { versions: versions.join(', ') };
  return [
    finding,
    found({ name: 'versions', status: 'warn', code: 'severalVersions', params: several }),
  ];
}

function checkClock({ kind, host, pid, clockAheadMs }: ReportedProcess): Finding[] {
  if (clockAheadMs <= maxAheadMs && clockAheadMs >= -maxBehindMs) return [];
  const params = { kind, host, pid, seconds: (clockAheadMs / 1000).toFixed(1) };
  return [found({ name: 'process clocks', status: 'warn', code: 'processClock', params })];
}

function checkFiles(reports: readonly ReportedProcess[]): Finding[] {
  const name = 'open files';
  const scarce = reports.flatMap(({ kind, host, pid, connections, report: { maxFiles } }) => {
    if (maxFiles === null || (maxFiles >= minFiles && connections < maxFiles * fullShare))
      return [];
    const params = { kind, host, pid, max: maxFiles, used: connections };
    return [found({ name, status: 'warn', code: 'filesScarce', params })];
  });
  if (scarce.length > 0 || reports.length === 0) return scarce;
  return [found({ name, status: 'ok', code: 'filesFine' })];
}

/** Checks when each background job last succeeded in any dispatcher. */
function checkBackgroundJobs(reports: readonly ReportedProcess[]): Finding[] {
  const name = 'duties';
  const ages = new Map<string, number>();
  for (const { report, ageSeconds } of reports)
    for (const [duty, seconds] of Object.entries(report.duties))
      ages.set(duty, Math.min(ages.get(duty) ?? Number.POSITIVE_INFINITY, seconds + ageSeconds));
  const late = [...ages].flatMap(([duty, seconds]) => {
    const isScheduler = duty === 'scheduler';
    if (seconds <= (isScheduler ? schedulerLateAfter : lateAfter)) return [];
    const params = { duty, minutes: Math.round(seconds / 60) };
    return [found({ name, status: isScheduler ? 'fail' : 'warn', code: 'dutyStands', params })];
  });
  if (late.length > 0 || ages.size === 0) return late;
  return [found({ name, status: 'ok', code: 'dutiesFine', params: { duties: ages.size } })];
}

/** Limits of a well-maintained database. Tests use smaller limits. */
const defaultLimits = {
  /**
   * Number of dead rows above which a table is reported, if they are more than half of its live
   * rows.
   */
  deadRows: 1_000_000,
  /** Age of a transaction above which it is reported. */
  transactionSeconds: 3600,
  /** Bytes of WAL that an unread replication slot may keep. */
  slotBytes: 1e9,
  /**
   * Number of transactions since the oldest frozen transaction. Autovacuum starts at 200 million.
   * PostgreSQL stops at 2,147 million.
   */
  warnTransactions: 1e9,
  failTransactions: 1.6e9,
};

type UpkeepLimits = typeof defaultLimits;

/** Schemas of Carillon's tables. The queue's tables have their own schema. */
const ownSchemas = `(current_schema(), 'pgboss')`;
/** Maximum number of tables in a finding. */
const maxNamed = 5;

/**
 * Checks conditions that make a database grow or stop: autovacuum, old transactions, unread
 * replication slots, transaction ids.
 */
export async function checkUpkeep(
  db: Handle,
  limits: Partial<UpkeepLimits> = {},
): Promise<Finding[]> {
  const all = { ...defaultLimits, ...limits };
  return [
    ...(await checkAutovacuum(db, all)),
    ...(await checkTransactions(db, all)),
    ...(await checkSlots(db, all)),
    await checkWraparound(db, all),
  ];
}

async function checkAutovacuum(db: Handle, { deadRows }: UpkeepLimits): Promise<Finding[]> {
  const name = 'autovacuum';
  const { rows } = await db.query<{ isOn: boolean; off: string[] }>(
    `SELECT current_setting('autovacuum')::boolean AS "isOn",
            ARRAY(SELECT c.oid::regclass::text FROM pg_class c
                   WHERE c.relnamespace::regnamespace::text IN ${ownSchemas}
                     AND c.reloptions && '{autovacuum_enabled=false,autovacuum_enabled=off}'
                       ORDER BY 1) AS off`,
  );
  const { isOn = true, off = [] } = rows[0] ?? {};
  const { rows: full } = await db.query<{ table: string; dead: number; live: number }>(
    `SELECT relname AS table, n_dead_tup AS dead, n_live_tup AS live FROM pg_stat_user_tables
      WHERE schemaname IN ${ownSchemas} AND n_dead_tup > $1 AND n_dead_tup > n_live_tup / 2
      ORDER BY n_dead_tup DESC LIMIT ${maxNamed}`,
    [deadRows],
  );
  const findings = full.map((params) =>
    found({ name, status: 'warn', code: 'deadRows', params: { ...params } }),
  );
  if (!isOn) findings.push(found({ name, status: 'fail', code: 'autovacuumOff' }));
  const tables = off.slice(0, maxNamed).join(', ');
  if (off.length > 0)
    findings.push(found({ name, status: 'warn', code: 'autovacuumOffFor', params: { tables } }));
  return findings.length > 0 ? findings : [found({ name, status: 'ok', code: 'autovacuumFine' })];
}

async function checkTransactions(
  db: Handle,
  { transactionSeconds }: UpkeepLimits,
): Promise<Finding[]> {
  const name = 'transactions';
  const { rows } = await db.query<{ pid: number; application: string; minutes: number }>(
    `SELECT pid, application_name AS application,
      round(extract(epoch FROM now() - xact_start) / 60)::int AS minutes
       FROM pg_stat_activity
      WHERE datname = current_database() AND pid <> pg_backend_pid()
        AND backend_type = 'client backend'
        AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)
        AND xact_start < now() - $1 * interval '1 second'
      ORDER BY xact_start LIMIT ${maxNamed}`,
    [transactionSeconds],
  );
  if (rows.length === 0) return [found({ name, status: 'ok', code: 'snapshotsFine' })];
  return rows.map((row) =>
    found({ name, status: 'warn', code: 'oldSnapshot', params: { ...row } }),
  );
}

async function checkSlots(db: Handle, { slotBytes }: UpkeepLimits): Promise<Finding[]> {
  const { rows } = await db.query<{ slot: string; megabytes: number }>(
    `SELECT slot, round(bytes / 1e6)::int AS megabytes FROM (
       SELECT slot_name AS slot, pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn) AS bytes
         FROM pg_replication_slots WHERE NOT active AND NOT pg_is_in_recovery()) AS s
      WHERE bytes > $1 ORDER BY bytes DESC LIMIT ${maxNamed}`,
    [slotBytes],
  );
  return rows.map((row) =>
    found({ name: 'replication slots', status: 'warn', code: 'idleSlot', params: { ...row } }),
  );
}

async function checkWraparound(db: Handle, limits: UpkeepLimits): Promise<Finding> {
  const { rows } = await db.query<{ age: number }>(
    `SELECT greatest(age(datfrozenxid), mxid_age(datminmxid))::float8 AS age
       FROM pg_database WHERE datname = current_database()`,
  );
  const age = rows[0]?.age ?? 0;
  const name = 'wraparound';
  const params = { millions: Math.round(age / 1e6) };
  if (age <= limits.warnTransactions)
    return found({ name, status: 'ok', code: 'wraparoundFar', params });
  const status = age > limits.failTransactions ? 'fail' : 'warn';
  return found({ name, status, code: 'wraparoundNear', params });
}

/** Reports pushes that a restore has paused. */
export async function checkRestoration(db: Handle): Promise<Finding[]> {
  const restoration = await findRestoration(db);
  if (!restoration || restoration.paused === 0) return [];
  const { asOf, paused } = restoration;
  return [
    found({
      name: 'restore',
      status: 'warn',
      code: 'restored',
      params: { asOf: asOf.toISOString(), paused },
    }),
  ];
}

/** Maximum number of freezes that are reported. */
const maxFreezes = 20;

/**
 * Reports whether the whole service or apps are frozen. Their pushes wait until somebody releases
 * them.
 */
export async function checkFreezes(db: Handle): Promise<Finding[]> {
  const freezes = await listFreezes(db);
  return freezes.slice(0, maxFreezes).map(({ appId, since, reason, by }) =>
    found({
      name: 'freeze',
      status: 'warn',
      code: appId === null ? 'serviceFrozen' : 'appFrozen',
      params: { app: appId ?? '', since: since.toISOString(), by, reason: reason || '-' },
    }),
  );
}

/** Maximum number of apps that are reported. */
const maxApprovals = 20;

/**
 * Reports apps with pushes that wait for the approval of a second person. Such pushes can expire.
 */
export async function checkApprovals(db: Handle): Promise<Finding[]> {
  const waiting = await listWaitingApprovals(db, maxApprovals);
  return waiting.map(({ appId, pushes, since }) =>
    found({
      name: 'approval',
      status: 'warn',
      code: 'approvalsWait',
      params: { app: appId, n: pushes, since: since.toISOString() },
    }),
  );
}

/** Time before the end of a certificate from which the doctor warns. Renewal is manual work. */
const warnBeforeMs = 30 * dayMs;

interface CheckContext {
  db: Handle;
  vault: Vault;
  nowMs: number;
  /** Maximum number of apps to check, oldest first. All apps if absent. */
  maxApps?: number;
}

/**
 * Decrypts every app and profile with CARILLON_SECRET and checks their credentials and server
 * addresses.
 */
export async function checkCredentials(context: CheckContext): Promise<Finding[]> {
  const secretFindings: Finding[] = [];
  const credentialFindings: Finding[] = [];
  let apps = 0;
  let profiles = 0;
  for (const appId of (await listAppIds(context.db)).slice(0, context.maxApps)) {
    apps += 1;
    const secretFailure = await tryOpen('sealedApp', { app: appId }, async () => {
      const app = await findApp(context.db, context.vault, appId);
      credentialFindings.push(...privateAddresses({ app: appId }, app?.options ?? {}));
    });
    if (secretFailure) secretFindings.push(secretFailure);
    for (const { connector, name } of await listProfiles(context.db, appId)) {
      profiles += 1;
      const id = { appId, connector, name };
      const openFailure = await tryOpen('sealedProfile', paramsOf(id), async () =>
        credentialFindings.push(...(await inspect(context, id))),
      );
      if (openFailure) secretFindings.push(openFailure);
    }
  }
  return [
    ...(secretFindings.length > 0
      ? secretFindings
      : [
          found({ name: 'secrets', status: 'ok', code: 'secretsOpen', params: { apps, profiles } }),
        ]),
    ...(credentialFindings.length > 0
      ? credentialFindings
      : [
          found({
            name: 'credentials',
            status: 'ok',
            code: 'credentialsFine',
            params: { profiles },
          }),
        ]),
  ];
}

interface ProfileId {
  appId: string;
  connector: string;
  name: string;
}

const paramsOf = ({ appId, connector, name }: ProfileId) => ({
  app: appId,
  connector,
  profile: name,
});

/** Decrypts a value. Returns a finding if this fails. */
async function tryOpen(
  code: 'sealedApp' | 'sealedProfile',
  params: TextParams,
  open: () => Promise<unknown>,
): Promise<Finding | undefined> {
  try {
    await open();
    return undefined;
  } catch (error) {
    return found({
      name: 'secrets',
      status: 'fail',
      code,
      params: { ...params, why: reasonOf(error) },
    });
  }
}

/** Returns the reason text for a certificate that ends soon. */
function endOf(expiresAtMs: number): string {
  const day = new Date(expiresAtMs).toISOString().slice(0, 10);
  return reasonAs(`A certificate ends on ${day}.`, 'certificateEnds', { day });
}

async function inspect({ db, vault, nowMs }: CheckContext, id: ProfileId): Promise<Finding[]> {
  const profile = await openProfile(db, vault, id);
  if (!profile) return [];
  if (!isConnectorId(id.connector))
    return [
      found({
        name: 'credentials',
        status: 'warn',
        code: 'unknownConnector',
        params: paramsOf(id),
      }),
    ];
  const report = inspectCredentials(id.connector, profile.credentials, nowMs);
  const isEnded = report.expiresAtMs !== null && report.expiresAtMs <= nowMs;
  const isEnding = report.expiresAtMs !== null && report.expiresAtMs - nowMs < warnBeforeMs;
  const problems =
    report.problems.length === 0 && isEnding
      ? [endOf(report.expiresAtMs ?? nowMs)]
      : report.problems;
  const status = isEnded || report.kind === 'invalid' ? 'fail' : 'warn';
  const params = { ...paramsOf(id), command: putCommand(id) };
  return [
    ...problems.map((why) =>
      found({ name: 'credentials', status, code: 'credentialProblem', params: { ...params, why } }),
    ),
    ...privateAddresses({ app: id.appId, at: `${id.connector}/${id.name}: ` }, profile.credentials),
  ];
}

/**
 * Finds URLs that Carillon does not connect to, because their addresses are private and
 * CARILLON_PRIVATE_HOSTS does not list them.
 */
const privateAddresses = (
  { app, at = '' }: { app: string; at?: string },
  settings: unknown,
): Finding[] =>
  [...addressesIn(isJsonObject(settings) ? settings : {})]
    .filter(([, url]) => isRefusedUrl(url))
    .map(([member]) =>
      found({
        name: 'credentials',
        status: 'fail',
        code: 'privateAddress',
        params: { app, member: `${at}${member}` },
      }),
    );

const putCommand = ({ appId, connector, name }: ProfileId) =>
  `carillon profile put ${appId} ${connector} <file>${name === '_default' ? '' : ` --name ${name}`}`;

/**
 * Counts the values that are not encrypted with the first key of CARILLON_SECRET. Returns no
 * finding if there is only one key.
 */
export async function checkSecretKeys({
  db,
  vault,
}: {
  db: Database;
  vault: Vault;
}): Promise<Finding[]> {
  const [first, ...others] = vault.keyIds;
  if (others.length === 0) return [];
  const mismatches = (await listKeyMismatches(db, first)).map(({ kind, host, pid }) =>
    found({
      name: 'secret keys',
      status: 'warn',
      code: 'otherSecretKeys',
      params: { kind, host, pid },
    }),
  );
  const rotation = await findSecretRotation(db, first);
  const counts = await countSealedSoon(db, vault.keyIds).catch((error: unknown) => {
    if (isStatementTimeout(error)) return rotation?.counts;
    throw error;
  });
  if (!counts)
    return [
      ...mismatches,
      found({ name: 'secret keys', status: 'warn', code: 'secretsUncounted' }),
    ];
  const old = Object.entries(oldValues(counts, first, rotation?.unreadable))
    .filter(([, values]) => values > 0)
    .map(([column, values]) =>
      found({
        name: 'secret keys',
        status: 'warn',
        code: 'oldSecretValues',
        params: { column, values },
      }),
    );
  const findings = [...mismatches, ...old];
  return findings.length > 0
    ? findings
    : [found({ name: 'secret keys', status: 'ok', code: 'secretKeysFine', params: { first } })];
}

/** Time for which a rollback is reported, and maximum number of rotations that are read. */
const reportedMs = 7 * dayMs;
const maxRotations = 100;

/** Reports candidate credentials that their check or canary refused. */
export async function checkRotations({
  db,
  nowMs,
}: {
  db: Handle;
  nowMs: number;
}): Promise<Finding[]> {
  const rotations = await listRotations(db, new Date(nowMs - reportedMs), maxRotations);
  return rotations.flatMap(({ appId, connector, name: profile, state, reason, detail }) => {
    const params = { app: appId, connector, profile, detail: detail ?? reason ?? '' };
    if (state === 'staged' && reason !== null)
      return [
        found({ name: 'credential rotations', status: 'warn', code: 'candidateUnchecked', params }),
      ];
    if (state !== 'rolled_back' || reason === 'operator' || reason === 'replaced') return [];
    return [
      found({ name: 'credential rotations', status: 'warn', code: 'candidateRolledBack', params }),
    ];
  });
}

/** Lists the gateways whose last exchange with a dispatcher failed, with the reasons. */
export async function checkGateways(db: Handle): Promise<Finding[]> {
  const failures = await listGatewayFailures(db);
  if (failures.length === 0)
    return [found({ name: 'gateways', status: 'ok', code: 'gatewaysFine' })];
  return failures.map(({ appId, connector, profile, reason, at }) => {
    const params = {
      gateway: displayName(connector),
      why: reason,
      profile,
      app: appId,
      at: at.toISOString(),
    };
    return found({ name: 'gateways', status: 'warn', code: codeOf(reason), params });
  });
}

const findings: ReadonlyMap<string, FindingCode> = new Map<ReasonCode, FindingCode>([
  ['ENOTFOUND', 'gatewayWithoutName'],
  ['EAI_AGAIN', 'gatewayWithoutName'],
  ['certificateUntrusted', 'gatewayUntrusted'],
  ['proxyRefused', 'gatewayWithoutTunnel'],
]);

function codeOf(reason: string): FindingCode {
  if (hasAnswered(reason)) return 'gatewayFails';
  return findings.get(readReason(reason).code) ?? 'gatewayUnreached';
}

/** Maximum number of pushes that are reported. */
const maxKeptTokens = 20;

/**
 * Reports pushes of the last day that found so many invalid tokens that their devices were kept.
 */
export async function checkInvalidTokens(db: Handle): Promise<Finding[]> {
  const kept = await listKeptTokens(db, maxKeptTokens);
  return kept.map(
    ({ appId, objectId, connector, profile, answers, invalid, kept: devices, reason }) =>
      found({
        name: 'tokens',
        status: 'warn',
        code: 'tokensKept',
        params: {
          app: appId,
          push: objectId,
          gateway: displayName(connector),
          profile,
          answers,
          invalid,
          devices,
          reason,
        },
      }),
  );
}

/** Maximum number of webhooks that are reported. */
const maxWebhooks = 20;

/** Reports webhooks that the service switched off, and webhooks that dropped events within a day. */
export async function checkWebhooks(db: Handle): Promise<Finding[]> {
  const troubled = await listTroubled(db, null, maxWebhooks);
  return troubled.map(({ appId, name: webhook, offReason, at }) =>
    found({
      name: 'webhooks',
      status: 'warn',
      code:
        offReason === 'gone'
          ? 'webhookGone'
          : offReason === 'failing'
            ? 'webhookFailing'
            : 'webhookFull',
      params: { app: appId === serviceOwner ? null : appId, webhook, at: at.toISOString() },
    }),
  );
}

/** Maximum number of names in a line. */
const maxNames = 5;

/**
 * Warns of apps whose users have accounts on third-party platforms that are not verified. Any
 * caller that knows the id of such an account can sign in as its user. Does not find platforms
 * without users. Throws if an app cannot be decrypted.
 */
export async function checkPlatforms({
  db,
  vault,
  maxApps,
}: {
  db: Handle;
  vault: Vault;
  maxApps?: number;
}): Promise<Finding[]> {
  const findings: Finding[] = [];
  const apps = (await listApps(db, vault)).slice(0, maxApps);
  for (const { appId, options } of apps) {
    if (options.checkedPlatformsOnly) continue;
    const unchecked = (await listPlatforms(db, appId)).filter(
      (platform) => isUncheckable(platform) && !Object.hasOwn(options.authPlatforms, platform),
    );
    if (unchecked.length === 0) continue;
    const names =
      unchecked.slice(0, maxNames).join(', ') + (unchecked.length > maxNames ? ', …' : '');
    const params = { app: appId, platforms: names };
    findings.push(found({ name: 'platforms', status: 'warn', code: 'uncheckedPlatforms', params }));
  }
  if (findings.length > 0) return findings;
  return [
    found({
      name: 'platforms',
      status: 'ok',
      code: 'platformsFine',
      params: { apps: apps.length },
    }),
  ];
}

/**
 * Returns whether users can log in by this platform without verification. This excludes UnionIDs,
 * anonymous users and platforms with identity tokens.
 */
const isUncheckable = (platform: string): boolean =>
  !platform.startsWith('_') && platform !== anonymous && !isAlwaysChecked(platform);
