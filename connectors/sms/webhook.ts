import { createHmac } from 'node:crypto';
import type { Clock } from '../../shared/clock.ts';
import { basicAuthorization } from '../../shared/domain/addresses.ts';
import { reason } from '../../shared/domain/reasons.ts';
import { createHttpClient, defaultHttpTiming, type HttpTiming } from '../../shared/http/client.ts';
import { type HttpResult, isTemporaryStatus } from '../../shared/http/result.ts';
import type { Provider, ProviderResult, SmsMessage } from '../provider.ts';

/** Options of the SMS webhook. */
export interface SmsWebhookOptions {
  /**
   * URL that receives the messages. User and password in the URL are sent as basic authentication.
   */
  url: string;
  /**
   * Signing keys, newest first. Each key makes a signature, so that a key can be replaced without
   * downtime.
   */
  keys: string[];
  clock: Clock;
  timing?: HttpTiming;
}

/** Concurrent connections. Further messages wait in the client's queue. */
const maxConnections = 8;

/**
 * Opens the provider that sends SMS and voice calls through a webhook
 * (operate/mail-and-sms.md#sms-webhook).
 */
export function openSmsWebhook(options: SmsWebhookOptions): Provider<SmsMessage> {
  const { url, keys, clock, timing = defaultHttpTiming } = options;
  const { origin, path, authorization } = readWebhookUrl(url);
  const client = createHttpClient({
    baseUrl: origin,
    isTrustedUrl: true,
    connections: maxConnections,
    timing,
    clock,
  });
  return {
    host: new URL(origin).host,
    async send(message) {
      const body = bodyOf(message);
      const reply = await client.request({
        method: 'POST',
        path,
        headers: {
          'content-type': 'application/json; charset=utf-8',
          ...(authorization === undefined ? {} : { authorization }),
          ...signatureHeaders(keys, { id: message.id, body, epochMs: clock.now() }),
        },
        body,
      });
      return readReply(reply);
    },
    close: () => client.close(),
  };
}

function bodyOf(message: SmsMessage): string {
  const { id, appId, type, to, text, isVoice, code, sign, template, variables, expiresAtMs } =
    message;
  return JSON.stringify({
    id,
    appId,
    channel: isVoice ? 'voice' : 'sms',
    type,
    to,
    text,
    code,
    sign,
    template,
    variables,
    expiresAt: new Date(expiresAtMs).toISOString(),
  });
}

/**
 * Returns the headers with the signatures of a request. A signature covers id, timestamp and body.
 */
export function signatureHeaders(
  keys: string[],
  { id, body, epochMs }: { id: string; body: string; epochMs: number },
): Record<string, string> {
  const timestamp = String(Math.floor(epochMs / 1000));
  const sign = (key: string) =>
    createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('hex');
  return {
    'carillon-message-id': id,
    'carillon-timestamp': timestamp,
    'carillon-signature': keys.map((key) => `v1=${sign(key)}`).join(', '),
  };
}

/** Returns the result of a response. The body is ignored. */
export function readReply(reply: HttpResult): ProviderResult {
  if (reply.kind !== 'response') return { kind: 'retry', reason: reply.reason, afterMs: null };
  const { status, retryAfterMs } = reply;
  if (status >= 200 && status < 300) return { kind: 'sent' };
  // The webhook already has the message with this id.
  if (status === 409) return { kind: 'sent' };
  const why = reason('smsStatus', { status });
  if (isTemporaryStatus(status)) return { kind: 'retry', reason: why, afterMs: retryAfterMs };
  return { kind: 'refused', reason: why };
}

function readWebhookUrl(text: string): {
  origin: string;
  path: string;
  authorization: string | undefined;
} {
  const url = new URL(text);
  return {
    origin: url.origin,
    path: `${url.pathname}${url.search}`,
    authorization: basicAuthorization(url),
  };
}
