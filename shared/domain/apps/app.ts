import { z } from 'zod';
import { isBaseUrl } from '../addresses.ts';
import { isCountry } from '../messages/phone.ts';
import { isTimeZone } from '../pushes/local-time.ts';
import { isQuietHours, quietHoursForm } from '../pushes/quiet-hours.ts';
import { maxUserBytes } from '../users/user.ts';

/** True if a text has the form of an app id. */
export const isAppId = (text: string): boolean => /^[A-Za-z0-9_-]{1,64}$/.test(text);

/**
 * Schema of an app id that was issued by LeanCloud: 24 or more letters and digits. Newer
 * ids have a region suffix (`-gzGzoHsz`, `-9Nh9j0Va`, `-MdYXbMMI`). SDKs build host names from the
 * first 8 characters (protocol/clients.md#app-ids).
 */
export const importedAppId = z
  .string('must be a string')
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9_-]{7,63}$/,
    'must be 8 to 64 letters, digits, - and _, and begin with a letter or digit',
  );

/** Schema of a key that was issued by LeanCloud: 24 to 48 letters and digits. */
const importedKey = z
  .string('must be a string')
  .regex(/^[A-Za-z0-9_-]{16,64}$/, 'must be 16 to 64 letters, digits, - and _');

/** Schema of the keys of an app that moves in. Missing keys are generated. */
export const importedKeys = z.strictObject({
  appKey: importedKey.optional().describe('App key. By default a new key.'),
  masterKey: importedKey.optional().describe('Master key. By default a new key.'),
  hookKey: importedKey.optional().describe('Hook key. By default a new key.'),
});

/** Keys of an app. They must all differ. */
export interface AppKeys {
  appKey: string;
  masterKey: string;
  hookKey: string;
}

/** Names of the keys of an app. */
export const keyNames = ['appKey', 'masterKey', 'hookKey'] as const;
export type KeyName = (typeof keyNames)[number];

/**
 * A key that was replaced. It stays valid for some time, so that clients can switch to the new key.
 */
interface OldKey {
  value: string;
  /** Epoch milliseconds. */
  validUntilMs: number;
}

/** Returns the values of a key that are valid now, current value first. */
export function validKeys(
  app: AppKeys & { oldKeys?: { [K in KeyName]?: OldKey | undefined } | undefined },
  name: KeyName,
  nowMs: number,
): string[] {
  const old = app.oldKeys?.[name];
  return old && old.validUntilMs > nowMs ? [app[name], old.value] : [app[name]];
}

/** True if no two keys are equal. */
export function areDistinct(keys: { [K in keyof AppKeys]?: string | undefined }): boolean {
  const given = [keys.appKey, keys.masterKey, keys.hookKey].filter((key) => key !== undefined);
  return new Set(given).size === given.length;
}

const httpUrl = z.url({ protocol: /^https?$/ });

/** Base URL without user and password. Calls are authorised by the app's keys. */
const functionsUrl = httpUrl.refine(
  isBaseUrl,
  'expected an address without user, query and fragment',
);

/** Credentials of platforms whose access tokens are checked. Each platform has its own members. */
const authPlatforms = z.record(z.string().max(64), z.record(z.string().max(64), z.unknown()));

const mailTemplate = z.strictObject({
  subject: z.string().max(500).optional().describe('Subject of the mail.'),
  html: z.string().max(100_000).optional().describe('Body of the mail as HTML.'),
  text: z.string().max(100_000).optional().describe('Body of the mail as plain text.'),
});
export type MailTemplate = z.infer<typeof mailTemplate>;

/**
 * What to do with a recipient whose request got no response, if the device would show a repeat as a
 * second message. `repeat` sends once more. `fail` counts the recipient as `failed` with the reason
 * `unknown`.
 */
const unknownOutcome = z.enum(['repeat', 'fail'], 'expected "repeat" or "fail"');
export type UnknownOutcome = z.infer<typeof unknownOutcome>;

/** Limits for the data that one network address may store. */
const perHour = z.int().min(0).max(1_000_000);
const perDay = z.int().min(0).max(1_000_000_000);

