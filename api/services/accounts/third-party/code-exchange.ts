import { z } from 'zod';
import type { JsonObject } from '../../../../shared/domain/json.ts';
import type { CodeExchange, PlatformConfirmation } from '../../../../shared/domain/users/auth-platforms.ts';
import { type AnswerForm, codeText, type PlatformClients } from './platform-clients.ts';

const session = z.object({
  openid: z.string().min(1),
  session_key: z.string(),
  unionid: z.string().min(1).optional(),
});

/**
 * Answers of `jscode2session` of WeChat and QQ. Refusals: code missing (41008), invalid or old
 * (40029), used (40163), user barred (40226). A wrong id or secret of the app (40013, 40125) and
 * too many calls (45011) say nothing about the user.
 */
const form: AnswerForm<z.infer<typeof session>> = {
  reply: session,
  codeOf: ({ errcode }) => codeText(errcode),
  refusals: new Set(['41008', '40029', '40163', '40226']),
};

/**
 * Exchanges the code of a mini program (`wx.login`, `qq.login`) for its account, and returns the
 * entry to store: with `openid`, `session_key` and `unionid` of the platform in place of the code.
 * The code is spent by this call, so it must not be made twice. Returns undefined for a wrong code,
 * or if the client names another account. Throws 503 when the platform says neither yes nor no
 * (protocol/users.md#mini-programs).
 */
export async function exchangeCode(
  clients: PlatformClients,
  entry: JsonObject,
  { endpoint, ca, appId, appSecret }: CodeExchange,
): Promise<PlatformConfirmation | undefined> {
  const { code, uid, openid, ...rest } = entry;
  if (typeof code !== 'string' || code === '') return undefined;
  const members = { appid: appId, secret: appSecret, js_code: code, grant_type: 'authorization_code' };
  const path = `/sns/jscode2session?${new URLSearchParams(members)}`;
  const found = await clients.ask({ baseUrl: endpoint, ca }, { method: 'GET', path }, form);
  if (!found) return undefined;
  // A client that names an account names the one of its code.
  const isOther = [uid, openid].some((named) => named !== undefined && named !== found.openid);
  if (isOther) return undefined;
  const { unionid } = found;
  const completed = {
    ...rest,
    openid: found.openid,
    session_key: found.session_key,
    ...(unionid === undefined ? {} : { unionid }),
  };
  return { unionid, completed };
}
