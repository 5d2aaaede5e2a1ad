import type { SchemaField } from '../../../kit/form/schema.ts';

/** Options by topic, in the order of the page. Unknown options come last. */
const groups = {
  push: [
    'hybridPush',
    'forbidClientPush',
    'pushCallsPerMinute',
    'dailyRecipientCap',
    'approvalAboveDevices',
    'installationValidityDays',
    'devicePushesPerDay',
    'quietHours',
    'defaultTimeZone',
    'unknownOutcome',
    'receiptUrlGeneration',
  ],
  rights: [
    'allowUserQuery',
    'allowStrictUserQuery',
    'strictQueriesPerAddressPerHour',
    'allowInstallationQuery',
    'allowInstallationDelete',
    'allowRoleCreate',
    'maxRoles',
    'rolesPerAddressPerHour',
    'roleBytesPerAddressPerDay',
    'roleBytes',
    'installationsPerAddressPerHour',
    'installationBytesPerAddressPerDay',
    'installationBytes',
  ],
  accounts: [
    'emailVerification',
    'forbidUnverifiedEmailLogin',
    'phoneVerification',
    'forbidUnverifiedPhoneLogin',
    'reloginAfterPasswordChange',
    'concealUsers',
    'trustUnverifiedNumbers',
    'checkedPlatformsOnly',
    'authPlatforms',
    'userBytes',
    'signUpsPerAddressPerHour',
    'signUpBytesPerAddressPerDay',
  ],
  messages: [
    'generalSms',
    'captchaForSms',
    'captchasPerAddressPerHour',
    'smsBalance',
    'smsCountries',
    'smsPerAddressPerHour',
    'smsPerAppPerDay',
    'mailTemplates',
  ],
  functions: ['functionsUrl', 'functionsStagingUrl', 'functionsMasterKey'],
} as const;

export type GroupName = keyof typeof groups | 'others';

/** Returns the options by topic. Leaves out empty topics. */
export function groupsOf(
  fields: readonly SchemaField[],
): { name: GroupName; fields: SchemaField[] }[] {
  const fieldOf = (option: string) => fields.find(({ name }) => name === option);
  const known = Object.entries(groups) as [GroupName, readonly string[]][];
  const named = new Set(known.flatMap(([, options]) => options));
  return [
    ...known.map(([name, options]) => ({
      name,
      fields: options.map(fieldOf).filter((field) => field !== undefined),
    })),
    { name: 'others' as const, fields: fields.filter(({ name }) => !named.has(name)) },
  ].filter((group) => group.fields.length > 0);
}
