import {
  createHttpClient,
  defaultHttpTiming,
  type HttpClient,
  type HttpTiming,
  jsonPost,
} from '../../../shared/http/client.ts';
import type {
  GatewayCheck,
  PushMessage,
  Recipient,
  Rendering,
  Sender,
  SenderContext,
  SendRequest,
} from '../../contract/connector.ts';
import type { AccessTokens } from '../../kit/access-token.ts';
import { expired, failed, reportAll, unrenderable } from '../../kit/attempt-results.ts';
import { type ExchangeResult, gatewayCall, sendMulticast } from '../../kit/multicast.ts';
import type { HuaweiCredentials } from './credentials.ts';
import { bodyOf, type HuaweiPayload, renderV1 } from './payload.ts';
import { renderV3 } from './payload-v3.ts';
import { type ApiVersion, isHarmonyToken, parseResponse } from './responses.ts';
import { accessTokens, authHost, signedTokens } from './tokens.ts';

const host = 'https://push-api.cloud.huawei.com';

/** Systems that only v3 serves, as clients name them. */
const harmonySystems = new Set(['harmony', 'harmonyos', 'ohos', 'openharmony']);

export const isHarmonySystem = (deviceType: string): boolean => harmonySystems.has(deviceType.toLowerCase());

/** Opens the sender of one profile; it connects with the first push. */
export function openHuawei(
  credentials: HuaweiCredentials,
  context: SenderContext,
  timing: HttpTiming = defaultHttpTiming,
): Sender {
  const { authEndpoint = authHost, ca, endpoint = host } = credentials;
  const { clock } = context;
  return new HuaweiSender({
    credentials,
    context,
    client: createHttpClient({ baseUrl: endpoint, ca, timing, clock }),
    authClient: createHttpClient({ baseUrl: authEndpoint, ca, connections: 1, timing, clock }),
  });
}

interface SenderDeps {
  credentials: HuaweiCredentials;
  context: SenderContext;
  client: HttpClient;
  /** Client of the token call. */
  authClient: HttpClient;
}

/** One of Huawei's two send APIs, with its access tokens. */
interface PushApi {
  api: ApiVersion;
  path: string;
  tokens: AccessTokens;
  render(message: PushMessage): Rendering<HuaweiPayload>;
}

class HuaweiSender implements Sender {
  readonly #deps: SenderDeps;
  readonly #v1: PushApi;
  /** Absent without a service account, which v3 requires (protocol/huawei.md#two-apis). */
  readonly #v3: PushApi | null;

  constructor(deps: SenderDeps) {
    this.#deps = deps;
    const { authClient: client, context, credentials } = deps;
    const { clock, tokens: store } = context;
    const { appId, intentHost, serviceAccount } = credentials;
    this.#v1 = {
      api: 'v1',
      path: `/v1/${encodeURIComponent(appId)}/messages:send`,
      tokens: accessTokens({ credentials, store, clock, client }),
      render: (message) => renderV1(message, { intentHost, nowMs: clock.now() }),
    };
    this.#v3 = serviceAccount
      ? {
          api: 'v3',
          path: `/v3/${encodeURIComponent(serviceAccount.project_id)}/messages:send`,
          tokens: signedTokens(serviceAccount, { store, clock }),
          render: (message) => renderV3(message, { nowMs: clock.now() }),
        }
      : null;
  }

  async send(request: SendRequest): Promise<void> {
    const older: Recipient[] = [];
    const newer: Recipient[] = [];
    for (const recipient of request.recipients) {
      const { deviceToken, deviceType } = recipient;
      const isNewer = isHarmonySystem(deviceType) || (this.#v3 !== null && isHarmonyToken(deviceToken));
      (isNewer ? newer : older).push(recipient);
    }
    const { report } = request;
    await Promise.all([
      this.#sendBy(this.#v1, { ...request, recipients: older }),
      this.#v3
        ? this.#sendBy(this.#v3, { ...request, recipients: newer })
        : reportAll({ recipients: newer, report }, failed(0, 'the profile has no serviceAccount')),
    ]);
  }

  check(): Promise<GatewayCheck> {
    return this.#v1.tokens.check();
  }

  async close(): Promise<void> {
    await Promise.all([this.#deps.client.close(), this.#deps.authClient.close()]);
  }

  async #sendBy(way: PushApi, request: SendRequest): Promise<void> {
    const { message, recipients } = request;
    const { clock } = this.#deps.context;
    if (recipients.length === 0) return;
    if (message.expiresAtMs <= clock.now()) return reportAll(request, expired);
    const rendering = way.render(message);
    if (!rendering.ok) return reportAll(request, unrenderable(rendering));
    const { payload } = rendering;
    await sendMulticast(
      {
        clock,
        group: way.api,
        recipientsPerRequest: payload.tokensPerRequest,
        tokens: way.tokens,
        isRepeatHidden: payload.isRepeatHidden,
        exchange: (deviceTokens, token, signal) =>
          this.#exchange(way, { body: bodyOf(payload, deviceTokens), payload, deviceTokens, token, signal }),
      },
      request,
    );
  }

  async #exchange(
    way: PushApi,
    asked: {
      body: string;
      payload: HuaweiPayload;
      deviceTokens: string[];
      token: string;
      signal: AbortSignal;
    },
  ): Promise<ExchangeResult> {
    const { deviceTokens, body, payload, signal, token } = asked;
    const headers = { authorization: `Bearer ${token}`, ...payload.headers };
    const reply = await this.#deps.client.request({ ...jsonPost(way.path, body, headers), signal });
    const result = reply.kind === 'response' ? parseResponse(reply, way.api, deviceTokens) : reply;
    this.#deps.context.onCall(gatewayCall(result, reply.seconds));
    return result;
  }
}
