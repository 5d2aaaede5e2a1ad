import { createHmac, randomBytes } from 'node:crypto';
import { z } from 'zod';
import { Refusal } from '../../../../shared/domain/errors/errors.ts';
import type { JsonObject } from '../../../../shared/domain/json.ts';
import { identityOf } from '../../../../shared/domain/users/auth-data.ts';
import type {
  AccessTokenCheck,
  MacCheck,
  PlatformConfirmation,
} from '../../../../shared/domain/users/auth-platforms.ts';
import { formPost, type HttpRequest } from '../../../../shared/http/client.ts';
import { type AnswerForm, codeText, type PlatformClient } from './platform-clients.ts';

/** Access token to check, with the app's settings for its platform. */
interface AccessTokenRequest {
  platform: 'weixin' | 'qq' | 'weibo';
  entry: JsonObject;
  settings: AccessTokenCheck;
}

/** Id and token as the client sent them. */
interface TokenClaim {
  uid: string;
  token: string;
  hasUnion: boolean;
}

/**
 * Asks a platform whether a token belongs to the account that the client named. Returns undefined
 * if it does not. Throws error 503 if the platform gives no clear answer.
 */
export async function checkAccessToken(
  client: PlatformClient,
  { platform, entry, settings }: AccessTokenRequest,
): Promise<PlatformConfirmation | undefined> {
  const { access_token: token } = entry;
  if (typeof token !== 'string' || token === '') return undefined;
  const claim = {
    uid: identityOf(platform, entry).uid,
    token,
    hasUnion: entry.unionid !== undefined,
  };
  const check = { weixin: checkWeixin, qq: checkQq, weibo: checkWeibo }[platform];
  return check(client, settings, claim);
}

const get = (path: string): HttpRequest => ({ method: 'GET', path });
const query = (members: Record<string, string>): string => new URLSearchParams(members).toString();

/**
 * Error codes of WeChat that refuse a token: token invalid (40001, 40014), missing (41001), expired
 * (42001) or ended by a new password (42007); openid invalid (40003) or missing (41009); scope not
 * granted (48001, 50001).
 */
const weixinRefusals = new Set('40001 40003 40014 41001 41009 42001 42007 48001 50001'.split(' '));
const weixinForm = <T>(reply: z.ZodType<T>): AnswerForm<T> => ({
  reply,
  codeOf: ({ errcode }) => codeText(errcode),
  refusals: weixinRefusals,
});
const weixinToken = weixinForm(z.object({ errcode: z.literal(0) }));
const weixinUser = weixinForm(z.object({ openid: z.string(), unionid: z.string().optional() }));

/** Checks token and openid by `sns/auth`, or by `sns/userinfo`, which also returns the UnionID. */
async function checkWeixin(
  client: PlatformClient,
  { endpoint, ca }: AccessTokenCheck,
  { uid, token, hasUnion }: TokenClaim,
): Promise<PlatformConfirmation | undefined> {
  const at = { baseUrl: endpoint, ca };
  const members = query({ access_token: token, openid: uid });
  if (!hasUnion)
    return (await client.ask(at, get(`/sns/auth?${members}`), weixinToken)) ? {} : undefined;
  const user = await client.ask(at, get(`/sns/userinfo?${members}`), weixinUser);
  return user?.openid === uid ? { unionid: user.unionid } : undefined;
}

/**
 * Replies of QQ. Codes that refuse a token: missing (100006), invalid, expired, revoked, not
 * verified; user did not authorize (100030).
 */
const qqForm: AnswerForm<{ client_id: string; openid: string; unionid?: string | undefined }> = {
  reply: z.object({ client_id: z.string(), openid: z.string(), unionid: z.string().optional() }),
  codeOf: ({ error, ret }) => codeText(error) ?? codeText(ret),
  refusals: new Set('100006 100007 100013 100014 100015 100016 100030'.split(' ')),
};

/** Checks a token by `oauth2.0/me`, which returns the token's account and app. */
async function checkQq(
  client: PlatformClient,
  { endpoint, ca, appId }: AccessTokenCheck,
  { uid, token }: TokenClaim,
): Promise<PlatformConfirmation | undefined> {
  const path = `/oauth2.0/me?${query({ access_token: token, fmt: 'json', unionid: '1' })}`;
  const reply = await client.ask({ baseUrl: endpoint, ca }, get(path), qqForm);
  if (reply?.openid !== uid || (appId !== undefined && reply.client_id !== appId)) return undefined;
  return { unionid: reply.unionid };
}

const idLike = z.union([z.string(), z.number(), z.bigint()]).transform(String);
const weiboReply = z.object({ uid: idLike, appkey: idLike, expire_in: z.number() });
/**
 * Replies of Weibo. Codes that refuse a token: missing or invalid, used, expired, revoked,
 * rejected; authorization ended.
 */
const weiboForm: AnswerForm<z.infer<typeof weiboReply>> = {
  reply: weiboReply,
  codeOf: ({ error_code: code, error }) => codeText(code) ?? codeText(error),
  refusals: new Set(
    '21301 21313 21314 21315 21316 21317 21319 21327 21332 invalid_access_token expired_token'.split(
      ' ',
    ),
  ),
};

