import { inspectCredentials } from '../../../../connectors/registry.ts';
import { dayMs } from '../../../../shared/clock.ts';
import type { Vault } from '../../../../shared/crypto.ts';
import type { Handle } from '../../../../shared/db/pool.ts';
import { findApp, listAppIds } from '../../../../shared/db/tables/apps/apps.ts';
import { listProfiles, openProfile } from '../../../../shared/db/tables/apps/profiles.ts';
import { isConnectorId } from '../../../../shared/domain/labels.ts';
import { type Finding, fail, ok, reasonOf, warn } from './finding.ts';

/** Time before the end of a certificate from which on there is a warning: renewing one is manual work. */
const warnBeforeMs = 30 * dayMs;

interface CheckContext {
  db: Handle;
  vault: Vault;
  nowMs: number;
  /** Apps that are looked at, the oldest; all when absent. */
  maxApps?: number;
}

/** Decrypts every app and profile with CARILLON_SECRET, and inspects the credentials. */
export async function checkCredentials(context: CheckContext): Promise<Finding[]> {
  const secretFindings: Finding[] = [];
  const credentialFindings: Finding[] = [];
  let apps = 0;
  let profiles = 0;
  for (const appId of (await listAppIds(context.db)).slice(0, context.maxApps)) {
    apps += 1;
    const secretFailure = await tryOpen(`app ${appId}`, () => findApp(context.db, context.vault, appId));
    if (secretFailure) secretFindings.push(secretFailure);
    for (const { connector, name } of await listProfiles(context.db, appId)) {
      profiles += 1;
      const id = { appId, connector, name };
      const openFailure = await tryOpen(labelOf(id), async () =>
        credentialFindings.push(...(await inspect(context, id))),
      );
      if (openFailure) secretFindings.push(openFailure);
    }
  }
  return [
    ...(secretFindings.length > 0
      ? secretFindings
      : [ok('secrets', `${apps} apps and ${profiles} profiles open`)]),
    ...(credentialFindings.length > 0
      ? credentialFindings
      : [ok('credentials', `${profiles} profiles looked at`)]),
  ];
}

interface ProfileId {
  appId: string;
  connector: string;
  name: string;
}

const labelOf = ({ appId, connector, name }: ProfileId) => `profile ${connector}/${name} of app ${appId}`;

/** Decrypts a value. Returns a finding when that fails. */
async function tryOpen(what: string, open: () => Promise<unknown>): Promise<Finding | undefined> {
  try {
    await open();
    return undefined;
  } catch (error) {
    return fail(
      'secrets',
      `${what} does not open: ${reasonOf(error)}`,
      'Add the key it was sealed with to CARILLON_SECRET, behind a comma.',
    );
  }
}

async function inspect({ db, vault, nowMs }: CheckContext, id: ProfileId): Promise<Finding[]> {
  const profile = await openProfile(db, vault, id);
  if (!profile) return [];
  if (!isConnectorId(id.connector))
    return [warn('credentials', `${labelOf(id)}: no such connector`, 'Delete the profile.')];
  const report = inspectCredentials(id.connector, profile.credentials, nowMs);
  const isEnded = report.expiresAtMs !== null && report.expiresAtMs <= nowMs;
  const isEnding = report.expiresAtMs !== null && report.expiresAtMs - nowMs < warnBeforeMs;
  const problems =
    report.problems.length === 0 && isEnding
      ? [`A certificate ends on ${new Date(report.expiresAtMs ?? nowMs).toISOString().slice(0, 10)}.`]
      : report.problems;
  const make = isEnded || report.kind === 'invalid' ? fail : warn;
  return problems.map((problem) =>
    make('credentials', `${labelOf(id)}: ${problem}`, `Put the profile again: ${putCommand(id)}.`),
  );
}

const putCommand = ({ appId, connector, name }: ProfileId) =>
  `\`carillon profile put ${appId} ${connector} <file>${name === '_default' ? '' : ` --name ${name}`}\``;
