import { z } from 'zod';
import type { JsonObject } from '../../../../shared/domain/json.ts';
import { identityOf } from '../../../../shared/domain/users/auth-data.ts';
import type {
  AccessTokenCheck,
  PlatformConfirmation,
} from '../../../../shared/domain/users/auth-platforms.ts';
import { formPost, type HttpRequest } from '../../../../shared/http/client.ts';
import { type AnswerForm, codeText, type PlatformClients } from './platform-clients.ts';

/** Access token to check, with the app's settings for its platform. */
export interface AccessTokenRequest {
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
 * Asks a platform whether a token belongs to the account that it came with. Returns undefined when it does not. Throws
 * 503 when the platform says neither yes nor no.
 */
export async function checkAccessToken(
  clients: PlatformClients,
  { platform, entry, settings }: AccessTokenRequest,
): Promise<PlatformConfirmation | undefined> {
  const { access_token: token } = entry;
  if (typeof token !== 'string' || token === '') return undefined;
  const claim = { uid: identityOf(platform, entry).uid, token, hasUnion: entry.unionid !== undefined };
  const check = { weixin: checkWeixin, qq: checkQq, weibo: checkWeibo }[platform];
  return check(clients, settings, claim);
}

const get = (path: string): HttpRequest => ({ method: 'GET', path });
const query = (members: Record<string, string>): string => new URLSearchParams(members).toString();

/**
 * Refusals of WeChat: token invalid (40001, 40014), missing (41001), expired (42001) or ended by a
 * new password (42007); openid invalid (40003) or missing (41009); scope not granted (48001,
 * 50001).
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
  clients: PlatformClients,
  { endpoint, ca }: AccessTokenCheck,
  { uid, token, hasUnion }: TokenClaim,
): Promise<PlatformConfirmation | undefined> {
  const at = { baseUrl: endpoint, ca };
  const members = query({ access_token: token, openid: uid });
  if (!hasUnion) return (await clients.ask(at, get(`/sns/auth?${members}`), weixinToken)) ? {} : undefined;
  const user = await clients.ask(at, get(`/sns/userinfo?${members}`), weixinUser);
  return user?.openid === uid ? { unionid: user.unionid } : undefined;
}

/**
 * Refusals of QQ: token missing (100006), invalid, expired, revoked, not verified; user did not
 * authorize (100030).
 */
const qqForm: AnswerForm<{ client_id: string; openid: string; unionid?: string | undefined }> = {
  reply: z.object({ client_id: z.string(), openid: z.string(), unionid: z.string().optional() }),
  codeOf: ({ error, ret }) => codeText(error) ?? codeText(ret),
  refusals: new Set('100006 100007 100013 100014 100015 100016 100030'.split(' ')),
};

/** Checks a token by `oauth2.0/me`, which returns its account and app. */
async function checkQq(
  clients: PlatformClients,
  { endpoint, ca, appId }: AccessTokenCheck,
  { uid, token }: TokenClaim,
): Promise<PlatformConfirmation | undefined> {
  const path = `/oauth2.0/me?${query({ access_token: token, fmt: 'json', unionid: '1' })}`;
  const reply = await clients.ask({ baseUrl: endpoint, ca }, get(path), qqForm);
  if (reply?.openid !== uid || (appId !== undefined && reply.client_id !== appId)) return undefined;
  return { unionid: reply.unionid };
}

const idLike = z.union([z.string(), z.number(), z.bigint()]).transform(String);
const weiboReply = z.object({ uid: idLike, appkey: idLike, expire_in: z.number() });
/**
 * Refusals of Weibo: token missing or invalid, used, expired, revoked, rejected, authorization
 * ended.
 */
const weiboForm: AnswerForm<z.infer<typeof weiboReply>> = {
  reply: weiboReply,
  codeOf: ({ error_code: code, error }) => codeText(code) ?? codeText(error),
  refusals: new Set(
    '21301 21313 21314 21315 21316 21317 21319 21327 21332 invalid_access_token expired_token'.split(' '),
  ),
};

/** Checks a token by `oauth2/get_token_info`, which returns its account, app and remaining seconds. */
async function checkWeibo(
  clients: PlatformClients,
  { endpoint, ca, appId }: AccessTokenCheck,
  { uid, token }: TokenClaim,
): Promise<PlatformConfirmation | undefined> {
  const request = formPost('/oauth2/get_token_info', { access_token: token });
  const reply = await clients.ask({ baseUrl: endpoint, ca }, request, weiboForm);
  const isValid = reply?.uid === uid && reply.appkey === appId && reply.expire_in > 0;
  return isValid ? {} : undefined;
}
