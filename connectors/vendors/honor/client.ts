import {
  createHttpClient,
  defaultHttpTiming,
  formPost,
  type HttpClient,
  type HttpTiming,
  jsonPost,
} from '../../../shared/http/client.ts';
import type { Attempt, Sender, SenderContext, SendRequest } from '../../contract/connector.ts';
import { AccessTokens, fetchedFrom, grantIn } from '../../kit/access-token.ts';
import { expired, halt } from '../../kit/attempt-results.ts';
import { callOf, type Reading, sendMany } from '../../kit/multicast.ts';
import { readAnswer, TokenDoubt } from './answers.ts';
import type { HonorCredentials } from './credentials.ts';
import { bodyOf, limits, renderHonor } from './payload.ts';

const host = 'https://push-api.cloud.honor.com';
const authHost = 'https://iam.developer.honor.com';

/** Opens the doors for one profile; connects with the first push. */
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

interface Parts {
  credentials: HonorCredentials;
  context: SenderContext;
  client: HttpClient;
  /** To the token call. */
  authClient: HttpClient;
}

class HonorSender implements Sender {
  readonly #parts: Parts;
  readonly #path: string;
  readonly #tokens: AccessTokens;
  readonly #doubt = new TokenDoubt();

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#path = `/api/v1/${encodeURIComponent(parts.credentials.appId)}/sendMessage`;
    this.#tokens = accessTokens(parts);
  }

  async send(request: SendRequest): Promise<void> {
    const { context, credentials } = this.#parts;
    const { clock } = context;
    const { message, recipients, report } = request;
    const end = (attempt: Attempt) => {
      for (const { index } of recipients) report(index, attempt);
    };
    if (recipients.length === 0) return;
    const nowMs = clock.now();
    if (message.expiresAtMs <= nowMs) return end(expired);
    const rendering = renderHonor(message, { badgeClass: credentials.badgeClass, nowMs });
    if (!rendering.ok) {
      const { outcome = 'failed', problem } = rendering;
      return end({ kind: 'rejected', outcome, status: 0, reason: problem });
    }
    const { payload } = rendering;
    await sendMany(
      {
        clock,
        recipientsPerRequest: limits.recipientsPerRequest,
        tokens: this.#tokens,
        isRepeatHidden: payload.isRepeatHidden,
        exchange: (addresses, token, signal) => this.#exchange(bodyOf(payload, addresses), token, signal),
      },
      request,
    );
  }

  async close(): Promise<void> {
    await Promise.all([this.#parts.client.close(), this.#parts.authClient.close()]);
  }

  async #exchange(body: string, token: string, signal: AbortSignal): Promise<Reading> {
    const { context, client } = this.#parts;
    const nowMs = context.clock.now();
    const headers = { authorization: `Bearer ${token}`, timestamp: String(nowMs) };
    const reply = await client.request({ ...jsonPost(this.#path, body, headers), signal });
    const reading = reply.kind === 'response' ? this.#doubt.weigh(readAnswer(reply), token, nowMs) : reply;
    context.onCall(callOf(reading, reply.seconds));
    return reading;
  }
}

/** Access tokens of the app (protocol/honor.md#access-token), shared over threads and dispatchers. */
function accessTokens({ authClient, context, credentials }: Parts): AccessTokens {
  const { authEndpoint = authHost, clientId, clientSecret } = credentials;
  const form = { grant_type: 'client_credentials', client_id: clientId, client_secret: clientSecret };
  return new AccessTokens({
    store: context.tokens,
    clock: context.clock,
    credential: JSON.stringify([authEndpoint, clientId, clientSecret]),
    fetch: async () =>
      fetchedFrom(await authClient.request(formPost('/auth/token', form)), (body) => {
        const granted = grantIn(body);
        return granted ?? (body.error === undefined ? null : halt(200, 'credentials_refused', refused));
      }),
  });
}

const refused = 'Honor gives out no access token: check clientId and clientSecret.';
