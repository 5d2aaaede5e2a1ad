import { z } from 'zod';
import type { JsonObject } from '../../../../shared/domain/json.ts';
import { identityOf } from '../../../../shared/domain/users/auth-data.ts';
import type {
  AccessTokenCheck,
  PlatformConfirmation,
} from '../../../../shared/domain/users/auth-platforms.ts';
import { formPost } from '../../../../shared/http/client.ts';
import type { PlatformClients } from './platform-clients.ts';

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
 * 503 when the platform cannot be reached.
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

const query = (members: Record<string, string>): string => new URLSearchParams(members).toString();

const weixinReply = z.object({
  errcode: z.number().optional(),
  openid: z.string().optional(),
  unionid: z.string().optional(),
});

/** Checks token and openid by `sns/auth`, or by `sns/userinfo`, which also returns the UnionID. */
async function checkWeixin(
  clients: PlatformClients,
  { endpoint, ca }: AccessTokenCheck,
  { uid, token, hasUnion }: TokenClaim,
): Promise<PlatformConfirmation | undefined> {
  const path = `${hasUnion ? '/sns/userinfo' : '/sns/auth'}?${query({ access_token: token, openid: uid })}`;
  const reply = weixinReply.safeParse(
    await clients.fetchJson({ baseUrl: endpoint, ca }, { method: 'GET', path }),
  );
  if (!reply.success || (reply.data.errcode ?? 0) !== 0) return undefined;
  if (hasUnion) return reply.data.openid === uid ? { unionid: reply.data.unionid } : undefined;
  return reply.data.errcode === 0 ? {} : undefined;
}

const qqReply = z.object({ client_id: z.string(), openid: z.string(), unionid: z.string().optional() });

/** Checks a token by `oauth2.0/me`, which returns its account and app. */
async function checkQq(
  clients: PlatformClients,
  { endpoint, ca, appId }: AccessTokenCheck,
  { uid, token }: TokenClaim,
): Promise<PlatformConfirmation | undefined> {
  const path = `/oauth2.0/me?${query({ access_token: token, fmt: 'json', unionid: '1' })}`;
  const reply = qqReply.safeParse(
    await clients.fetchJson({ baseUrl: endpoint, ca }, { method: 'GET', path }),
  );
  if (!reply.success || reply.data.openid !== uid) return undefined;
  if (appId !== undefined && reply.data.client_id !== appId) return undefined;
  return { unionid: reply.data.unionid };
}

const idLike = z.union([z.string(), z.number(), z.bigint()]).transform(String);
const weiboReply = z.object({ uid: idLike, appkey: idLike, expire_in: z.number() });

/** Checks a token by `oauth2/get_token_info`, which returns its account, app and remaining seconds. */
async function checkWeibo(
  clients: PlatformClients,
  { endpoint, ca, appId }: AccessTokenCheck,
  { uid, token }: TokenClaim,
): Promise<PlatformConfirmation | undefined> {
  const request = formPost('/oauth2/get_token_info', { access_token: token });
  const reply = weiboReply.safeParse(await clients.fetchJson({ baseUrl: endpoint, ca }, request));
  const isValid =
    reply.success && reply.data.uid === uid && reply.data.appkey === appId && reply.data.expire_in > 0;
  return isValid ? {} : undefined;
}
