import { rm } from 'node:fs/promises';
import { z } from 'zod';
import { type KeptKeys, keptAppId, readKeptKeys } from '../cli/keys-file.ts';
import { CommandFailure, type Report } from '../cli/report.ts';
import { type AppReply, appReply, findService, ServiceClient } from '../cli/service.ts';
import { importPaths, prepareImport } from '../import/run.ts';
import { checkList } from './check-list.ts';
import type { ProfileName, Situation } from './item.ts';
import { reportOf } from './report.ts';

export interface MoveInOptions {
  appId: string;
  keysFile?: string;
  name?: string;
  edition?: string;
  dryRun?: boolean;
  refused?: string;
}

/**
 * `carillon move-in`: makes an app under the id and keys it had, or takes the one that is there, imports its users,
 * installations and roles, and lists what is left to do. It may be run again: what is there is left as it is. Throws
 * `UsageError` and `CommandFailure`; nothing is made before id, keys, files, database and secret were looked at.
 */
export async function moveIn(
  path: string,
  options: MoveInOptions,
  { isJson }: { isJson: boolean },
): Promise<Report> {
  const appId = keptAppId(options.appId);
  const keys = await readKeptKeys(options.keysFile);
  await prepareImport([path], {});
  const { url, ...access } = await findService();
  const service = new ServiceClient({ url, ...access });
  const there = await findApp(service, appId);
  if (there) compareKeys(there, keys);
  const isDry = options.dryRun === true;
  const app = there ?? (isDry ? undefined : await makeApp(service, appId, { keys, options }));
  const refused = options.refused ?? `${appId}.refused.jsonl`;
  const importOptions = { app: appId, dryRun: isDry, refused };
  const outcome = await importPaths([path], importOptions, { isJson, isAppToCome: isDry && !app });
  if (options.refused === undefined && outcome.tally.total('refused') === 0)
    await rm(refused, { force: true });
  const profiles = app ? await profilesOf(service, appId) : [];
  const situation: Situation = { appId, app, keys: keyState(there, keys), profiles, outcome, url };
  return reportOf({ ...situation, isMade: !there, items: checkList(situation) });
}

async function findApp(service: ServiceClient, appId: string): Promise<AppReply | undefined> {
  try {
    return await service.app(appId);
  } catch (error) {
    if (error instanceof CommandFailure && error.code === 404) return undefined;
    throw error;
  }
}

const keyNames = ['appKey', 'masterKey', 'hookKey'] as const;

/** An app of other keys is another one, or the file is not its own. */
function compareKeys(app: AppReply, keys: KeptKeys): void {
  const other = keyNames.filter((name) => keys[name] !== undefined && keys[name] !== app[name]);
  if (other.length > 0)
    throw new CommandFailure(
      `App ${app.appId} is there with another ${other.join(' and ')} than the file has: nothing was imported.`,
    );
}

async function makeApp(
  service: ServiceClient,
  appId: string,
  { keys, options }: { keys: KeptKeys; options: MoveInOptions },
): Promise<AppReply> {
  const { name = appId, edition } = options;
  return appReply.parse(await service.admin('POST', '/apps', { name, edition, appId, ...keys }));
}

/** Servers and clients of the app hold the app key and the master key; the hook key is held by its function host. */
function keyState(there: AppReply | undefined, keys: KeptKeys): Situation['keys'] {
  if (keys.appKey !== undefined && keys.masterKey !== undefined) return 'given';
  return there ? 'there' : 'made';
}

const profileReply = z.object({ results: z.array(z.object({ connector: z.string(), name: z.string() })) });

async function profilesOf(service: ServiceClient, appId: string): Promise<ProfileName[]> {
  const reply = await service.admin('GET', `/apps/${encodeURIComponent(appId)}/profiles`);
  return profileReply.parse(reply).results;
}
