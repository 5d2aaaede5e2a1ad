import { isAlwaysChecked } from '../../shared/domain/users/auth-platforms.ts';
import { language, say } from '../cli/language.ts';
import type { ShownApp } from '../cli/service.ts';
import type { Outcome } from '../import/report.ts';

/** Push profile in a list of the admin API. */
export interface ProfileName {
  connector: string;
  name: string;
}

/** Input of the check list. */
export interface MoveInState {
  appId: string;
  /** Undefined in a dry run if the app does not exist yet. */
  app: ShownApp | undefined;
  /** Where the keys come from: a file, an existing app, or newly created (at least one of them). */
  keys: 'given' | 'existing' | 'created';
  profiles: ProfileName[];
  outcome: Outcome;
  /** URL of the service. */
  url: string;
}

/**
 * State of a step. `check` means that the service cannot decide, so a person who knows the app
 * must.
 */
export type ItemState = 'done' | 'todo' | 'check';

/** Step of moving an app. */
export interface Item {
  /** Name that stays the same between versions, for programs. */
  id: string;
  state: ItemState;
  /** Current state. */
  text: string;
  /** Action to take, as text or as a command. */
  advice?: string;
}

export const done = (id: string, text: string): Item => ({ id, state: 'done', text });

export const todo = (id: string, text: string, advice: string): Item => ({
  id,
  state: 'todo',
  text,
  advice,
});

export const check = (id: string, text: string, advice: string): Item => ({
  id,
  state: 'check',
  text,
  advice,
});

/**
 * Formats a number with its English noun. In Chinese the surrounding sentence already contains the
 * noun.
 */
export const count = (n: number, noun: string): string =>
  language() === 'zh'
    ? n.toLocaleString('en')
    : `${n.toLocaleString('en')} ${noun}${n === 1 ? '' : 's'}`;

/** Limit on the names in one line of the list. */
const maxNames = 5;

/** Returns the app options and service providers that the imported users need. */
export function settingItems(state: MoveInState): Item[] {
  return [
    ...platformItems(state),
    ...messageItems(state),
    functionsItem(state),
    check(
      'options',
      say('Other options have their defaults, unless they were set here.'),
      say("Compare with the settings in LeanCloud's console: carillon app show {appId}", {
        appId: state.appId,
      }),
    ),
  ];
}

function platformItems({ app, appId, outcome }: MoveInState): Item[] {
  const configured = Object.keys(platformsOf(app?.options.authPlatforms));
  const { platforms } = outcome.tally.needs;
  const missing = platforms.filter(({ platform }) => !configured.includes(platform));
  const [refused, unchecked] = [true, false].map((isRefused) =>
    missing.filter(({ platform }) => isAlwaysChecked(platform) === isRefused),
  );
  const list = (of: typeof missing = []) =>
    of
      .slice(0, maxNames)
      .map(({ platform, users }) => `${platform} (${count(users, 'user')})`)
      .join(', ') + (of.length > maxNames ? ', …' : '');
  const advice = `carillon app set ${appId} 'authPlatforms={"<platform>":{…}}'`;
  if (platforms.length > 0 && missing.length === 0)
    return [
      done('platforms', say('Tokens of all third-party platforms of its users are checked.')),
    ];
  return [
    ...(refused?.length
      ? [
          todo(
            'platforms',
            say('Logins by {platforms} are refused until authPlatforms names them.', {
              platforms: list(refused),
            }),
            advice,
          ),
        ]
      : []),
    ...(unchecked?.length
      ? [
          check(
            'uncheckedPlatforms',
            say('Tokens of {platforms} are not checked.', { platforms: list(unchecked) }),
            advice,
          ),
        ]
      : []),
  ];
}

/** Reads `authPlatforms`, an object in the admin API. */
function platformsOf(value: unknown): object {
  return typeof value === 'object' && value !== null ? value : {};
}

function messageItems({ app, appId, outcome }: MoveInState): Item[] {
  const { withEmail, emailVerified, withPhone } = outcome.tally.needs.users;
  const isVerifying = app?.options.emailVerification === true;
  return [
    ...(withEmail === 0
      ? []
      : [
          check(
            'mail',
            say(
              'Mail addresses: {users}, {verified} of them verified; emailVerification is {state}.',
              {
                users: count(withEmail, 'user'),
                verified: emailVerified.toLocaleString('en'),
                state: say(isVerifying ? 'on' : 'off'),
              },
            ),
            say(
              'Where the app sends mails: carillon app set {appId} emailVerification=true; mailTemplates; SMTP_URL of the dispatcher.',
              { appId },
            ),
          ),
        ]),
    ...(withPhone === 0
      ? []
      : [
          check(
            'sms',
            say('Phone numbers: {users}.', { users: count(withPhone, 'user') }),
            say(
              'Where the app sends codes: templates and signatures (PUT /console/api/apps/<app id>/sms-templates/<name>, …/sms-signatures/<name>), SMS_URL of api and dispatcher.',
            ),
          ),
        ]),
  ];
}

function functionsItem({ app, appId }: MoveInState): Item {
  const url = app?.options.functionsUrl;
  if (typeof url === 'string')
    return done('functions', say('Cloud functions and hooks run at {url}.', { url }));
  return check(
    'functions',
    say('The app has no functionsUrl.'),
    say('Where it has cloud functions or hooks: carillon app set {appId} functionsUrl=https://…', {
      appId,
    }),
  );
}
