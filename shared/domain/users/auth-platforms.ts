import { z } from 'zod';
import { issueText } from '../errors/issue-text.ts';
import { hasNoUser, isBaseUrl } from '../urls.ts';

/**
 * The option `authPlatforms` (protocol/admin-api.md#platform-checks) configures the token checks of platforms. Of the
 * platforms without settings, those with identity tokens are refused; others are not checked, or refused with the option
 * `checkedPlatformsOnly` (protocol/users.md#checked-platforms).
 */
const texts = z.union([z.string().min(1), z.array(z.string().min(1)).min(1)]);
const httpUrl = z.url({ protocol: /^https?$/ });
const endpoint = httpUrl.refine(isBaseUrl, 'expected an address without user, query and fragment');

/** Asymmetric signatures only: no shared secrets and no `none`. */
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
  /** Accepted audiences: one or several client ids of the app. */
  audience: texts,
  issuer: texts.default('https://appleid.apple.com'),
  algorithms: z.array(z.enum(algorithms)).min(1).default(['RS256', 'ES256']),
  /** Key set; without it, the keys of `jwksUrl`. */
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

/** Ids on weibo are the same for every app, so a token must name ours. */
const weibo = accessTokens('https://api.weibo.com').extend({ appId: z.string().min(1) });

export type PlatformCheck =
  | { kind: 'identity'; settings: IdentityTokenCheck }
  | { kind: 'weixin' | 'qq' | 'weibo'; settings: AccessTokenCheck };

const shapes = {
  weixin: accessTokens('https://api.weixin.qq.com'),
  qq: accessTokens('https://graph.qq.com'),
  weibo,
} as const;

/** Confirmation of an account by its platform, with the UnionID if the platform returns it. */
export interface PlatformConfirmation {
  unionid?: string | undefined;
}

/** Parses the settings of a platform. Throws a ZodError for invalid ones. */
function parseCheck(platform: string, settings: unknown): PlatformCheck {
  if (platform === 'weixin' || platform === 'qq' || platform === 'weibo')
    return { kind: platform, settings: shapes[platform].parse(settings, { error: issueText }) };
  return { kind: 'identity', settings: identityTokens.parse(settings, { error: issueText }) };
}

/**
 * Returns the check of a platform. Settings that an older version accepted and this one does not are `unusable`: every
 * login fails.
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

/** Tells whether a platform uses identity tokens (protocol/labels.md#platforms). */
export const isIdentityTokenPlatform = (platform: string): boolean => platform.startsWith('lc_');

/** Returns a hint about an invalid option, which quotes no value; undefined for a valid one. */
export function authPlatformHint(option: Record<string, unknown>): string | undefined {
  for (const [platform, settings] of Object.entries(option)) {
    if (!/^[A-Za-z][A-Za-z0-9_]{0,63}$/.test(platform)) return 'authPlatforms: a platform has a wrong name';
    try {
      parseCheck(platform, settings);
    } catch (error) {
      const issue = error instanceof z.ZodError ? error.issues[0] : undefined;
      return `authPlatforms.${[platform, ...(issue?.path ?? [])].join('.')}: ${issue?.message ?? 'wrong'}`;
    }
  }
  return undefined;
}
