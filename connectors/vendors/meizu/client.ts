/**
 * Client of Meizu (protocol/meizu.md). A request sends one message to at most 100 devices, and each
 * request is signed.
 */

import { createHash } from 'node:crypto';
import { z } from 'zod';
import { isJsonObject, type Json, type JsonObject } from '../../../shared/domain/json.ts';
import {
  createHttpClient,
  formPost,
  type HttpClient,
  type HttpTiming,
} from '../../../shared/http/client.ts';
import type { HttpResult } from '../../../shared/http/result.ts';
import type {
  CredentialReport,
  GatewayCheck,
  Rate,
  Sender,
  SenderContext,
  SendRequest,
} from '../../contract/connector.ts';
import { authEndpoint, common, inspectTrust, secretText } from '../../contract/credentials.ts';
import { checkConnection } from '../../kit/connection-check.ts';
import {
  type ExchangeResult,
  gatewayCall,
  sendMulticast,
  unreadable,
} from '../../kit/multicast.ts';
import { receiptUrl } from '../../kit/receipts.ts';
import {
  type ResponseRule,
  reportAll,
  ruleForReply,
  unrenderable,
} from '../../kit/response-rules.ts';
import { parseObject } from '../../kit/values.ts';
import { limits, type MeizuPayload, renderMeizu } from './payload.ts';
import { requestedReceipts } from './receipts.ts';
import { callRuleFor, targetRuleFor } from './responses.ts';

export const meizuCredentials = z.strictObject({
  appId: secretText('appId'),
  appSecret: secretText('appSecret'),
  /**
   * Token that was entered in Meizu's console together with the URL for receipts. It shows that the
   * URL is registered. Meizu may lose messages with an unregistered URL
   * (protocol/meizu.md#receipts), so messages have no URL without this token.
   */
  receiptToken: secretText('receiptToken').optional(),
  ...common,
  ...authEndpoint,
});

export type MeizuCredentials = z.infer<typeof meizuCredentials>;

/**
 * Returns the rate: 200 per second, unless Meizu granted more. It is unknown whether Meizu counts
 * requests or devices (protocol/meizu.md#limits). Counting devices respects both.
 */
export function rateOf({
  ratePerSecond: perSecond = 200,
}: Pick<MeizuCredentials, 'ratePerSecond'>): Rate {
  return { perSecond, counts: 'recipients', burst: Math.ceil(perSecond / 10), rampMs: 0 };
}

/** Reports on the credentials. A secret contains no expiry time, so only `ca` is checked. */
export function inspectMeizu({ ca }: MeizuCredentials, nowMs: number): CredentialReport {
  return { kind: 'secret', ...inspectTrust(ca, nowMs) };
}

/** Host of mainland China (protocol/meizu.md#hosts). Profiles for other regions set `endpoint`. */
const host = 'https://server-api-push.meizu.com';
const path = '/garcia/api/server/push/varnished/pushByPushId';

/** Maximum length of the URL for receipts (protocol/meizu.md#message). */
const callbackBytes = 128;

/** Opens the sender of one profile. It connects when the first push is sent. */
export function openMeizu(
  credentials: MeizuCredentials,
  { context, timing }: { context: SenderContext; timing: HttpTiming },
): Sender {
  return new MeizuSender(credentials, context, timing);
}

/**
 * Signs a call: a digest of all other parameters, sorted by name, and the secret
 * (protocol/meizu.md#signature).
 */
export function signatureOf(
  parameters: Readonly<Record<string, string>>,
  appSecret: string,
): string {
  const text = Object.entries(parameters)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => `${name}=${value}`)
    .join('');
  return createHash('md5').update(`${text}${appSecret}`).digest('hex');
}

class MeizuSender implements Sender {
  readonly #credentials: MeizuCredentials;
  readonly #context: SenderContext;
  readonly #timing: HttpTiming;
  /** Clients by origin, because the gateway may redirect calls. */
  readonly #clients = new Map<string, HttpClient>();
  #isClosed = false;

  constructor(credentials: MeizuCredentials, context: SenderContext, timing: HttpTiming) {
    this.#credentials = credentials;
    this.#context = context;
    this.#timing = timing;
  }

