import { isIP } from 'node:net';
import { limitWithoutClass } from '../../../../connectors/contract/message-class.ts';
import { dayMs, hourMs } from '../../../../shared/clock.ts';
import type { Database } from '../../../../shared/db/pool.ts';
import { findOpenOptions, listAppIds } from '../../../../shared/db/tables/apps.ts';
import { countValidUpTo } from '../../../../shared/db/tables/audience.ts';
import { countCallers } from '../../../../shared/db/tables/console.ts';
import {
  listReports,
  minTokenLength,
  type ProcessReport,
  readArchiving,
  type SeenProcess,
} from '../../../../shared/db/tables/processes.ts';
import { listProfiles } from '../../../../shared/db/tables/profiles.ts';
import { displayName, isConnectorId } from '../../../../shared/domain/labels.ts';
import { type Finding, found, runEach } from './checks.ts';

/**
 * Checks of `carillon doctor --production`: what is usual in production and missing here
 * (protocol/admin-api.md#doctor).
 */

/** Maximum number of apps whose devices and profiles are looked at, oldest first. */
const maxApps = 100;
/** A service that was not scraped for this time has no alerts. */
const scrapeGapSeconds = 600;
/** Maximum age of the last archived file of the WAL. PostgreSQL archives at least when it is full. */
const archiveGapMs = dayMs;
interface ProductionContext {
  db: Database;
  nowMs: number;
}

/**
 * Runs the checks one after another. Each finding has advice unless its level is `ok`. Throws if the
 * database does not answer at all.
 */
export async function checkProduction(context: ProductionContext): Promise<Finding[]> {
  const reports = await listReports(context.db);
  return [
    ...checkSettings(
      reports.flatMap(({ kind, report: { setup } }) => (setup ? [{ kind, setup }] : [])),
    ),
    ...(await runEach([
      async () => [await checkBackups(context)],
      async () => [await checkAccess(context)],
      () => checkCaps(context),
      () => checkClasses(context),
    ])),
  ];
}

/** Settings of a running process. */
interface ProcessSetup extends Pick<SeenProcess, 'kind'> {
  setup: NonNullable<ProcessReport['setup']>;
}

/** Checks the settings that the running processes report. */
export function checkSettings(processes: readonly ProcessSetup[]): Finding[] {
  const ofKind = (kind: SeenProcess['kind']) =>
    processes.filter((one) => one.kind === kind).map(({ setup }) => setup);
  const apis = ofKind('api');
  const name = 'admin access';
  const params = { min: minTokenLength };
  return [
    ...checkAddresses(apis),
    ...checkMessages(ofKind('dispatcher')),
    checkScrapes(processes.map(({ setup }) => setup)),
    ...(apis.some(({ hasShortToken }) => hasShortToken)
      ? [found({ name, status: 'fail', code: 'shortToken', params })]
      : []),
  ];
}

type Setup = ProcessSetup['setup'];

/** Checks that people and devices reach the service encrypted, and that their addresses count. */
function checkAddresses(apis: readonly Setup[]): Finding[] {
  const [api] = apis;
  if (!api) return [found({ name: 'public url', status: 'warn', code: 'noApiReports' })];
  const url = new URL(api.publicUrl);
  const params = { url: url.origin };
  const isOwn = url.hostname === 'localhost' || isIP(url.hostname.replace(/[[\]]/g, '')) !== 0;
  const address = { name: 'public url', params };
  const findings = [
    url.protocol !== 'https:'
      ? found({ ...address, status: 'fail', code: 'notEncrypted' })
      : isOwn
        ? found({ ...address, status: 'warn', code: 'addressWithoutName' })
        : found({ ...address, status: 'ok', code: 'addressFine' }),
  ];
  if (url.protocol === 'https:')
    findings.push(
      apis.every((one) => one.hasTrustedProxies)
        ? found({ name: 'proxies', status: 'ok', code: 'proxiesSet' })
        : found({ name: 'proxies', status: 'warn', code: 'proxiesMissing' }),
    );
  return findings;
}

