import { z } from 'zod';
import { maxUserBytes } from './user-members.ts';

const httpUrl = z.url({ protocol: /^https?$/ });

/** Paths of calls are put behind it; who may call is said by keys, not by its user part. */
const functionsUrl = httpUrl.refine((text) => {
  if (!URL.canParse(text)) return false;
  const { username, password, search, hash } = new URL(text);
  return `${username}${password}${search}${hash}` === '';
}, 'expected an address without user, query and fragment');

/** Credentials of platforms whose access tokens are checked; each platform's members are its own. */
const authPlatforms = z.record(z.string().max(64), z.record(z.string().max(64), z.unknown()));

const mailTemplate = z.strictObject({
  subject: z.string().max(500).optional(),
  html: z.string().max(100_000).optional(),
  text: z.string().max(100_000).optional(),
});
export type MailTemplate = z.infer<typeof mailTemplate>;

/**
 * What becomes of a recipient whose request to a gateway got no answer, where nothing on the device hides a repeat:
 * it is sent to once more, or counted `failed` with the reason `unknown`.
 */
const unknownOutcome = z.enum(['repeat', 'fail'], 'expected "repeat" or "fail"');
export type UnknownOutcome = z.infer<typeof unknownOutcome>;

/** Members every app may set, with their types (contract.md "Options of an app"). */
const optionShape = {
  emailVerification: z.boolean(),
  forbidUnverifiedEmailLogin: z.boolean(),
  reloginAfterPasswordChange: z.boolean(),
  generalSms: z.boolean(),
  captchaForSms: z.boolean(),
  hybridPush: z.boolean(),
  forbidClientPush: z.boolean(),
  allowUserQuery: z.boolean(),
  allowInstallationQuery: z.boolean(),
  allowInstallationDelete: z.boolean(),
  allowRoleCreate: z.boolean(),
  maxRoles: z.int().min(0).max(100_000),
  pushCallsPerMinute: z.int().min(1).max(9600),
  dailyRecipientCap: z.int().min(0).max(1_000_000_000_000),
  installationValidityDays: z.int().min(1).max(365),
  functionsUrl: functionsUrl.nullable(),
  functionsStagingUrl: functionsUrl.nullable(),
  authPlatforms,
  checkedPlatformsOnly: z.boolean(),
  trustUnverifiedNumbers: z.boolean(),
  concealUsers: z.boolean(),
  mailTemplates: z.record(z.string().max(64), mailTemplate),
  smsBalance: z.number().min(0).max(1_000_000_000),
  signUpsPerAddressPerHour: z.int().min(0).max(1_000_000),
  signUpBytesPerAddressPerDay: z.int().min(0).max(1_000_000_000),
  userBytes: z.int().min(1024).max(maxUserBytes),
  smsPerAddressPerHour: z.int().min(0).max(1_000_000),
  smsPerAppPerDay: z.int().min(0).max(1_000_000_000),
  unknownOutcome,
};

/** What a caller may send: any of the options, nothing else. */
export const appOptionsPatch = z.strictObject(optionShape).partial();
export type AppOptionsPatch = z.infer<typeof appOptionsPatch>;

const allOptions = z.strictObject(optionShape);
export type AppOptions = z.infer<typeof allOptions>;

export type Edition = 'home' | 'international';
export type Plan = 'commercial' | 'development';

/** Numbers that the plan of an app decides (push.md "Limits"). */
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
 * Options that an app begins with which keeps its id from elsewhere, where its own do not say otherwise (contract.md
 * "Options of an app"): its users signed up where numbers were not verified here.
 */
export const movedInOptions: Readonly<AppOptionsPatch> = { trustUnverifiedNumbers: true };

/** Every option with its default for this plan, overlaid with what was set. */
export function effectiveOptions(plan: Plan, set: AppOptionsPatch): AppOptions {
  const limits = planLimits[plan];
  return {
    emailVerification: false,
    forbidUnverifiedEmailLogin: false,
    reloginAfterPasswordChange: true,
    generalSms: true,
    captchaForSms: false,
    hybridPush: false,
    forbidClientPush: true,
    allowUserQuery: false,
    allowInstallationQuery: false,
    allowInstallationDelete: false,
    allowRoleCreate: true,
    maxRoles: 10_000,
    pushCallsPerMinute: limits.pushCallsPerMinute,
    dailyRecipientCap: limits.dailyRecipientCap,
    installationValidityDays: 90,
    functionsUrl: null,
    functionsStagingUrl: null,
    authPlatforms: {},
    checkedPlatformsOnly: false,
    trustUnverifiedNumbers: false,
    concealUsers: false,
    mailTemplates: {},
    smsBalance: 200,
    signUpsPerAddressPerHour: 500,
    signUpBytesPerAddressPerDay: 32 * 1024 * 1024,
    userBytes: 128 * 1024,
    smsPerAddressPerHour: 500,
    smsPerAppPerDay: 100_000,
    unknownOutcome: 'repeat',
    ...set,
  };
}

/** What the plan forbids among the options set: a sentence, or undefined when all is well. */
export function planProblem(plan: Plan, set: AppOptionsPatch): string | undefined {
  const limits = planLimits[plan];
  if ((set.pushCallsPerMinute ?? 0) > limits.maxPushCallsPerMinute)
    return `pushCallsPerMinute is at most ${limits.maxPushCallsPerMinute} on a ${plan} app`;
  if ((set.installationValidityDays ?? 0) > limits.maxValidityDays)
    return `installationValidityDays is at most ${limits.maxValidityDays} on a ${plan} app`;
  if (plan === 'development' && (set.dailyRecipientCap ?? 0) > limits.dailyRecipientCap)
    return `dailyRecipientCap is at most ${limits.dailyRecipientCap} on a development app`;
  if (plan === 'development' && set.hybridPush) return 'hybridPush is available to commercial apps only';
  return undefined;
}

/** One application with its keys and effective options, as every process holds it in memory. */
export interface App {
  appId: string;
  name: string;
  edition: Edition;
  plan: Plan;
  appKey: string;
  masterKey: string;
  hookKey: string;
  options: AppOptions;
  createdAt: Date;
  updatedAt: Date;
}
