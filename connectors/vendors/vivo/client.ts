/**
 * Client of vivo (protocol/vivo.md#message, protocol/vivo.md#lists). A message to one device is one
 * call. For several devices, the message is saved and then pushed to lists of 2 to 1000 devices.
 */

import { createHash, randomUUID } from 'node:crypto';
import { z } from 'zod';
import { hourMs, isBetweenHours, minuteMs, untilHourMs } from '../../../shared/clock.ts';
import type { Json } from '../../../shared/domain/json.ts';
import {
  createHttpClient,
  type HttpClient,
  type HttpTiming,
  jsonPost,
} from '../../../shared/http/client.ts';
import type { HttpResponse } from '../../../shared/http/result.ts';
import type {
  AttemptResult,
  CredentialReport,
  GatewayCheck,
  Rate,
  Sender,
  SenderContext,
  SendRequest,
} from '../../contract/connector.ts';
import { authEndpoint, common, inspectTrust, secretText } from '../../contract/credentials.ts';
import { AccessTokens, isToken, tokenFromReply, tokenRefusal } from '../../kit/access-token.ts';
import { type ExchangeResult, gatewayCall, sendMulticast } from '../../kit/multicast.ts';
import { receiptUrl } from '../../kit/receipts.ts';
import { capped, reportAll, retry, unrenderable } from '../../kit/response-rules.ts';
import { SavedMessages } from '../../kit/saved-messages.ts';
import { limits, renderVivo, type VivoPayload } from './payload.ts';
import {
  hoursCode,
  listQuotaCode,
  parseCallResponse,
  parseListResponse,
  parseSingleResponse,
  ruleFor,
  taskExpiredCode,
} from './responses.ts';

export const vivoCredentials = z.strictObject({
  appId: secretText('appId'),
  appKey: secretText('appKey'),
  appSecret: secretText('appSecret'),
  ...common,
  ...authEndpoint,
});

export type VivoCredentials = z.infer<typeof vivoCredentials>;

/**
 * Returns the app id for request bodies. It is a number if possible
 * (protocol/vivo.md#access-token).
 */
const appIdOf = ({ appId }: Pick<VivoCredentials, 'appId'>): number | string =>
  /^[1-9]\d{0,14}$/.test(appId) ? Number(appId) : appId;

/**
 * Returns the rate in devices per second (protocol/vivo.md#limits). The default is the rate of the
 * smallest apps. vivo allows apps with many users up to 5000. The profile then sets the rate.
 */
export const rateOf = ({
  ratePerSecond: perSecond = 3000,
}: Pick<VivoCredentials, 'ratePerSecond'>): Rate => ({
  perSecond,
  counts: 'recipients',
  burst: 0,
  rampMs: 0,
});

/** Reports on the credentials. Secrets contain no expiry time, so only `ca` is checked. */
export function inspectVivo({ ca }: VivoCredentials, nowMs: number): CredentialReport {
  return { kind: 'secret', ...inspectTrust(ca, nowMs) };
}

interface Call {
  body: Readonly<Record<string, Json | readonly string[]>>;
  token: string;
  signal?: AbortSignal;
}

// Access tokens of vivo (protocol/vivo.md#access-token). Threads and dispatchers share them,
// because vivo limits token calls.

const path = '/message/auth';
/**
 * Lifetime that vivo recommends, although tokens are valid for a day. Twelve token calls a day are
 * far below vivo's limit.
 */
const lifetimeMs = 2 * hourMs;

/** Signs a token call. `timestamp` is in epoch milliseconds. */
export const signatureOf = (
  { appId, appKey, appSecret }: Pick<VivoCredentials, 'appId' | 'appKey' | 'appSecret'>,
  timestamp: number,
): string => createHash('md5').update(`${appId}${appKey}${timestamp}${appSecret}`).digest('hex');

