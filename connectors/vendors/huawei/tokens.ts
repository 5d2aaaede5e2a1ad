/** Access tokens of the two APIs (protocol/huawei.md#access-tokens): fetched for v1, JWTs signed here for v3. */
import type { Clock } from '../../../shared/clock.ts';
import { formPost, type HttpClient } from '../../../shared/http/client.ts';
import type { TokenStore } from '../../contract/connector.ts';
import { AccessTokens, oauthGrant, tokenFromReply } from '../../kit/access-token.ts';
import { signJwt, skewS } from '../../kit/signed-jwt.ts';
import type { HuaweiCredentials, HuaweiServiceAccount } from './credentials.ts';

export const authHost = 'https://oauth-login.cloud.huawei.com';
const tokenPath = '/oauth2/v3/token';
/** Audience: Huawei's own URL even if the profile sets another (`authEndpoint`) (protocol/huawei.md#service-account). */
const audience = `${authHost}${tokenPath}`;
/** Huawei's recommendation; it refuses more than a day (80300036). */
const lifetimeS = 3600;

export interface TokenDeps {
  credentials: HuaweiCredentials;
  store: TokenStore;
  clock: Clock;
  /** Client of the token call's host. */
  client: HttpClient;
}

/**
 * Creates the app's access tokens for the v1 API (protocol/huawei.md#access-tokens). Older tokens stay valid after a
 * renewal.
 */
export function accessTokens({ credentials, store, clock, client }: TokenDeps): AccessTokens {
  const { appId, appSecret, authEndpoint = authHost } = credentials;
  const form = { grant_type: 'client_credentials', client_id: appId, client_secret: appSecret };
  return new AccessTokens({
    store,
    clock,
    credential: JSON.stringify(['v1', authEndpoint, appId, appSecret]),
    fetch: async () =>
      tokenFromReply(await client.request(formPost(tokenPath, form)), oauthGrant, 'huaweiToken'),
  });
}

/** Creates JWTs of the service account for the v3 API (protocol/huawei.md#service-account), shared by all senders. */
export function signedTokens(
  account: HuaweiServiceAccount,
  { store, clock }: Pick<TokenDeps, 'store' | 'clock'>,
): AccessTokens {
  const { project_id, key_id, sub_account, private_key } = account;
  return new AccessTokens({
    store,
    clock,
    credential: JSON.stringify(['v3', project_id, key_id, sub_account, private_key]),
    fetch: async () => ({
      ok: true,
      value: await sign(account, Math.floor(clock.now() / 1000)),
      lifetimeMs: (lifetimeS - skewS) * 1000,
    }),
  });
}

function sign({ key_id, sub_account, private_key }: HuaweiServiceAccount, nowS: number): Promise<string> {
  return signJwt(
    { algorithm: 'PS256', keyId: key_id, privateKey: private_key },
    { iss: sub_account, aud: audience, nowS, lifetimeS },
  );
}
