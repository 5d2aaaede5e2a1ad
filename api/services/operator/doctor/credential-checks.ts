import { inspectCredentials } from '../../../../connectors/registry.ts';
import { dayMs, utcDay } from '../../../../shared/clock.ts';
import type { Vault } from '../../../../shared/crypto.ts';
import { failureKind, isStatementTimeout } from '../../../../shared/db/limits/database-errors.ts';
import type { Database, Handle } from '../../../../shared/db/pool.ts';
import { findApp, listAppIds } from '../../../../shared/db/tables/apps.ts';
import { listProfiles, listRotations, openProfile } from '../../../../shared/db/tables/profiles.ts';
import {
  countSealedSoon,
  findSecretRotation,
  listKeyMismatches,
  oldValues,
} from '../../../../shared/db/tables/secrets.ts';
import { addressesIn } from '../../../../shared/domain/addresses.ts';
import { isJsonObject } from '../../../../shared/domain/json.ts';
import { isConnectorId } from '../../../../shared/domain/labels.ts';
import { reasonAs } from '../../../../shared/domain/reasons.ts';
import type { TextParams } from '../../../../shared/domain/texts/texts.ts';
import { isRefusedUrl } from '../../../../shared/http/outbound-addresses.ts';

import { type Finding, found, reasonOf } from './checks.ts';

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

/** Decrypts a value. Returns a finding if this fails. Throws if the database fails. */
async function tryOpen(
  code: 'sealedApp' | 'sealedProfile',
  params: TextParams,
  open: () => Promise<unknown>,
): Promise<Finding | undefined> {
  try {
    await open();
    return undefined;
  } catch (error) {
    if (failureKind(error) !== undefined) throw error;
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
  const day = utcDay(expiresAtMs);
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
