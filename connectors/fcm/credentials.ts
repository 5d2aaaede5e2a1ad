import { z } from 'zod';
import type { Clock } from '../../shared/clock.ts';
import { formPost, type HttpClient } from '../../shared/http/client.ts';
import type { CredentialReport, TokenStore } from '../contract/connector.ts';
import {
  authEndpoint,
  baseUrl,
  common,
  inspectTrust,
  privateKeyText,
  proxyUrl,
  requiredText,
  secretText,
} from '../contract/credentials.ts';
import {
  AccessTokens,
  oauthGrant,
  signJwt,
  type TokenFetch,
  tokenFromReply,
} from '../kit/access-token.ts';

// Access tokens of a service account, which are fetched with a signed assertion
// (protocol/fcm.md#access-token).

/** Google's service account file as downloaded. Unused members are dropped. */
const serviceAccount = z.object(
  {
    /** Id or number of the project. It is part of a path. */
    project_id: requiredText('project_id').regex(
      /^[a-z0-9][a-z0-9:.-]{1,127}$/,
      'project_id must be the id of a Google project',
    ),
    client_email: requiredText('client_email').min(3).max(320),
    private_key: privateKeyText('private_key', 'RSA'),
    private_key_id: secretText('private_key_id'),
    token_uri: baseUrl('token_uri'),
  },
  'serviceAccount must be the content of a service account file',
);

export const fcmCredentials = z.strictObject({
  serviceAccount,
  proxy: proxyUrl.optional(),
  ...common,
  ...authEndpoint,
});

export type FcmCredentials = z.infer<typeof fcmCredentials>;

/**
 * Reports on the credentials. A service account contains no expiry time, so only `ca` is checked.
 */
export function inspectFcm({ ca }: FcmCredentials, nowMs: number): CredentialReport {
  return { kind: 'service account', ...inspectTrust(ca, nowMs) };
}

const scope = 'https://www.googleapis.com/auth/firebase.messaging';
const grantType = 'urn:ietf:params:oauth:grant-type:jwt-bearer';
/** Longest lifetime of an assertion that Google accepts. */
const lifetimeS = 3600;

/** Returns the URL of the token call: `token_uri`, or its path at `authEndpoint`. */
export function tokenAddress({ authEndpoint, serviceAccount }: FcmCredentials): {
  base: string;
  path: string;
} {
  const { origin, pathname } = new URL(serviceAccount.token_uri);
  return { base: authEndpoint ?? origin, path: pathname };
}

interface AccountOptions {
  credentials: FcmCredentials;
  store: TokenStore;
  clock: Clock;
  /** Client for the host of `tokenAddress`. */
  client: HttpClient;
}

/** Creates the access tokens of an account. Threads and dispatchers share them. */
export function accountTokens({ credentials, store, clock, client }: AccountOptions): AccessTokens {
  const { client_email, private_key_id, private_key, project_id } = credentials.serviceAccount;
  const { base, path } = tokenAddress(credentials);
  return new AccessTokens({
    store,
    clock,
    credential: JSON.stringify([base, path, project_id, client_email, private_key_id, private_key]),
    fetch: () => fetchToken(credentials, clock, client),
  });
}

async function fetchToken(
  credentials: FcmCredentials,
  clock: Clock,
  client: HttpClient,
): Promise<TokenFetch> {
  const assertion = await sign(credentials, Math.floor(clock.now() / 1000));
  const { path } = tokenAddress(credentials);
  const reply = await client.request(formPost(path, { grant_type: grantType, assertion }));
  return tokenFromReply(reply, oauthGrant, 'googleToken');
}

function sign({ serviceAccount }: FcmCredentials, nowS: number): Promise<string> {
  const { client_email, private_key, private_key_id, token_uri } = serviceAccount;
  return signJwt(
    { algorithm: 'RS256', keyId: private_key_id, privateKey: private_key },
    { scope, iss: client_email, aud: token_uri, nowS, lifetimeS },
  );
}
