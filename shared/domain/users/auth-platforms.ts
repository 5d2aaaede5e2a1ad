import { z } from 'zod';
import { hasNoUser, isBaseUrl } from '../addresses.ts';
import { issueText } from '../errors/issue-text.ts';
import { isJsonObject, type JsonObject } from '../json.ts';

/**
 * The option `authPlatforms` configures how the tokens of platforms are checked
 * (protocol/admin-api.md#platform-checks). Platforms without settings that use identity tokens are
 * refused. Other platforms without settings are not checked, or are refused with the option
 * `checkedPlatformsOnly` (protocol/users.md#checked-platforms).
 */
const texts = z.union([z.string().min(1), z.array(z.string().min(1)).min(1)]);
const httpUrl = z.url({ protocol: /^https?$/ });
const endpoint = httpUrl.refine(isBaseUrl, 'expected an address without user, query and fragment');

/** Only asymmetric signatures. Shared secrets and `none` are not allowed. */
const algorithms = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
] as const;

const identityTokens = z.looseObject({
  /** Accepted audiences: client ids of the app. */
  audience: texts,
  issuer: texts.default('https://appleid.apple.com'),
  algorithms: z.array(z.enum(algorithms)).min(1).default(['RS256', 'ES256']),
  /** Key set. If absent, the keys are loaded from `jwksUrl`. */
  jwks: z.looseObject({ keys: z.array(z.looseObject({ kty: z.string() })).min(1) }).optional(),
  jwksUrl: httpUrl
    .refine(hasNoUser, 'expected an address without user')
    .default('https://appleid.apple.com/auth/keys'),
  ca: z.string().optional(),
});
export type IdentityTokenCheck = z.infer<typeof identityTokens>;

const accessTokens = (usual: string) =>
  z.looseObject({
    endpoint: endpoint.default(usual),
    ca: z.string().optional(),
    appId: z.string().optional(),
  });
export type AccessTokenCheck = z.infer<ReturnType<typeof accessTokens>>;

/** Ids of weibo users are the same in all apps, so a token must name our app. */
const weibo = accessTokens('https://api.weibo.com').extend({ appId: z.string().min(1) });

/** Id and secret of a mini program. They exchange the code of a login for its account. */
const miniProgram = (usual: string) =>
  accessTokens(usual).extend({ appId: z.string().min(1), appSecret: z.string().min(1) });
export type CodeExchange = z.infer<ReturnType<typeof miniProgram>>;

/** TapTap. Requests are signed with the `mac_key` of the entry. */
const tapTap = accessTokens('https://open.tapapis.cn').extend({ clientId: z.string().min(1) });
export type MacCheck = z.infer<typeof tapTap>;

/** Accepts the usual name of a setting instead of the platform's own name. */
const renamed = (settings: unknown, usual: string, own: string): unknown =>
  isJsonObject(settings) && Object.hasOwn(settings, usual)
    ? { [own]: settings[usual], ...settings }
    : settings;

const parsed = <T>(shape: z.ZodType<T>, settings: unknown): T =>
  shape.parse(settings, { error: issueText });

/** Checks of entries by the name of their platform. */
const checks = {
  weixin: (settings: unknown) =>
    ({
      kind: 'weixin',
      settings: parsed(accessTokens('https://api.weixin.qq.com'), settings),
    }) as const,
  qq: (settings: unknown) =>
    ({ kind: 'qq', settings: parsed(accessTokens('https://graph.qq.com'), settings) }) as const,
  weibo: (settings: unknown) => ({ kind: 'weibo', settings: parsed(weibo, settings) }) as const,
  taptap: (settings: unknown) =>
    ({ kind: 'mac', settings: parsed(tapTap, renamed(settings, 'appId', 'clientId')) }) as const,
  lc_weapp: (settings: unknown) =>
    ({
      kind: 'code',
      settings: parsed(miniProgram('https://api.weixin.qq.com'), settings),
    }) as const,
  lc_qqapp: (settings: unknown) =>
    ({ kind: 'code', settings: parsed(miniProgram('https://api.q.qq.com'), settings) }) as const,
};
const identityCheck = (settings: unknown) =>
  ({ kind: 'identity', settings: parsed(identityTokens, settings) }) as const;

export type PlatformCheck = ReturnType<(typeof checks)[keyof typeof checks] | typeof identityCheck>;

/** Confirmation of an account by its platform. */
export interface PlatformConfirmation {
  /** UnionID, if the platform returns it. */
  unionid?: string | undefined;
  /**
   * Entry to store instead of the entry that the client sent. It contains the id that the platform
   * returned.
   */
  completed?: JsonObject;
}

/** Parses the settings of a platform. Throws a ZodError if they are invalid. */
const parseCheck = (platform: string, settings: unknown): PlatformCheck =>
  (isNamed(platform) ? checks[platform] : identityCheck)(settings);

const isNamed = (platform: string): platform is keyof typeof checks =>
  Object.hasOwn(checks, platform);

/**
 * Returns the check of a platform. If the settings were stored by an older version and are invalid
 * now, returns `unusable`: all logins then fail.
 */
export function checkOf(
  option: Record<string, unknown>,
  platform: string,
): PlatformCheck | 'unusable' | undefined {
  if (!Object.hasOwn(option, platform)) return undefined;
  try {
    return parseCheck(platform, option[platform]);
  } catch {
    return 'unusable';
  }
}

/**
 * True if accounts of a platform are refused unless `authPlatforms` configures it. This applies to
 * platforms with identity tokens and to mini programs (protocol/labels.md#platforms).
 */
export const isAlwaysChecked = (platform: string): boolean => platform.startsWith('lc_');

/** Returns a hint about an invalid option; undefined if it is valid. The hint quotes no value. */
export function authPlatformHint(option: Record<string, unknown>): string | undefined {
  for (const [platform, settings] of Object.entries(option)) {
    if (!/^[A-Za-z][A-Za-z0-9_]{0,63}$/.test(platform))
      return 'authPlatforms: a platform has a wrong name';
    try {
      parseCheck(platform, settings);
    } catch (error) {
      const issue = error instanceof z.ZodError ? error.issues[0] : undefined;
      return `authPlatforms.${[platform, ...(issue?.path ?? [])].join('.')}: ${issue?.message ?? 'wrong'}`;
    }
  }
  return undefined;
}
