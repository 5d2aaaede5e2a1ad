import { inspectCredentials } from '../../../../connectors/registry.ts';
import { dayMs } from '../../../../shared/clock.ts';
import type { Vault } from '../../../../shared/crypto.ts';
import type { Handle } from '../../../../shared/db/pool.ts';
import { findApp, listAppIds } from '../../../../shared/db/tables/apps.ts';
import { listProfiles, openProfile } from '../../../../shared/db/tables/profiles.ts';
import { addressesIn } from '../../../../shared/domain/admin/service-addresses.ts';
import { isJsonObject } from '../../../../shared/domain/json.ts';
import { isConnectorId } from '../../../../shared/domain/labels.ts';
import { reasonAs } from '../../../../shared/domain/reasons.ts';
import type { TextParams } from '../../../../shared/domain/texts/texts.ts';
import { isRefusedUrl } from '../../../../shared/http/outbound-addresses.ts';
import { type Finding, found, reasonOf } from './finding.ts';

/** Time before the end of a certificate from which on there is a warning: renewing one is manual work. */
const warnBeforeMs = 30 * dayMs;

interface CheckContext {
  db: Handle;
  vault: Vault;
  nowMs: number;
  /** Apps that are looked at, the oldest; all when absent. */
  maxApps?: number;
}

/**
 * Decrypts every app and profile with CARILLON_SECRET, and inspects the credentials and the
 * addresses of servers.
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
      : [found({ name: 'secrets', status: 'ok', code: 'secretsOpen', params: { apps, profiles } })]),
    ...(credentialFindings.length > 0
      ? credentialFindings
      : [found({ name: 'credentials', status: 'ok', code: 'credentialsFine', params: { profiles } })]),
  ];
}

interface ProfileId {
  appId: string;
  connector: string;
  name: string;
}

const paramsOf = ({ appId, connector, name }: ProfileId) => ({ app: appId, connector, profile: name });

/** Decrypts a value. Returns a finding when that fails. */
async function tryOpen(
  code: 'sealedApp' | 'sealedProfile',
  params: TextParams,
  open: () => Promise<unknown>,
): Promise<Finding | undefined> {
  try {
    await open();
    return undefined;
  } catch (error) {
    return found({ name: 'secrets', status: 'fail', code, params: { ...params, why: reasonOf(error) } });
  }
}

/** Returns the reason for a certificate that ends soon. */
function endOf(expiresAtMs: number): string {
  const day = new Date(expiresAtMs).toISOString().slice(0, 10);
  return reasonAs(`A certificate ends on ${day}.`, 'certificateEnds', { day });
}

async function inspect({ db, vault, nowMs }: CheckContext, id: ProfileId): Promise<Finding[]> {
  const profile = await openProfile(db, vault, id);
  if (!profile) return [];
  if (!isConnectorId(id.connector))
    return [found({ name: 'credentials', status: 'warn', code: 'unknownConnector', params: paramsOf(id) })];
  const report = inspectCredentials(id.connector, profile.credentials, nowMs);
  const isEnded = report.expiresAtMs !== null && report.expiresAtMs <= nowMs;
  const isEnding = report.expiresAtMs !== null && report.expiresAtMs - nowMs < warnBeforeMs;
  const problems =
    report.problems.length === 0 && isEnding ? [endOf(report.expiresAtMs ?? nowMs)] : report.problems;
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
 * Finds URLs that the service does not connect to, because CARILLON_PRIVATE_HOSTS does not list
 * their addresses.
 */
const privateAddresses = ({ app, at = '' }: { app: string; at?: string }, settings: unknown): Finding[] =>
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
