import { z } from 'zod';
import {
  createHttpClient,
  defaultHttpTiming,
  formPost,
  type HttpClient,
  type HttpTiming,
  jsonPost,
} from '../../../shared/http/client.ts';
import type {
  CredentialReport,
  GatewayCheck,
  Sender,
  SenderContext,
  SendRequest,
} from '../../contract/connector.ts';
import { authEndpoint, common, inspectTrust, secretText } from '../../contract/credentials.ts';
import { AccessTokens, oauthGrant, tokenFromReply } from '../../kit/access-token.ts';
import { type ExchangeResult, gatewayCall, sendMulticast } from '../../kit/multicast.ts';
import { expired, reportAll, unrenderable } from '../../kit/response-rules.ts';
import { bodyOf, limits, renderHonor } from './payload.ts';
import { parseResponse, TokenErrorClassifier } from './responses.ts';

/**
 * Credentials of Honor (protocol/admin-api.md#credentials-of-a-push-profile). `badgeClass` is the
 * entry activity of the app. Devices show no badge without it (protocol/honor.md#message).
 */
export const honorCredentials = z.strictObject({
  appId: secretText('appId'),
  clientId: secretText('clientId'),
  clientSecret: secretText('clientSecret'),
  badgeClass: z
    .string('badgeClass must be a text')
    .regex(/^[A-Za-z][\w$.]{0,255}$/, 'badgeClass must be the full name of an activity')
    .optional(),
  ...common,
  ...authEndpoint,
});

export type HonorCredentials = z.infer<typeof honorCredentials>;

/** Reports on the credentials. Secrets contain no expiry time, so only `ca` is checked. */
export function inspectHonor({ ca }: HonorCredentials, nowMs: number): CredentialReport {
  return { kind: 'secret', ...inspectTrust(ca, nowMs) };
}

const host = 'https://push-api.cloud.honor.com';
const authHost = 'https://iam.developer.honor.com';

/** Opens the sender of one profile. It connects when the first push is sent. */
export function openHonor(
  credentials: HonorCredentials,
  context: SenderContext,
  timing: HttpTiming = defaultHttpTiming,
): Sender {
  const { authEndpoint = authHost, ca, endpoint = host } = credentials;
  const { clock } = context;
  const client = createHttpClient({ baseUrl: endpoint, ca, timing, clock });
  const authClient = createHttpClient({ baseUrl: authEndpoint, ca, connections: 1, timing, clock });
  return new HonorSender({ credentials, context, client, authClient });
}

interface SenderDeps {
  credentials: HonorCredentials;
  context: SenderContext;
  client: HttpClient;
  /** Client for the token call. */
  authClient: HttpClient;
}

class HonorSender implements Sender {
  readonly #deps: SenderDeps;
  readonly #path: string;
  readonly #tokens: AccessTokens;
  readonly #classifier = new TokenErrorClassifier();

  constructor(deps: SenderDeps) {
    this.#deps = deps;
    this.#path = `/api/v1/${encodeURIComponent(deps.credentials.appId)}/sendMessage`;
    this.#tokens = accessTokens(deps);
  }

  async send(request: SendRequest): Promise<void> {
    const { context, credentials } = this.#deps;
    const { clock } = context;
    const { message, recipients } = request;
    if (recipients.length === 0) return;
    const nowMs = clock.now();
    if (message.expiresAtMs <= nowMs) return reportAll(request, expired);
    const rendering = renderHonor(message, { badgeClass: credentials.badgeClass, nowMs });
    if (!rendering.ok) return reportAll(request, unrenderable(rendering));
    const { payload } = rendering;
    await sendMulticast(
      {
        clock,
        recipientsPerRequest: limits.recipientsPerRequest,
        tokens: this.#tokens,
        isRepeatHidden: payload.isRepeatHidden,
        exchange: (deviceTokens, token, signal) =>
          this.#exchange(bodyOf(payload, deviceTokens), token, signal),
      },
      request,
    );
  }

  check(): Promise<GatewayCheck> {
    return this.#tokens.check();
  }

  async close(): Promise<void> {
    await Promise.all([this.#deps.client.close(), this.#deps.authClient.close()]);
  }

  async #exchange(body: string, token: string, signal: AbortSignal): Promise<ExchangeResult> {
    const { context, client } = this.#deps;
    const nowMs = context.clock.now();
    const headers = { authorization: `Bearer ${token}`, timestamp: String(nowMs) };
    const reply = await client.request({ ...jsonPost(this.#path, body, headers), signal });
    const result =
      reply.kind === 'response' ? this.#classifier.classify(parseResponse(reply)) : reply;
    context.onCall(gatewayCall(result, reply.seconds));
    return result;
  }
}

/**
 * Creates the access tokens of the app (protocol/honor.md#access-token). Threads and dispatchers
 * share them.
 */
function accessTokens({ authClient, context, credentials }: SenderDeps): AccessTokens {
  const { authEndpoint = authHost, clientId, clientSecret } = credentials;
  const form = {
    grant_type: 'client_credentials',
    client_id: clientId,
    client_secret: clientSecret,
  };
  return new AccessTokens({
    store: context.tokens,
    clock: context.clock,
    credential: JSON.stringify([authEndpoint, clientId, clientSecret]),
    fetch: async () =>
      tokenFromReply(
        await authClient.request(formPost('/auth/token', form)),
        oauthGrant,
        'honorToken',
      ),
  });
}
