import { z } from 'zod';
import type { Clock } from '../../../shared/clock.ts';
import { isHarmonyDeviceType } from '../../../shared/domain/labels.ts';
import { reason } from '../../../shared/domain/reasons.ts';
import {
  createHttpClient,
  defaultHttpTiming,
  formPost,
  type HttpClient,
  type HttpTiming,
  jsonPost,
} from '../../../shared/http/client.ts';
import { bothForms } from '../../contract/attempt-result.ts';
import type {
  AttemptResult,
  CredentialReport,
  GatewayCheck,
  PushMessage,
  Rendering,
  Sender,
  SenderContext,
  SendRequest,
  TokenStore,
} from '../../contract/connector.ts';
import {
  authEndpoint,
  common,
  inspectTrust,
  privateKeyText,
  secretText,
} from '../../contract/credentials.ts';
import {
  AccessTokens,
  oauthGrant,
  signJwt,
  skewS,
  tokenFromReply,
} from '../../kit/access-token.ts';
import { type ExchangeResult, gatewayCall, sendMulticast } from '../../kit/multicast.ts';
import { expired, failed, reportAll, unrenderable } from '../../kit/response-rules.ts';
import { bodyOf, type HuaweiPayload, limits, renderV1 } from './payload.ts';
import { renderV3, shownInV3 } from './payload-v3.ts';
import { type ApiVersion, isHarmonyToken, parseResponse } from './responses.ts';

// Client of Huawei: credentials, access tokens and sender. Huawei has two APIs
// (protocol/huawei.md#two-apis). Access tokens of v1 are fetched. Access tokens of v3 are JWTs that
// this file signs (protocol/huawei.md#access-tokens).

/**
 * Huawei's service account file as downloaded (protocol/huawei.md#service-account). Unused members
 * are dropped.
 */
const serviceAccount = z.object(
  {
    project_id: secretText('project_id'),
    key_id: secretText('key_id'),
    sub_account: secretText('sub_account'),
    private_key: privateKeyText('private_key', 'RSA'),
  },
  'serviceAccount must be the content of a service account file',
);

/**
 * Credentials of Huawei (protocol/admin-api.md#credentials-of-a-push-profile). `serviceAccount` is
 * for devices with HarmonyOS 5 and newer. `callbackKey` and `callbackUser` are set in AppGallery
 * Connect and sign receipts.
 */
export const huaweiCredentials = z.strictObject({
  appId: secretText('appId'),
  appSecret: secretText('appSecret'),
  /** Host of the intent that a tap opens. */
  intentHost: z
    .string('intentHost must be a text')
    .regex(/^[A-Za-z0-9.-]{1,253}$/, 'intentHost must be a host name')
    .optional(),
  serviceAccount: serviceAccount.optional(),
  callbackKey: secretText('callbackKey').optional(),
  callbackUser: secretText('callbackUser').optional(),
  ...common,
  ...authEndpoint,
});

export type HuaweiCredentials = z.infer<typeof huaweiCredentials>;
type HuaweiServiceAccount = z.infer<typeof serviceAccount>;

/**
 * Reports on the credentials. Secrets and service accounts contain no expiry time, so only `ca` is
 * checked.
 */
export function inspectHuawei(
  { ca, serviceAccount }: HuaweiCredentials,
  nowMs: number,
): CredentialReport {
  return {
    kind: serviceAccount ? 'secret and service account' : 'secret',
    ...inspectTrust(ca, nowMs),
  };
}

const authHost = 'https://oauth-login.cloud.huawei.com';
const tokenPath = '/oauth2/v3/token';
/**
 * Audience of the JWT. It is always Huawei's own URL, even if the profile sets `authEndpoint`
 * (protocol/huawei.md#service-account).
 */
const audience = `${authHost}${tokenPath}`;
/** Lifetime that Huawei recommends. Huawei refuses more than a day (80300036). */
const lifetimeS = 3600;

interface TokenDeps {
  credentials: HuaweiCredentials;
  store: TokenStore;
  clock: Clock;
  /** Client for the host of the token call. */
  client: HttpClient;
}

/**
 * Creates the access tokens for the v1 API (protocol/huawei.md#access-tokens). Older tokens stay
 * valid after a renewal.
 */
