/** Access tokens of vivo (protocol/vivo.md#access-token), shared by threads and dispatchers: vivo limits token calls. */
import { createHash } from 'node:crypto';
import { hourMs } from '../../../shared/clock.ts';
import { type HttpClient, jsonPost } from '../../../shared/http/client.ts';
import type { SenderContext } from '../../contract/connector.ts';
import { AccessTokens, isToken, tokenFromReply, tokenRefusal } from '../../kit/access-token.ts';
import { appIdOf, type VivoCredentials } from './credentials.ts';
import { ruleFor } from './errors.ts';

const path = '/message/auth';
/** vivo's recommendation; tokens last a day. Twelve calls a day are far below its limit. */
const lifetimeMs = 2 * hourMs;

/** Signs a token call; the time is in epoch milliseconds. */
export const signatureOf = (
  { appId, appKey, appSecret }: Pick<VivoCredentials, 'appId' | 'appKey' | 'appSecret'>,
  timestamp: number,
): string => createHash('md5').update(`${appId}${appKey}${timestamp}${appSecret}`).digest('hex');

/** Creates the tokens of one app at one host; `client` sends the token call. */
export function accessTokens(
  credentials: VivoCredentials,
  { baseUrl, context, client }: { baseUrl: string; context: SenderContext; client: HttpClient },
): AccessTokens {
  const { appId, appKey, appSecret } = credentials;
  return new AccessTokens({
    store: context.tokens,
    clock: context.clock,
    credential: JSON.stringify([baseUrl, appId, appKey, appSecret]),
    fetch: async () => {
      const timestamp = context.clock.now();
      const sign = signatureOf(credentials, timestamp);
      const body = { appId: appIdOf(credentials), appKey, timestamp, sign };
      return tokenFromReply(
        await client.request(jsonPost(path, body)),
        ({ authToken: value, result }, status) => {
          if (typeof result !== 'number' && typeof result !== 'string') return null;
          const rule = ruleFor(result);
          if (rule.code !== '0') return tokenRefusal(rule, status, 'vivoToken');
          return isToken(value) ? { value, lifetimeMs } : null;
        },
      );
    },
  });
}
