import { isIdentityTokenPlatform } from '../../shared/domain/users/auth-platforms.ts';
import { check, count, done, type Item, type Situation, todo } from './item.ts';

/** As many names as a line can hold. */
const maxNames = 5;

/** Options of the app, and suppliers of the service, that the users of an export ask for. */
export function settingItems(situation: Situation): Item[] {
  return [
    ...platformItems(situation),
    ...messageItems(situation),
    functionsItem(situation),
    check(
      'options',
      'Other options have their defaults, unless they were set here.',
      `Compare with the settings in the public service's console: carillon app show ${situation.appId}`,
    ),
  ];
}

function platformItems({ app, appId, outcome }: Situation): Item[] {
  const configured = Object.keys(platformsOf(app?.options.authPlatforms));
  const { platforms } = outcome.tally.needs;
  const missing = platforms.filter(({ platform }) => !configured.includes(platform));
  const [refused, unchecked] = [true, false].map((isRefused) =>
    missing.filter(({ platform }) => isIdentityTokenPlatform(platform) === isRefused),
  );
  const list = (of: typeof missing = []) =>
    of
      .slice(0, maxNames)
      .map(({ platform, users }) => `${platform} (${count(users, 'user')})`)
      .join(', ') + (of.length > maxNames ? ', …' : '');
  const advice = `carillon app set ${appId} 'authPlatforms={"<platform>":{…}}'`;
  if (platforms.length > 0 && missing.length === 0)
    return [done('platforms', 'Tokens of all third-party platforms of its users are checked.')];
  return [
    ...(refused?.length
      ? [todo('platforms', `Logins by ${list(refused)} are refused until authPlatforms names them.`, advice)]
      : []),
    ...(unchecked?.length
      ? [check('uncheckedPlatforms', `Tokens of ${list(unchecked)} are not checked.`, advice)]
      : []),
  ];
}

/** The admin API shows it as a dictionary. */
function platformsOf(value: unknown): object {
  return typeof value === 'object' && value !== null ? value : {};
}

function messageItems({ app, appId, outcome }: Situation): Item[] {
  const { withEmail, emailVerified, withPhone } = outcome.tally.needs.users;
  const isVerifying = app?.options.emailVerification === true;
  return [
    ...(withEmail === 0
      ? []
      : [
          check(
            'mail',
            `Mail addresses: ${count(withEmail, 'user')}, ${emailVerified.toLocaleString('en')} of them verified; emailVerification is ${isVerifying ? 'on' : 'off'}.`,
            `Where the app sends mails: carillon app set ${appId} emailVerification=true; mailTemplates; SMTP_URL of the dispatcher.`,
          ),
        ]),
    ...(withPhone === 0
      ? []
      : [
          check(
            'sms',
            `Phone numbers: ${count(withPhone, 'user')}.`,
            'Where the app sends codes: templates and signatures (PUT /console/api/apps/<app id>/sms-templates/<name>, …/sms-signatures/<name>), SMS_WEBHOOK_URL of the dispatcher.',
          ),
        ]),
  ];
}

function functionsItem({ app, appId }: Situation): Item {
  const url = app?.options.functionsUrl;
  if (typeof url === 'string') return done('functions', `Cloud functions and hooks run at ${url}.`);
  return check(
    'functions',
    'The app has no functionsUrl.',
    `Where it has cloud functions or hooks: carillon app set ${appId} functionsUrl=https://…`,
  );
}