/** Creates the tokens of one app at one host. `client` sends the token call. */
function accessTokens(
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

const host = 'https://api-push.vivo.com.cn';
/** Maximum length of the URL for receipts (protocol/vivo.md#message). */
const callbackChars = 128;
/** Message class for the daily quota of saved messages. */
const listClass = 'saveListPayload';
const sendingHours = { from: 7, to: 23 };
/** Retry delay if vivo refuses a message within its published sending hours. */
const daytimeRetryMs = 15 * minuteMs;

/** Opens the sender of one profile. It connects when the first push is sent. */
export function openVivo(
  credentials: VivoCredentials,
  { context, timing }: { context: SenderContext; timing: HttpTiming },
): Sender {
  const { authEndpoint, ca, endpoint = host } = credentials;
  const { clock } = context;
  const client = createHttpClient({ baseUrl: endpoint, ca, timing, clock });
  const baseUrl = authEndpoint ?? endpoint;
  const authClient = createHttpClient({ baseUrl, ca, connections: 1, timing, clock });
  const tokens = accessTokens(credentials, { baseUrl, context, client: authClient });
  return new VivoSender({ credentials, context, client, authClient, tokens });
}

interface SenderDeps {
  credentials: VivoCredentials;
  context: SenderContext;
  client: HttpClient;
  /** Client for the token call. */
  authClient: HttpClient;
  tokens: AccessTokens;
}

class VivoSender implements Sender {
  readonly #deps: SenderDeps;
  /** Messages to several devices, saved once and then pushed to lists (protocol/vivo.md#lists). */
  readonly #saved = new SavedMessages(taskExpiredCode, 'saved_without_task');
  /**
   * When vivo's sending hours begin again (epoch milliseconds). Set after vivo has refused a
   * message outside the sending hours. Operation messages wait until then.
   */
  #waitsUntilMs = 0;

  constructor(deps: SenderDeps) {
    this.#deps = deps;
  }

  async send(request: SendRequest): Promise<void> {
    const { message } = request;
    const { clock, quota: dayQuota } = this.#deps.context;
    const rendering = renderVivo(message, clock.now());
    if (!rendering.ok) return reportAll(request, unrenderable(rendering));
    const payload = this.#withCallback(rendering.payload, message.objectId);
    const { isRepeatHidden, messageClass } = payload;
    const mustWait = messageClass === 'operation' && this.#waitsUntilMs > clock.now();
    if (mustWait && message.expiresAtMs > clock.now())
      return reportAll(request, this.#retryInSendingHours());
    await sendMulticast(
      {
        clock,
        recipientsPerRequest: limits.recipientsPerRequest,
        tokens: this.#deps.tokens,
        quota: { dayQuota, messageClass },
        isRepeatHidden,
        exchange: async (deviceTokens, token, signal) => {
          const call = { token, signal, objectId: message.objectId };
          return this.#applyState(await this.#exchange(payload, deviceTokens, call), messageClass);
        },
      },
      request,
    );
  }

  check(): Promise<GatewayCheck> {
    return this.#deps.tokens.check();
  }

  async close(): Promise<void> {
    await Promise.all([this.#deps.client.close(), this.#deps.authClient.close()]);
  }

  async #exchange(
    { message }: VivoPayload,
    deviceTokens: readonly string[],
    { objectId, signal, token }: { objectId: string; signal: AbortSignal; token: string },
  ): Promise<ExchangeResult> {
    const appId = appIdOf(this.#deps.credentials);
    const requestId = requestIdOf(objectId, deviceTokens);
    const [only] = deviceTokens;
    if (deviceTokens.length === 1 && only !== undefined) {
      const body = { appId, regId: only, requestId, ...message };
      return this.#post('/message/send', { body, token, signal }, (reply) =>
        parseSingleResponse(reply, only),
      );
    }
    const closed = await this.#listClosed();
    if (closed) return { kind: 'attempt', attempt: closed };
    // Only single messages may have a profile.
    const { profileId: _, ...shared } = message;
    const pushMode = message.pushMode ?? 0;
    const { timeToLive, ...content } = shared;
    return this.#saved.send({
      key: JSON.stringify(content),
      timeToLiveS: Number(timeToLive),
      save: () =>
        this.#post(
          '/message/saveListPayload',
          { body: { appId, requestId: randomUUID(), ...shared }, token },
          (reply) => parseCallResponse(reply).result,
        ),
      sendTo: async (taskId) => {
        const body = { appId, regIds: deviceTokens, requestId, pushMode, taskId };
        const result = await this.#post(
          '/message/pushToList',
          { body, token, signal },
          parseListResponse,
        );
        return result.kind === 'parsed' ? { ...result, messageId: taskId } : result;
      },
    });
  }

  /**
   * Returns a result if the daily quota of lists is used up. All message classes share this quota.
   */
  async #listClosed(): Promise<AttemptResult | null> {
    try {
      const reason = await this.#deps.context.quota.closed(listClass);
      return reason === null ? null : capped(0, reason);
    } catch {
      return retry(0, 'quota_unavailable');
    }
  }

  /** Handles responses that depend on the sending hours or on the quota of lists. */
  async #applyState(result: ExchangeResult, messageClass: string): Promise<ExchangeResult> {
    if (result.kind !== 'parsed') return result;
    const { rule, status } = result;
    if (rule.code === hoursCode) {
      if (messageClass === 'operation' && !this.#isDay())
        this.#waitsUntilMs = this.#nowMs() + untilHourMs(this.#nowMs(), sendingHours.from);
      return { kind: 'attempt', attempt: this.#retryInSendingHours(status) };
    }
    if (rule.code !== listQuotaCode) return result;
    // If this cannot be stored, vivo will refuse the next send with the same code.
    await this.#deps.context.quota.close(listClass, rule.reason).catch(() => undefined);
    return { kind: 'attempt', attempt: capped(status, rule.reason) };
  }

  /**
   * Returns a retry at the start of vivo's sending hours (protocol/gateways.md#sending-hours: no
   * backoff).
   */
  #retryInSendingHours(status = 0): AttemptResult {
    const afterMs = this.#isDay() ? daytimeRetryMs : untilHourMs(this.#nowMs(), sendingHours.from);
    return retry(status, 'outside_sending_hours', afterMs);
  }

  #nowMs(): number {
    return this.#deps.context.clock.now();
  }

  #isDay(): boolean {
    return isBetweenHours(this.#nowMs(), sendingHours.from, sendingHours.to);
  }

  async #post(
    path: string,
    call: Call,
    read: (reply: HttpResponse) => ExchangeResult,
  ): Promise<ExchangeResult> {
    const { context, client } = this.#deps;
    const { body, signal, token } = call;
    const reply = await client.request({ ...jsonPost(path, body, { authToken: token }), signal });
    const result = reply.kind === 'response' ? read(reply) : reply;
    context.onCall(gatewayCall(result, reply.seconds));
    return result;
  }

  /** Adds the URL for receipts, unless the push sets one. vivo sends no receipts for tests. */
  #withCallback(payload: VivoPayload, objectId: string): VivoPayload {
    const { message, messageClass } = payload;
    const { context, credentials } = this.#deps;
    const extra = typeof message.extra === 'object' ? message.extra : {};
    const callback = receiptUrl(context, credentials);
    const isFit =
      callback !== undefined && callback.length <= callbackChars && messageClass !== 'test';
    if (!isFit || (extra !== null && 'callback' in extra)) return payload;
    const receiptFields = { callback, 'callback.param': objectId };
    return { ...payload, message: { ...message, extra: { ...extra, ...receiptFields } } };
  }
}

/**
 * Returns a request id of at most 64 characters. It differs between lists of devices and stays the
 * same in all attempts.
 */
function requestIdOf(objectId: string, deviceTokens: readonly string[]): string {
  const digest = createHash('sha256').update(deviceTokens.join(' ')).digest('hex');
  return `${objectId.slice(0, 32)}-${digest.slice(0, 24)}`;
}