/** Checks that codes and mails leave the service. Any dispatcher can send any message. */
function checkMessages(dispatchers: readonly Setup[]): Finding[] {
  if (dispatchers.length === 0) return [];
  const areAll = (has: (one: Setup) => boolean) => dispatchers.every(has);
  return [
    areAll(({ hasSms }) => hasSms)
      ? found({ name: 'messages', status: 'ok', code: 'smsSet' })
      : found({ name: 'messages', status: 'warn', code: 'smsMissing' }),
    areAll(({ hasMail }) => hasMail)
      ? found({ name: 'mail', status: 'ok', code: 'mailSet' })
      : found({ name: 'mail', status: 'warn', code: 'mailMissing' }),
  ];
}

/** Checks that something reads the metrics of each process. Alerts depend on it. */
function checkScrapes(setups: readonly Setup[]): Finding {
  const unread = setups.filter(
    ({ scrapedSecondsAgo: seconds }) => seconds === null || seconds > scrapeGapSeconds,
  ).length;
  const params = { unread, processes: setups.length };
  return unread === 0
    ? found({ name: 'alerts', status: 'ok', code: 'metricsRead', params })
    : found({ name: 'alerts', status: 'warn', code: 'metricsUnread', params });
}

/** Checks that PostgreSQL archives its log. A dump by another program leaves no trace here. */
async function checkBackups({ db, nowMs }: ProductionContext): Promise<Finding> {
  const { archivedAt, hasStandby } = await readArchiving(db);
  const name = 'backups';
  const params = { hours: archivedAt ? Math.round((nowMs - archivedAt.getTime()) / hourMs) : 0 };
  if (archivedAt && nowMs - archivedAt.getTime() <= archiveGapMs)
    return found({ name, status: 'ok', code: 'logArchived', params });
  if (archivedAt) return found({ name, status: 'fail', code: 'archivingStopped', params });
  return found({ name, status: 'warn', code: hasStandby ? 'onlyStandby' : 'noBackups' });
}

/** Checks that people use tokens of their own, or log in by OpenID Connect. */
async function checkAccess({ db }: ProductionContext): Promise<Finding> {
  const name = 'admin access';
  const people = await countCallers(db);
  return people > 0
    ? found({ name, status: 'ok', code: 'ownAccess', params: { people } })
    : found({ name, status: 'warn', code: 'sharedAccess' });
}

/** Compares the daily cap of each app with the number of its devices. */
async function checkCaps({ db }: ProductionContext): Promise<Finding[]> {
  const name = 'daily cap';
  const appIds = (await listAppIds(db)).slice(0, maxApps);
  const low: Finding[] = [];
  for (const appId of appIds) {
    const cap = (await findOpenOptions(db, appId))?.dailyRecipientCap ?? 0;
    const devices = await countValidUpTo(db, appId, cap + 1);
    if (devices > cap)
      low.push(
        found({ name, status: 'warn', code: 'capBelowDevices', params: { app: appId, cap } }),
      );
  }
  return low.length > 0
    ? low
    : [found({ name, status: 'ok', code: 'capsFine', params: { apps: appIds.length } })];
}

/** Finds profiles of vendors with daily limits that declare no message class. */
async function checkClasses({ db }: ProductionContext): Promise<Finding[]> {
  const name = 'message classes';
  const findings: Finding[] = [];
  let checked = 0;
  for (const appId of (await listAppIds(db)).slice(0, maxApps))
    for (const { connector, name: profile, messageClasses } of await listProfiles(db, appId)) {
      const limit = isConnectorId(connector) ? limitWithoutClass(connector) : null;
      if (limit === null) continue;
      checked += 1;
      if (Object.keys(messageClasses ?? {}).length > 0) continue;
      const params = { app: appId, gateway: displayName(connector), profile, limit };
      findings.push(found({ name, status: 'warn', code: 'noMessageClasses', params }));
    }
  return findings.length > 0
    ? findings
    : [found({ name, status: 'ok', code: 'classesFine', params: { profiles: checked } })];
}
