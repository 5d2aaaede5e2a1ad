import { rm } from 'node:fs/promises';
import { isPublicAddress } from '../../shared/domain/addresses.ts';
import { type ConnectorId, displayName, labelsOf } from '../../shared/domain/labels.ts';
import { type ProvidedKeys, parseAppId, readProvidedKeys } from '../cli/input.ts';
import { gatewayName, say } from '../cli/language.ts';
import { CommandFailure, type Report } from '../cli/report.ts';
import { findService, ServiceClient, type ShownApp } from '../cli/service.ts';
import type { GatewayNeed } from '../import/needs.ts';
import { reportOf as reportOfImport } from '../import/report.ts';
import { importPaths, prepareImport } from '../import/run.ts';
import {
  check,
  count,
  done,
  type Item,
  type ItemState,
  type MoveInState,
  type ProfileName,
  settingItems,
  todo,
} from './settings.ts';

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
  await prepareImport([path], options);
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

/** Returns the steps that remain after an import, in order. */
export function checkList(state: MoveInState): Item[] {
  return [
    keysItem(state),
    ...importItems(state),
    ...gatewayItems(state),
    ...settingItems(state),
    ...serviceItems(state),
  ];
}

function keysItem({ keys }: MoveInState): Item {
  if (keys === 'given') return done('keys', say('The app has the keys of the file.'));
  const advice = say(
    'Installed apps send the app key and servers the master key: compare with `carillon app show`.',
  );
  if (keys === 'existing') return check('keys', say('The app keeps the keys it has here.'), advice);
  return todo(
    'keys',
    say(
      'appKey and masterKey were not both given: those that are new are refused to installed apps and servers with 401.',
    ),
    say('Delete the app (`carillon app delete`), and run this again with --keys-file.'),
  );
}

function importItems({ outcome }: MoveInState): Item[] {
  const { tally, failure, refusedTo, found } = outcome;
  const refused = tally.total('refused');
  const newer = tally.total('newerInFile');
  const skipped = found.skipped.length;
  return [
    ...(failure === undefined ? [] : [todo('import', failure, say('Run the same command again.'))]),
    ...(refused === 0
      ? []
      : [
          todo(
            'refused',
            say('{records} of the export {were} refused: {file} says which and why.', {
              records: count(refused, 'record'),
              were: refused === 1 ? 'was' : 'were',
              file: refusedTo,
            }),
            say('Correct them in the export, and run the same command again.'),
          ),
        ]),
    ...(newer === 0
      ? []
      : [
          check(
            'newer',
            say(
              '{objects} changed in the export after an earlier import, and stayed as they are here.',
              {
                objects: count(newer, 'object'),
              },
            ),
            say(
              'To take them over, delete the app and import the whole export once: docs/moving-in.md.',
            ),
          ),
        ]),
    ...(skipped === 0
      ? []
      : [
          check(
            'elsewhere',
            say('{files} of the folder {hold} what stays at its old server.', {
              files: count(skipped, 'file'),
              hold: skipped === 1 ? 'holds' : 'hold',
            }),
            say('Split by path behind one proxy: docs/moving-in.md.'),
          ),
        ]),
  ];
}

function gatewayItems({ appId, app, profiles, outcome }: MoveInState): Item[] {
  const { gateways, topics } = outcome.tally.needs;
  const vendorDevices = gateways
    .filter(({ connector }) => connector !== 'apns')
    .reduce((sum, { installations }) => sum + installations, 0);
  const isHybrid = app?.options.hybridPush === true;
  return [
    ...gateways.map((need) => gatewayItem(need, { appId, profiles, topics })),
    ...(vendorDevices === 0 || isHybrid
      ? []
      : [
          todo(
            'hybridPush',
            say(
              'hybridPush is off: {installations} of Android vendors can be reached only while the app is open.',
              { installations: count(vendorDevices, 'installation') },
            ),
            `carillon app set ${appId} hybridPush=true`,
          ),
        ]),
  ];
}

function gatewayItem(
  { connector, profile, installations }: GatewayNeed,
  { appId, profiles, topics }: { appId: string; profiles: ProfileName[]; topics: string[] },
): Item {
  const ofGateway = profiles.filter((one) =>
    labelsOf(connector).some((label) => label === one.connector),
  );
  const isApple = connector === 'apns';
  const isThere = ofGateway.some(
    ({ name }) => name === (profile ?? '_default') || (isApple && profile === null),
  );
  const text = say('{gateway}: {installations} {need} {profile}.', {
    gateway: gatewayName(connector),
    installations: count(installations, 'installation'),
    need: installations === 1 ? 'needs' : 'need',
    profile: profile === null ? say('a profile') : say('the profile {profile}', { profile }),
  });
  const id = `profile ${connector}${profile === null ? '' : `/${profile}`}`;
  if (isThere) return done(id, text);
  const bundles = isApple && topics.length > 0 ? ` --topic ${topics.slice(0, 5).join(' ')}` : '';
  const option = profile === null ? '' : ` --name ${profile}`;
  const advice = `carillon profile put ${appId} ${commandName(connector)} <file>${bundles}${option}; carillon profile help ${commandName(connector)}`;
  // Stays `check`, because an APNs token profile serves devices of any profile name, and the admin
  // API does not return the kind of a profile.
  const state = isApple && ofGateway.length > 0 ? 'check' : 'todo';
  return { id, state, text, advice };
}

/**
 * Returns the connector's name on the command line. The name fcm stands for both FCM connectors.
 */
const commandName = (connector: ConnectorId): string =>
  connector === 'vendor_g' ? 'fcm' : displayName(connector).toLowerCase();

function serviceItems({ url, appId }: MoveInState): Item[] {
  const isPublic = isPublicAddress(url);
  return [
    {
      id: 'address',
      state: isPublic ? 'check' : 'todo',
      text: say('This service is at {url}.', { url }),
      advice: say(
        'Point the DNS name that installed apps call at a proxy with TLS before it, and set PUBLIC_URL to https:// and that name.',
      ),
    },
    check(
      'clients',
      say(
        'Versions of the app that name no server of their own ask LeanCloud, and cannot be moved.',
      ),
      say(
        'Bind a DNS name of your own there first, and let these users update: docs/moving-in.md.',
      ),
    ),
    check(
      'trial',
      say('Before the switch: `carillon doctor`, and a push that sends nothing.'),
      `carillon push --app ${appId} --alert Hello --dry-run`,
    ),
  ];
}
