import { constants, verify } from 'node:crypto';
import { isJsonObject, type JsonObject } from '../../../../shared/domain/json.ts';
import type { TokenIssuer } from '../../http/access-tokens.ts';
import { formIn } from '../../http/bodies.ts';
import type { SandboxCall, SandboxReply } from '../../http/gateway.ts';
import type { HuaweiApp } from './credentials.ts';

export const tokenPath = '/oauth2/v3/token';
const audience = 'https://oauth-login.cloud.huawei.com/oauth2/v3/token';

/** Answers the token call (protocol/huawei.md#access-tokens): client credentials as a form. */
export function grantToken(call: SandboxCall, app: HuaweiApp, tokenIssuer: TokenIssuer): SandboxReply {
  const { headers, method } = call;
  const refuse = (error: number, sub_error: number, error_description: string): SandboxReply => ({
    status: 400,
    body: { error, sub_error, error_description },
  });
  if (method !== 'POST' || !/^application\/x-www-form-urlencoded\b/.test(headers['content-type'] ?? ''))
    return { ...refuse(1102, 20041, 'bad request'), violation: 'a token call whose body is not a form' };
  const form = formIn(call);
  if (form.get('grant_type') !== 'client_credentials') return refuse(1102, 20041, 'grant_type');
  if (form.get('client_id') !== app.appId) return refuse(1101, 20001, 'invalid client_id');
  if (form.get('client_secret') !== app.appSecret) return refuse(1101, 20044, 'invalid client_secret');
  const { value, expiresIn } = tokenIssuer.issue();
  // Huawei escapes slashes: a client without a JSON parser reads a wrong token.
  const text = JSON.stringify({
    access_token: `DQEBA/${value}`,
    expires_in: expiresIn,
    token_type: 'Bearer',
  });
  return { status: 200, body: text.replaceAll('/', '\\/') };
}

/** Returns the error of an access token, as a code of the send call, or null. */
export function accessProblem(bearer: string | undefined, tokenIssuer: TokenIssuer): string | null {
  const state = tokenIssuer.check(bearer?.startsWith('DQEBA/') ? bearer.slice('DQEBA/'.length) : undefined);
  if (state === 'valid') return null;
  return state === 'expired' ? '80200003' : '80200001';
}

const dayS = 86_400;

/** Returns the error of a service account's JWT (protocol/huawei.md#service-account), or null; `nowS` in epoch seconds. */
export function jwtProblem(
  bearer: string | undefined,
  { publicKey, serviceAccount }: HuaweiApp,
  nowS: number,
): string | null {
  const [head = '', claims = '', signature = '', ...more] = (bearer ?? '').split('.');
  const header = decoded(head);
  const payload = decoded(claims);
  if (!header || !payload || more.length > 0) return '80200001';
  const isFromAccount =
    header.alg === 'PS256' &&
    header.typ === 'JWT' &&
    header.kid === serviceAccount.key_id &&
    payload.iss === serviceAccount.sub_account &&
    payload.aud === audience;
  const { exp, iat } = payload;
  if (!isFromAccount || typeof exp !== 'number' || typeof iat !== 'number') return '80200001';
  const key = { key: publicKey, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 32 };
  if (!verify('sha256', Buffer.from(`${head}.${claims}`), key, Buffer.from(signature, 'base64url')))
    return '80200001';
  if (exp - iat > dayS) return '80300036';
  if (iat > nowS) return '80200001';
  return exp <= nowS ? '80200005' : null;
}

function decoded(part: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(part, 'base64url').toString());
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
