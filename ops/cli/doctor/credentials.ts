import { inspectCredentials } from '../../../connectors/registry.ts';
import type { Vault } from '../../../shared/crypto.ts';
import type { Handle } from '../../../shared/db/pool.ts';
import { findApp, listAppIds } from '../../../shared/db/tables/apps/apps.ts';
import { listProfiles, openProfile } from '../../../shared/db/tables/apps/profiles.ts';
import { isConnectorId } from '../../../shared/domain/labels.ts';
import { type Finding, fail, ok, reasonOf, warn } from './finding.ts';

/** A certificate that ends within this time is worth a warning: getting a new one takes people. */
const warnBeforeMs = 30 * 86_400_000;

interface CheckContext {
  db: Handle;
  vault: Vault;
  nowMs: number;
}

/** Opens every app and profile with CARILLON_SECRET, and looks at what the credentials say of themselves. */
export async function checkCredentials(context: CheckContext): Promise<Finding[]> {
  const sealed: Finding[] = [];
  const unwell: Finding[] = [];
  let apps = 0;
  let profiles = 0;
  for (const appId of await listAppIds(context.db)) {
    apps += 1;
    const closed = await attempt(`app ${appId}`, () => findApp(context.db, context.vault, appId));
    if (closed) sealed.push(closed);
    for (const { connector, name } of await listProfiles(context.db, appId)) {
      profiles += 1;
      const id = { appId, connector, name };
      const found = await attempt(labelOf(id), async () => unwell.push(...(await inspect(context, id))));
      if (found) sealed.push(found);
    }
  }
  return [
    ...(sealed.length > 0 ? sealed : [ok('secrets', `${apps} apps and ${profiles} profiles open`)]),
    ...(unwell.length > 0 ? unwell : [ok('credentials', `${profiles} profiles looked at`)]),
  ];
}

interface ProfileId {
  appId: string;
  connector: string;
  name: string;
}

const labelOf = ({ appId, connector, name }: ProfileId) => `profile ${connector}/${name} of app ${appId}`;

/** What keeps a value closed, if anything does. */
async function attempt(what: string, open: () => Promise<unknown>): Promise<Finding | undefined> {
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
  const make = isEnded || report.kind === 'unfit' ? fail : warn;
  return problems.map((problem) =>
    make('credentials', `${labelOf(id)}: ${problem}`, `Put the profile again: ${putCommand(id)}.`),
  );
}

const putCommand = ({ appId, connector, name }: ProfileId) =>
  `\`carillon profile put ${appId} ${connector} <file>${name === '_default' ? '' : ` --name ${name}`}\``;