/**
 * Checks a token by `oauth2/get_token_info`, which returns the token's account, app and remaining
 * seconds.
 */
async function checkWeibo(
  client: PlatformClient,
  { endpoint, ca, appId }: AccessTokenCheck,
  { uid, token }: TokenClaim,
): Promise<PlatformConfirmation | undefined> {
  const request = formPost('/oauth2/get_token_info', { access_token: token });
  const reply = await client.ask({ baseUrl: endpoint, ca }, request, weiboForm);
  const isValid = reply?.uid === uid && reply.appkey === appId && reply.expire_in > 0;
  return isValid ? {} : undefined;
}

/** MAC token to check, with the app's settings for its platform. */
interface MacTokenRequest {
  platform: string;
  entry: JsonObject;
  settings: MacCheck;
  /** Time in epoch milliseconds. It is part of the signed text. */
  nowMs: number;
}

/** Hash functions of MAC tokens, by their names in `mac_algorithm`. */
const hashOf = new Map([
  ['hmac-sha-1', 'sha1'],
  ['hmac-sha-256', 'sha256'],
]);

const account = z.object({
  success: z.literal(true),
  data: z.object({ openid: z.string(), unionid: z.string().optional() }),
});
const failure = z.object({
  success: z.literal(false),
  data: z.looseObject({ error: z.unknown() }),
});

/**
 * Replies of TapTap. Errors `invalid_…` concern Carillon's client id, clock or signature. They say
 * nothing about the user.
 */
const form: AnswerForm<z.infer<typeof account>> = {
  reply: account,
  codeOf: (body) => {
    const found = failure.safeParse(body);
    return found.success ? (codeText(String(found.data.data.error)) ?? 'unnamed') : undefined;
  },
  refusals: new Set([
    'access_denied',
    'forbidden',
    'insufficient_scope',
    'invalid_grant',
    'invalid_token',
    'not_found',
    'unauthorized',
  ]),
};

/**
 * Form for the first path. There, a missing scope means only that the second path must be tried.
 */
const firstForm = { ...form, refusals: form.refusals.difference(new Set(['insufficient_scope'])) };

/** Paths of the account, by the scope that the user granted: `basic_info` or `public_profile`. */
const paths = [
  ['/account/basic-info/v1', firstForm],
  ['/account/profile/v1', form],
] as const;

/**
 * Checks a MAC token of TapTap (`kid`, `mac_key`). A request signed with the key returns the
 * account of the token. Returns undefined if it is not the account of the entry. Throws error 503
 * if the platform gives no clear answer (protocol/users.md#taptap).
 */
export async function checkMacToken(
  client: PlatformClient,
  { platform, entry, settings, nowMs }: MacTokenRequest,
): Promise<PlatformConfirmation | undefined> {
  const { kid = entry.access_token, mac_key: key, mac_algorithm: algorithm = 'hmac-sha-1' } = entry;
  const hash = typeof algorithm === 'string' ? hashOf.get(algorithm) : undefined;
  if (!isHeaderText(kid) || typeof key !== 'string' || key === '' || !hash) return undefined;
  const { endpoint: baseUrl, ca, clientId } = settings;
  let [isRefused, unknown]: [boolean, Refusal | undefined] = [false, undefined];
  for (const [path, answerForm] of paths) {
    const target = `${path}?${new URLSearchParams({ client_id: clientId })}`;
    const authorization = signature({ baseUrl, target, kid, key, hash, nowMs });
    const request = { method: 'GET', path: target, headers: { authorization } } as const;
    const found = await client.ask({ baseUrl, ca }, request, answerForm).catch((error: unknown) => {
      if (!(error instanceof Refusal)) throw error;
      return error;
    });
    if (found instanceof Refusal) unknown = found;
    else if (found) return accountOf(found, identityOf(platform, entry).uid);
    else isRefused = true;
  }
  if (unknown && !isRefused) throw unknown;
  return undefined;
}

const accountOf = (
  { data }: z.infer<typeof account>,
  uid: string,
): PlatformConfirmation | undefined =>
  data.openid === uid ? { unionid: data.unionid } : undefined;

/** Returns whether a value may be quoted in the header. */
const isHeaderText = (value: unknown): value is string =>
  typeof value === 'string' && /^[\x21\x23-\x5B\x5D-\x7E]{1,1024}$/.test(value);

interface SignedRequest {
  baseUrl: string;
  target: string;
  kid: string;
  key: string;
  hash: string;
  nowMs: number;
}

/** Returns the header `Authorization` of a GET (draft-ietf-oauth-v2-http-mac-01). */
function signature({ baseUrl, target, kid, key, hash, nowMs }: SignedRequest): string {
  const { protocol, hostname, port, pathname } = new URL(baseUrl);
  const [ts, nonce] = [String(Math.floor(nowMs / 1000)), randomBytes(12).toString('base64url')];
  const usualPort = protocol === 'https:' ? '443' : '80';
  const path = pathname.replace(/\/$/, '') + target;
  const text = `${[ts, nonce, 'GET', path, hostname, port || usualPort].join('\n')}\n\n`;
  const mac = createHmac(hash, key).update(text).digest('base64');
  return `MAC id="${kid}",ts="${ts}",nonce="${nonce}",mac="${mac}"`;
}