/** Options of an app, with their types (protocol/admin-api.md#options-of-an-app). */
const optionShape = {
  emailVerification: z
    .boolean()
    .describe('Sends a verification mail when a user sets an e-mail address.'),
  forbidUnverifiedEmailLogin: z
    .boolean()
    .describe('Refuses a login with an e-mail address that is not verified (216).'),
  phoneVerification: z
    .boolean()
    .describe('Sends a code when a user signs up with a phone number or changes it.'),
  forbidUnverifiedPhoneLogin: z
    .boolean()
    .describe('Refuses a login of a user whose phone number is not verified (215).'),
  reloginAfterPasswordChange: z
    .boolean()
    .describe('Ends the session of a user when the password changes.'),
  generalSms: z
    .boolean()
    .describe('Allows `POST /1.1/requestSmsCode`, which sends codes that belong to no account.'),
  captchaForSms: z
    .boolean()
    .describe('Requires a solved captcha (`validate_token`) before a code is sent.'),
  hybridPush: z
    .boolean()
    .describe(
      'Sends to Android devices through the push services of their vendors. Commercial apps only.',
    ),
  forbidClientPush: z.boolean().describe('Refuses pushes that are sent with the app key.'),
  allowUserQuery: z.boolean().describe('Lets the app key list users.'),
  allowStrictUserQuery: z
    .boolean()
    .describe(
      'Lets the app key find users by `GET /1.1/users/strictlyQuery`. An import of users enables this option.',
    ),
  strictQueriesPerAddressPerHour: perHour.describe(
    'Maximum calls of `strictlyQuery` per network address and hour with the app key. Further calls get 429.',
  ),
  allowInstallationQuery: z.boolean().describe('Lets the app key list installations.'),
  allowInstallationDelete: z.boolean().describe('Lets the app key delete installations.'),
  allowRoleCreate: z.boolean().describe('Lets the app key create roles.'),
  maxRoles: z.int().min(0).max(100_000).describe('Maximum number of roles of the app.'),
  rolesPerAddressPerHour: perHour.describe(
    'Maximum roles that one network address may create per hour with the app key. Further calls get 429.',
  ),
  roleBytesPerAddressPerDay: perDay.describe(
    'Maximum bytes of roles that one network address may write per day with the app key. Further calls get 429.',
  ),
  roleBytes: z
    .int()
    .min(1024)
    .max(256 * 1024)
    .describe('Maximum size in bytes of a role that is written with the app key.'),
  pushCallsPerMinute: z
    .int()
    .min(1)
    .max(9600)
    .describe('Maximum push calls of the app per minute. Further calls get 429.'),
  dailyRecipientCap: z
    .int()
    .min(0)
    .max(1_000_000_000_000)
    .describe('Maximum recipients of the app per day. Further recipients are counted as `capped`.'),
  approvalAboveDevices: z
    .int()
    .min(1)
    .max(1_000_000_000)
    .nullable()
    .describe(
      'A push to more devices than this waits for the approval of a second person. Null means that no approval is needed.',
    ),
  devicePushesPerDay: z
    .int()
    .min(1)
    .max(1000)
    .nullable()
    .describe(
      'Maximum pushes per device and day (UTC), not counting transactional pushes. Further recipients are counted as `capped`. Null means no limit.',
    ),
  quietHours: z
    .string()
    .refine(isQuietHours, quietHoursForm)
    .nullable()
    .describe(
      'Hours in which a device gets only transactional pushes, in its own `timeZone` (`22:00-08:00`). Other pushes wait until the hours end. Null means no quiet hours.',
    ),
  defaultTimeZone: z
    .string()
    .refine(isTimeZone, 'expected a time zone, such as "Asia/Shanghai"')
    .describe(
      'Time zone of devices without a valid `timeZone`, for pushes at local time and quiet hours.',
    ),
  installationValidityDays: z
    .int()
    .min(1)
    .max(365)
    .describe('Days without an update after which an installation gets no pushes and is deleted.'),
  installationsPerAddressPerHour: perHour.describe(
    'Maximum installations that one network address may create per hour with the app key. Further calls get 429. Many phones of a carrier share one address.',
  ),
  installationBytesPerAddressPerDay: perDay.describe(
    'Maximum bytes of installations that one network address may write per day with the app key. Further calls get 429.',
  ),
  installationBytes: z
    .int()
    .min(1024)
    .max(128 * 1024)
    .describe(
      'Maximum size in bytes of an installation that is written with the app key. With the master key, the maximum is 128 KB.',
    ),
  functionsUrl: functionsUrl
    .nullable()
    .describe('Base URL of the host that runs the cloud functions and hooks of the app.'),
  functionsStagingUrl: functionsUrl
    .nullable()
    .describe('Base URL of the host for calls with `X-LC-Prod: 0`.'),
  functionsMasterKey: z
    .boolean()
    .describe(
      'Sends the master key with the request for the list of hooks. Needed for hosts that refuse the hook key (engines for Go and Java).',
    ),
  authPlatforms: authPlatforms.describe(
    'Credentials by platform name. The service checks access tokens of these platforms.',
  ),
  checkedPlatformsOnly: z
    .boolean()
    .describe('Refuses accounts of platforms that are not in `authPlatforms`.'),
  trustUnverifiedNumbers: z
    .boolean()
    .describe(
      'Lets the owner of a phone number log in to an account with this number, even if the number was never verified. True by default for an app that moves in with its id.',
    ),
  concealUsers: z
    .boolean()
    .describe(
      'Gives requests for unknown users, addresses and numbers the same replies as requests for existing users.',
    ),
  mailTemplates: z
    .record(z.string().max(64), mailTemplate)
    .describe(
      'Texts of the mails `verifyEmail` and `resetPassword`, with the variables `appname`, `email`, `username` and `link`.',
    ),
  smsBalance: z
    .number()
    .min(0)
    .max(1_000_000_000)
    .nullable()
    .describe(
      'Limit of the money that messages may cost: 0.05 a message after the first hundred, 0.5 abroad. Each message is subtracted, and at 0 messages are refused. Creating or changing templates then requires a balance of 200. `null` means no limit.',
    ),
  captchasPerAddressPerHour: perHour.describe(
    'Maximum captchas that one network address may request per hour with the app key. Further calls get 429.',
  ),
  signUpsPerAddressPerHour: perHour.describe(
    'Maximum sign-ups per network address and hour with the app key. Further calls get 429.',
  ),
  signUpBytesPerAddressPerDay: perDay.describe(
    'Maximum bytes that one network address may add to users per day with the app key, by sign-ups and changes. Further calls get 429.',
  ),
  userBytes: z
    .int()
    .min(1024)
    .max(maxUserBytes)
    .describe('Maximum size in bytes of a user that is written with the app key.'),
  smsCountries: z
    .array(z.string().refine(isCountry, 'expected a country, such as "CN" (ISO 3166)'))
    .min(1)
    .max(250)
    .nullable()
    .describe('Countries (ISO 3166) whose numbers may get messages. Null means all countries.'),
  smsPerAddressPerHour: z
    .int()
    .min(0)
    .max(1_000_000)
    .describe('Maximum messages that one network address may request per hour.'),
  smsPerAppPerDay: z
    .int()
    .min(0)
    .max(1_000_000_000)
    .describe('Maximum messages of the app per day.'),
  reportOpens: z
    .boolean()
    .describe(
      'Adds the id of the push to each message as the custom member `_push`, and lets apps report with it that a message was received, opened or dismissed.',
    ),
  receiptUrlGeneration: z
    .int()
    .min(0)
    .max(1_000_000)
    .describe(
      'Changing this number changes the secret in the URLs that gateways send receipts to. Receipts with an earlier secret are refused. Use it if a secret was leaked.',
    ),
  unknownOutcome: unknownOutcome.describe(
    'What to do if a request got no response and the device would show a repeat as a second message: send again (`repeat`), or count the recipient as failed (`fail`).',
  ),
};