  async send(request: SendRequest): Promise<void> {
    const { clock, quota: dayQuota } = this.#context;
    const rendering = renderMeizu(request.message, clock.now());
    if (!rendering.ok) return reportAll(request, unrenderable(rendering));
    const { messageClass, parameters } = rendering.payload;
    const messageJson = JSON.stringify(
      this.#messageOf(rendering.payload, request.message.objectId),
    );
    await sendMulticast(
      {
        clock,
        recipientsPerRequest: limits.recipientsPerRequest,
        separator: ',',
        quota: { dayQuota, messageClass },
        // The device shows only the last message with the same key.
        isRepeatHidden: true,
        exchange: (deviceTokens, _token, signal) =>
          this.#exchange(
            { ...parameters, messageJson, pushIds: deviceTokens.join(',') },
            deviceTokens,
            signal,
          ),
      },
      request,
    );
  }

  check(): Promise<GatewayCheck> {
    const { ca, endpoint: baseUrl = host } = this.#credentials;
    return checkConnection({ baseUrl, ca }, this.#timing.connectMs);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#clients.values()].map((client) => client.close()));
  }

  /** Adds the URL for receipts to the message, unless the push sets one. */
  #messageOf({ message }: MeizuPayload, objectId: string): JsonObject {
    const callback = this.#callback();
    const extra = isJsonObject(message.extra) ? message.extra : {};
    if (callback === undefined || 'callback' in extra) return message;
    const receiptFields = {
      callback,
      'callback.param': objectId,
      'callback.type': requestedReceipts,
    };
    return { ...message, extra: { ...extra, ...receiptFields } };
  }

  /**
   * Returns the URL for receipts if Meizu's console knows it, or if the profile has an `endpoint`.
   * Meizu may lose messages with an unknown URL.
   */
  #callback(): string | undefined {
    const { endpoint, receiptToken } = this.#credentials;
    const callback = receiptUrl(this.#context, this.#credentials);
    const isRegistered = receiptToken !== undefined || endpoint !== undefined;
    const fits = callback !== undefined && Buffer.byteLength(callback) <= callbackBytes;
    return isRegistered && fits ? callback : undefined;
  }

  async #exchange(
    parameters: Record<string, string>,
    deviceTokens: readonly string[],
    signal: AbortSignal,
  ): Promise<ExchangeResult> {
    const { appId, appSecret, endpoint = host } = this.#credentials;
    const signed = { appId, ...parameters };
    const form = { ...signed, sign: signatureOf(signed, appSecret) };
    const result = await this.#post(endpoint, path, { form, deviceTokens, signal });
    const elsewhere = result.kind === 'parsed' ? this.#redirectOf(result) : undefined;
    if (!elsewhere) return result;
    const { origin, pathname, search } = elsewhere;
    return this.#post(origin, `${pathname}${search}`, { form, deviceTokens, signal });
  }

  async #post(
    baseUrl: string,
    pathname: string,
    { form, deviceTokens, signal }: Call,
  ): Promise<ExchangeResult & { redirect?: string }> {
    const reply = await this.#clientOf(baseUrl).request({ ...formPost(pathname, form), signal });
    const result = parseResponse(reply, deviceTokens);
    this.#context.onCall(gatewayCall(result, reply.seconds));
    return result;
  }

  /** Returns the target of a redirect if it is a host of Meizu or the profile's endpoint. */
  #redirectOf({ redirect = '' }: { redirect?: string }): URL | undefined {
    if (!URL.canParse(redirect)) return undefined;
    const url = new URL(redirect);
    const { endpoint = host } = this.#credentials;
    const isOwn =
      url.protocol === 'https:' && /(^|\.)meizu\.com$/.test(url.hostname) && url.port === '';
    return isOwn || url.origin === new URL(endpoint).origin ? url : undefined;
  }

  #clientOf(baseUrl: string): HttpClient {
    const existing = this.#clients.get(baseUrl);
    if (existing) return existing;
    const { ca } = this.#credentials;
    const client = createHttpClient({
      baseUrl,
      ca,
      timing: this.#timing,
      clock: this.#context.clock,
    });
    this.#clients.set(baseUrl, client);
    if (this.#isClosed) void client.close();
    return client;
  }
}

interface Call {
  form: Record<string, string>;
  deviceTokens: readonly string[];
  signal: AbortSignal;
}

/**
 * Parses a response (protocol/meizu.md#answers). With code 300, the response also contains the
 * target of a redirect.
 */
function parseResponse(
  reply: HttpResult,
  deviceTokens: readonly string[],
): ExchangeResult & { redirect?: string } {
  if (reply.kind !== 'response') return reply;
  const body = parseObject(reply.body);
  const code = body?.code;
  if (!body || (typeof code !== 'string' && typeof code !== 'number')) return unreadable(reply);
  const rule = ruleForReply(reply.status, callRuleFor(code));
  const { msgId, redirect } = body;
  return {
    kind: 'parsed',
    status: reply.status,
    rule,
    targets:
      rule.reaction === 'sent'
        ? parseTargets(body.value, deviceTokens)
        : new Map<string, ResponseRule>(),
    messageId: typeof msgId === 'string' && msgId !== '' ? msgId : undefined,
    retryAfterMs: reply.retryAfterMs,
    ...(rule.code === '300' && typeof redirect === 'string' ? { redirect } : {}),
  };
}

/**
 * Parses the failed devices. Meizu documents lists of devices by code; real responses also contain
 * codes by device.
 */
function parseTargets(
  value: Json | undefined,
  deviceTokens: readonly string[],
): Map<string, ResponseRule> {
  const targets = new Map<string, ResponseRule>();
  if (!isJsonObject(value)) return targets;
  const requested = new Set(deviceTokens);
  for (const [key, member] of Object.entries(value)) {
    if (requested.has(key)) {
      if (typeof member === 'string' || typeof member === 'number')
        targets.set(key, targetRuleFor(member));
      continue;
    }
    const named = Array.isArray(member)
      ? member
      : typeof member === 'string'
        ? member.split(',')
        : [];
    for (const deviceToken of named)
      if (typeof deviceToken === 'string') targets.set(deviceToken, targetRuleFor(key));
  }
  return targets;
}
