import { rm } from 'node:fs/promises';
import { type ProvidedKeys, parseAppId, readProvidedKeys } from '../cli/input.ts';
import { say } from '../cli/language.ts';
import { CommandFailure, type Report } from '../cli/report.ts';
import { findService, ServiceClient, type ShownApp } from '../cli/service.ts';
import { reportOf as reportOfImport } from '../import/report.ts';
import { importPaths, prepareImport } from '../import/run.ts';
import { checkList } from './check-list.ts';
import type { Item, ItemState, MoveInState, ProfileName } from './settings.ts';

export interface MoveInOptions {
  appId: string;
  keysFile?: string;
  name?: string;
  edition?: 'home' | 'international';
  dryRun?: boolean;
  refused?: string;
}

/**
 * Runs `carillon move-in`. Creates an app with its old id and keys, or uses the existing app.
 * Imports users, installations and roles, and lists the remaining steps. It can be repeated,
 * because existing data stays unchanged. Checks id, keys, files, database and secret before it
 * creates the app. Throws `UsageError` and `CommandFailure`.
 */
export async function moveIn(
  path: string,
  options: MoveInOptions,
  { isJson }: { isJson: boolean },
): Promise<Report> {
  const appId = parseAppId(options.appId);
  const keys = await readProvidedKeys(options.keysFile);
  await prepareImport([path], {});
  const { url, ...access } = await findService();
  const service = new ServiceClient({ url, ...access });
  const existing = await findApp(service, appId);
  if (existing) compareKeys(existing, keys);
  const isDry = options.dryRun === true;
  const app = existing ?? (isDry ? undefined : await createApp(service, appId, { keys, options }));
  const refused = options.refused ?? `${appId}.refused.jsonl`;
  const importOptions = { app: appId, dryRun: isDry, refused };
  const outcome = await importPaths([path], importOptions, {
    isJson,
    willCreateApp: isDry && !app,
  });
  if (options.refused === undefined && outcome.tally.total('refused') === 0)
    await rm(refused, { force: true });
  const profiles = app ? await profilesOf(service, appId) : [];
  const state: MoveInState = { appId, app, keys: keyState(existing, keys), profiles, outcome, url };
  return reportOf({ ...state, isNew: !existing, items: checkList(state) });
}

async function findApp(service: ServiceClient, appId: string): Promise<ShownApp | undefined> {
  try {
    return await service.call('getApp', { path: { appId } });
  } catch (error) {
    if (error instanceof CommandFailure && error.code === 404) return undefined;
    throw error;
  }
}

const keyNames = ['appKey', 'masterKey', 'hookKey'] as const;

/**
 * Throws if the keys in the file differ from the keys of the app, because either the app or the
 * file is wrong.
 */
function compareKeys(app: ShownApp, keys: ProvidedKeys): void {
  const other = keyNames.filter((name) => keys[name] !== undefined && keys[name] !== app[name]);
  if (other.length > 0)
    throw new CommandFailure(
      say('App {appId} is there with another {keys} than the file has: nothing was imported.', {
        appId: app.appId,
        keys: other.join(say(' and ')),
      }),
    );
}

async function createApp(
  service: ServiceClient,
  appId: string,
  { keys, options }: { keys: ProvidedKeys; options: MoveInOptions },
): Promise<ShownApp> {
  const { name = appId, edition } = options;
  return service.call('createApp', { body: { name, edition, appId, ...keys } });
}

/**
 * Returns where the keys come from. Ignores the hook key, because only the function host uses it,
 * not the app's clients and servers.
 */
function keyState(existing: ShownApp | undefined, keys: ProvidedKeys): MoveInState['keys'] {
  if (keys.appKey !== undefined && keys.masterKey !== undefined) return 'given';
  return existing ? 'existing' : 'created';
}

async function profilesOf(service: ServiceClient, appId: string): Promise<ProfileName[]> {
  const { results } = await service.call('listProfiles', { path: { appId } });
  return results.map(({ connector, name }) => ({ connector, name }));
}

export interface Result extends MoveInState {
  /** True if this run created the app. */
  isNew: boolean;
  items: Item[];
}

const marks: Record<ItemState, string> = { done: 'x', todo: ' ', check: '?' };

/**
 * Creates the report: a document without keys, and a check list. Refused records and an unfinished
 * import count as a bad outcome; remaining steps do not.
 */
export function reportOf(result: Result): Report {
  const { appId, app, isNew, outcome, items } = result;
  const imported = reportOfImport(outcome);
  const name = app?.name ?? null;
  const { isDry } = outcome;
  const document = {
    app: { appId, name, isNew },
    dryRun: isDry,
    import: imported.document,
    checkList: items,
  };
  const text = [
    summary(result),
    '',
    imported.text,
    '',
    say('What is left ([x] done, [ ] to do, [?] to be checked by you):'),
    ...items.flatMap(({ state, text, advice }) => [
      `[${marks[state]}] ${text}`,
      ...(state === 'done' || advice === undefined ? [] : [`      ${advice}`]),
    ]),
    '',
    ...(isDry
      ? []
      : [
          say(
            'Run the same command again whenever the export has more: nothing is imported twice.',
          ),
        ]),
  ].join('\n');
  return { document, text: text.trimEnd(), ...(imported.isBad ? { isBad: true } : {}) };
}

function summary({ appId, app, isNew, outcome }: Result): string {
  const name = app?.name ?? appId;
  if (!isNew) return say('App {name} ({appId}) is there already.', { name, appId });
  return outcome.isDry
    ? say('App {appId} would be made.', { appId })
    : say('App {name} ({appId}) was made.', { name, appId });
}
