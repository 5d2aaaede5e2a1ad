import { createHmac } from 'node:crypto';
import type { Clock } from '../../shared/clock.ts';
import {
  createHttpClient,
  defaultHttpTiming,
  type HttpResult,
  type HttpTiming,
} from '../../shared/http/client.ts';
import type { Provider, ProviderResult, SmsMessage } from '../provider.ts';

export interface SmsWebhookOptions {
  /** Where messages are posted. User and password in it become basic authentication. */
  url: string;
  /** Keys to sign with, the newest first: one signature each, so that a key can be changed without a gap. */
  keys: string[];
  clock: Clock;
  timing?: HttpTiming;
}

/** At once; further messages wait in the queue. */
const maxConnections = 8;

/** SMS and voice calls over a generic webhook (README.md has the wire form). */
export function openSmsWebhook(options: SmsWebhookOptions): Provider<SmsMessage> {
  const { url, keys, clock, timing = defaultHttpTiming } = options;
  const { origin, path, authorization } = readWebhookUrl(url);
  const client = createHttpClient({ baseUrl: origin, connections: maxConnections, timing, clock });
  return {
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
  const { id, appId, type, to, text, isVoice, code, sign, template, variables, expiresAtMs } = message;
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

/** What is signed: id, time and body, so that none of them can be exchanged. */
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

/** Answers that may differ next time: too early, timed out, conflict in progress, too many, and any 5xx. */
const transient = new Set([408, 423, 425, 429]);

/** What an answer means; its body is not read. */
export function readReply(reply: HttpResult): ProviderResult {
  if (reply.kind !== 'response') return { kind: 'retry', reason: reply.reason, afterMs: null };
  const { status, retryAfterMs } = reply;
  if (status >= 200 && status < 300) return { kind: 'sent' };
  // It has a message of this id already.
  if (status === 409) return { kind: 'sent' };
  const reason = `status_${status}`;
  if (status >= 500 || transient.has(status)) return { kind: 'retry', reason, afterMs: retryAfterMs };
  return { kind: 'refused', reason };
}

function readWebhookUrl(text: string): { origin: string; path: string; authorization: string | undefined } {
  const url = new URL(text);
  const user = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
  return {
    origin: url.origin,
    path: `${url.pathname}${url.search}`,
    authorization: user === ':' ? undefined : `Basic ${Buffer.from(user).toString('base64')}`,
  };
}