function accessTokens({ credentials, store, clock, client }: TokenDeps): AccessTokens {
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

/**
 * Creates JWTs of the service account for the v3 API (protocol/huawei.md#service-account). All
 * senders share them.
 */
function signedTokens(
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

function sign(
  { key_id, sub_account, private_key }: HuaweiServiceAccount,
  nowS: number,
): Promise<string> {
  return signJwt(
    { algorithm: 'PS256', keyId: key_id, privateKey: private_key },
    { iss: sub_account, aud: audience, nowS, lifetimeS },
  );
}

const host = 'https://push-api.cloud.huawei.com';

/** Opens the sender of one profile. It connects when the first push is sent. */
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
  /** Client for the token call. */
  authClient: HttpClient;
}

/** One of Huawei's two send APIs, with its access tokens. */
interface PushApi {
  api: ApiVersion;
  path: string;
  tokens: AccessTokens;
  render(message: PushMessage): Rendering<HuaweiPayload>;
}

/** Most tokens of one recall (protocol/huawei.md#recall). */
const maxRecalledTokens = 1000;
/** Upper bound for the bytes of a recall without its tokens. */
const recallBodyBytes = 64;

/** Reasons with which one API refuses a token that the other API may accept. */
const otherSystem = new Set(['no_right', 'refused_without_reason', 'all_tokens_invalid']);

type Refusal = Extract<AttemptResult, { kind: 'invalid_token' | 'rejected' }>;

/** Returns the refusal in a result if it concerns the token; undefined otherwise. */
function tokenRefusalIn(attempt: AttemptResult): Refusal | undefined {
  if (attempt.kind === 'invalid_token') return attempt;
  return attempt.kind === 'rejected' && otherSystem.has(attempt.reason) ? attempt : undefined;
}

/**
 * Combines the results of a token that the first API refused and that was then sent to the second
 * API. A second refusal may be caused by the project. So it counts only if both APIs have accepted
 * other tokens, which shows that the project is valid for both.
 */
function combinedResult(refusal: Refusal, second: AttemptResult, first: ApiVersion): AttemptResult {
  const secondRefusal = tokenRefusalIn(second);
  if (secondRefusal && refusal.kind === 'invalid_token')
    return { ...refusal, form: otherSystem.has(secondRefusal.reason) ? bothForms : first };
  const isAnswer = second.kind === 'rejected' ? second.status > 0 : second.kind !== 'profile_error';
  // If only the second API refuses the credentials or the content, this says nothing about the
  // device.
  return isAnswer && !secondRefusal ? second : failed(refusal.status, refusal.reason);
}

class HuaweiSender implements Sender {
  readonly #deps: SenderDeps;
  readonly #v1: PushApi;
  /**
   * Null if the profile has no service account, which v3 requires (protocol/huawei.md#two-apis).
   */
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
    const v3 = this.#v3;
    const { recipients, report } = request;
    const harmony = recipients.filter(({ deviceType }) => isHarmonyDeviceType(deviceType));
    if (!v3) {
      reportAll({ recipients: harmony, report }, failed(0, reason('noServiceAccount')));
      const others = recipients.filter(({ deviceType }) => !isHarmonyDeviceType(deviceType));
      return this.#sendBy(this.#v1, { ...request, recipients: others });
    }
    const others = Map.groupBy(
      recipients.filter(({ deviceType }) => !isHarmonyDeviceType(deviceType)),
      ({ deviceToken }) => (isHarmonyToken(deviceToken) ? v3 : this.#v1),
    );
    await Promise.all([
      this.#sendBy(v3, { ...request, recipients: harmony }),
      this.#sendToEither({ ...request, recipients: others.get(this.#v1) ?? [] }, [this.#v1, v3]),
      this.#sendToEither({ ...request, recipients: others.get(v3) ?? [] }, [v3, this.#v1]),
    ]);
  }

  /**
   * Sends to devices whose system is not certain: after an upgrade to HarmonyOS, the installation
   * keeps its device type. If the first API refuses a token, the second API is tried. The token is
   * invalid if both refuse it.
   */
  async #sendToEither(request: SendRequest, [first, second]: [PushApi, PushApi]): Promise<void> {
    const refused = new Map<number, Refusal>();
    await this.#sendBy(first, {
      ...request,
      report: (index, attempt) => {
        const refusal = tokenRefusalIn(attempt);
        if (refusal) refused.set(index, refusal);
        else request.report(index, attempt);
      },
    });
    await this.#sendBy(second, {
      ...request,
      recipients: request.recipients.filter(({ index }) => refused.has(index)),
      report: (index, attempt) => {
        const firstRefusal = refused.get(index);
        request.report(
          index,
          firstRefusal ? combinedResult(firstRefusal, attempt, first.api) : attempt,
        );
      },
    });
  }

  /**
   * Recalls a notification from HarmonyOS devices (protocol/huawei.md#recall). The path contains
   * the client id of the app, and the access token is the one of v3.
   */
  async recall(request: SendRequest): Promise<void> {
    const v3 = this.#v3;
    const shown = shownInV3(request.message);
    if (!v3) return reportAll(request, failed(0, reason('noServiceAccount')));
    if (!shown)
      return reportAll(request, failed(0, reason('notRecallable', { connector: 'vendor_a' })));
    const { notifyId, pushType } = shown;
    const { appId } = this.#deps.credentials;
    const path = `/v1/${encodeURIComponent(appId)}/messages:revoke`;
    const longest = Math.max(
      1,
      ...request.recipients.map(({ deviceToken }) => JSON.stringify(deviceToken).length + 1),
    );
    await sendMulticast(
      {
        clock: this.#deps.context.clock,
        group: 'recall',
        recipientsPerRequest: Math.max(
          1,
          Math.min(maxRecalledTokens, Math.floor((limits.bodyBytes - recallBodyBytes) / longest)),
        ),
        tokens: v3.tokens,
        isRepeatHidden: true,
        exchange: (token, accessToken, signal) =>
          this.#exchange(
            { api: 'v3', path },
            {
              body: JSON.stringify({ notifyId, token }),
              headers: { 'push-type': pushType },
              deviceTokens: token,
              token: accessToken,
              signal,
            },
          ),
      },
      request,
    );
  }

  check(): Promise<GatewayCheck> {
    return this.#v1.tokens.check();
  }

  async close(): Promise<void> {
    await Promise.all([this.#deps.client.close(), this.#deps.authClient.close()]);
  }

  async #sendBy(pushApi: PushApi, request: SendRequest): Promise<void> {
    const { message, recipients } = request;
    const { clock } = this.#deps.context;
    if (recipients.length === 0) return;
    if (message.expiresAtMs <= clock.now()) return reportAll(request, expired);
    const rendering = pushApi.render(message);
    if (!rendering.ok) return reportAll(request, unrenderable(rendering));
    const { payload } = rendering;
    await sendMulticast(
      {
        clock,
        group: pushApi.api,
        ...(this.#v3 ? { form: pushApi.api } : {}),
        recipientsPerRequest: payload.tokensPerRequest,
        tokens: pushApi.tokens,
        isRepeatHidden: payload.isRepeatHidden,
        exchange: (deviceTokens, token, signal) =>
          this.#exchange(pushApi, {
            body: bodyOf(payload, deviceTokens),
            headers: payload.headers,
            deviceTokens,
            token,
            signal,
          }),
      },
      request,
    );
  }

  async #exchange(
    pushApi: Pick<PushApi, 'api' | 'path'>,
    call: {
      body: string;
      /** Headers of the message. */
      headers: Readonly<Record<string, string>>;
      deviceTokens: string[];
      token: string;
      signal: AbortSignal;
    },
  ): Promise<ExchangeResult> {
    const { deviceTokens, body, signal, token } = call;
    const headers = { authorization: `Bearer ${token}`, ...call.headers };
    const reply = await this.#deps.client.request({
      ...jsonPost(pushApi.path, body, headers),
      signal,
    });
    const result =
      reply.kind === 'response'
        ? parseResponse(reply, deviceTokens, { api: pushApi.api, hasV3: this.#v3 !== null })
        : reply;
    this.#deps.context.onCall(gatewayCall(result, reply.seconds));
    return result;
  }
}