/** Schema of a change of options. All options are optional, and other members are refused. */
export const appOptionsPatch = z.strictObject(optionShape).partial();
export type AppOptionsPatch = z.infer<typeof appOptionsPatch>;

/**
 * Options that the role operator may change. All other options need the role owner, because they
 * would let an operator read secrets, take over accounts, spend money, or bypass an approval
 * (protocol/admin-api.md#options-of-an-app). A test checks that each option is in one of the two
 * lists.
 */
export const operatorOptions: ReadonlySet<string> = new Set<keyof AppOptions>([
  'emailVerification',
  'forbidUnverifiedEmailLogin',
  'forbidUnverifiedPhoneLogin',
  'reloginAfterPasswordChange',
  'concealUsers',
  'generalSms',
  'captchaForSms',
  'hybridPush',
  'pushCallsPerMinute',
  'dailyRecipientCap',
  'devicePushesPerDay',
  'quietHours',
  'defaultTimeZone',
  'installationValidityDays',
  'unknownOutcome',
  'allowRoleCreate',
  'maxRoles',
  'rolesPerAddressPerHour',
  'roleBytesPerAddressPerDay',
  'roleBytes',
  'strictQueriesPerAddressPerHour',
  'installationsPerAddressPerHour',
  'installationBytesPerAddressPerDay',
  'installationBytes',
  'userBytes',
  'captchasPerAddressPerHour',
  'signUpsPerAddressPerHour',
  'signUpBytesPerAddressPerDay',
  'receiptUrlGeneration',
  'reportOpens',
]);

/** Options that only owners may change. */
export const ownerOptions: ReadonlySet<string> = new Set<keyof AppOptions>([
  // They decide which server gets the hook key and the data of users.
  'functionsUrl',
  'functionsStagingUrl',
  'functionsMasterKey',
  // They decide who can log in to an account. The mail templates contain the link that resets a
  // password.
  'authPlatforms',
  'checkedPlatformsOnly',
  'trustUnverifiedNumbers',
  'mailTemplates',
  // They decide which pushes need an approval. Everyone who has the app has its app key.
  'approvalAboveDevices',
  'forbidClientPush',
  // They decide what everyone who has the app may read and delete.
  'allowUserQuery',
  'allowStrictUserQuery',
  'allowInstallationQuery',
  'allowInstallationDelete',
  // They decide how much money is spent.
  'phoneVerification',
  'smsCountries',
  'smsBalance',
  'smsPerAddressPerHour',
  'smsPerAppPerDay',
]);

