/** Access tokens of OPPO (protocol/oppo.md#access-token), shared by threads and dispatchers. */
import { createHash } from 'node:crypto';
import { hourMs } from '../../../shared/clock.ts';
import { isJsonObject } from '../../../shared/domain/json.ts';
import { formPost, type HttpClient } from '../../../shared/http/client.ts';
import type { SenderContext } from '../../contract/connector.ts';
import { AccessTokens, isToken, tokenFromReply, tokenRefusal } from '../../kit/access-token.ts';
import type { OppoCredentials } from './credentials.ts';
import { ruleFor } from './errors.ts';
import { dataOf } from './responses.ts';

const path = '/server/v1/auth';
/** OPPO tokens last 24 h; renewed after 20 h, so that no request uses an expired one. */
const lifetimeMs = 20 * hourMs;

/** Signs a token call: the key, the time in epoch milliseconds as text, and the secret. */
export const signatureOf = (
  { appKey, masterSecret }: Pick<OppoCredentials, 'appKey' | 'masterSecret'>,
  timestamp: string,
): string => createHash('sha256').update(`${appKey}${timestamp}${masterSecret}`).digest('hex');

/** Creates the tokens of one app at one host; `client` sends the token call. */
export function accessTokens(
  credentials: OppoCredentials,
  { baseUrl, context, client }: { baseUrl: string; context: SenderContext; client: HttpClient },
): AccessTokens {
  const { appKey, masterSecret } = credentials;
  return new AccessTokens({
    store: context.tokens,
    clock: context.clock,
    credential: JSON.stringify([baseUrl, appKey, masterSecret]),
    fetch: async () => {
      const timestamp = String(context.clock.now());
      const form = { app_key: appKey, timestamp, sign: signatureOf(credentials, timestamp) };
      return tokenFromReply(await client.request(formPost(path, form)), (body, status) => {
        const { code } = body;
        if (typeof code !== 'number' && typeof code !== 'string') return null;
        const rule = ruleFor(code);
        if (rule.code !== '0') return tokenRefusal(rule, status, 'oppoToken');
        const data = dataOf(body.data);
        const value = isJsonObject(data) ? data.auth_token : undefined;
        return isToken(value) ? { value, lifetimeMs } : null;
      });
    },
  });
}