/** Schema of all options with their values. */
export const allOptions = z.strictObject(optionShape);
export type AppOptions = z.infer<typeof allOptions>;

export type Edition = 'home' | 'international';
export type Plan = 'commercial' | 'development';

/** Limits by plan (protocol/push.md#limits). */
export const planLimits = {
  commercial: {
    pushCallsPerMinute: 600,
    maxPushCallsPerMinute: 9600,
    dailyRecipientCap: 1_000_000,
    pending: 1000,
    maxValidityDays: 365,
  },
  development: {
    pushCallsPerMinute: 60,
    maxPushCallsPerMinute: 60,
    dailyRecipientCap: 10_000,
    pending: 10,
    maxValidityDays: 90,
  },
} as const;

/**
 * Default options of an app that moves in with its id (protocol/admin-api.md#apps). This service
 * has not verified the phone numbers of its users.
 */
export const movedInOptions: Readonly<AppOptionsPatch> = { trustUnverifiedNumbers: true };

/** Returns all options: the defaults of the plan, overridden by the options that are set. */
export function effectiveOptions(plan: Plan, set: AppOptionsPatch): AppOptions {
  const limits = planLimits[plan];
  return {
    emailVerification: false,
    forbidUnverifiedEmailLogin: false,
    phoneVerification: false,
    forbidUnverifiedPhoneLogin: false,
    reloginAfterPasswordChange: true,
    generalSms: true,
    captchaForSms: false,
    hybridPush: false,
    forbidClientPush: true,
    allowUserQuery: false,
    allowStrictUserQuery: false,
    strictQueriesPerAddressPerHour: 2000,
    allowInstallationQuery: false,
    allowInstallationDelete: false,
    allowRoleCreate: true,
    maxRoles: 10_000,
    rolesPerAddressPerHour: 500,
    roleBytesPerAddressPerDay: 16 * 1024 * 1024,
    roleBytes: 16 * 1024,
    pushCallsPerMinute: limits.pushCallsPerMinute,
    dailyRecipientCap: limits.dailyRecipientCap,
    approvalAboveDevices: null,
    devicePushesPerDay: null,
    quietHours: null,
    defaultTimeZone: 'UTC',
    installationValidityDays: 90,
    installationsPerAddressPerHour: 200_000,
    installationBytesPerAddressPerDay: 256 * 1024 * 1024,
    installationBytes: 16 * 1024,
    functionsUrl: null,
    functionsStagingUrl: null,
    functionsMasterKey: false,
    authPlatforms: {},
    checkedPlatformsOnly: false,
    trustUnverifiedNumbers: false,
    concealUsers: false,
    mailTemplates: {},
    smsBalance: null,
    captchasPerAddressPerHour: 2000,
    signUpsPerAddressPerHour: 500,
    signUpBytesPerAddressPerDay: 32 * 1024 * 1024,
    userBytes: 128 * 1024,
    smsCountries: null,
    smsPerAddressPerHour: 500,
    smsPerAppPerDay: 100_000,
    unknownOutcome: 'repeat',
    reportOpens: false,
    receiptUrlGeneration: 0,
    ...set,
  };
}

/** Returns a hint about an option that the plan does not allow, or undefined. */
export function planProblem(plan: Plan, set: AppOptionsPatch): string | undefined {
  const limits = planLimits[plan];
  if ((set.pushCallsPerMinute ?? 0) > limits.maxPushCallsPerMinute)
    return `pushCallsPerMinute is at most ${limits.maxPushCallsPerMinute} on a ${plan} app`;
  if ((set.installationValidityDays ?? 0) > limits.maxValidityDays)
    return `installationValidityDays is at most ${limits.maxValidityDays} on a ${plan} app`;
  if (plan === 'development' && (set.dailyRecipientCap ?? 0) > limits.dailyRecipientCap)
    return `dailyRecipientCap is at most ${limits.dailyRecipientCap} on a development app`;
  if (plan === 'development' && set.hybridPush)
    return 'hybridPush is available to commercial apps only';
  return undefined;
}

/** Application with its keys and effective options. */
export interface App {
  appId: string;
  name: string;
  edition: Edition;
  plan: Plan;
  appKey: string;
  masterKey: string;
  hookKey: string;
  /** Replaced keys by name. */
  oldKeys?: { [K in KeyName]?: OldKey | undefined } | undefined;
  options: AppOptions;
  createdAt: Date;
  updatedAt: Date;
}
