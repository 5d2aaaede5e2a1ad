import { randomInt } from 'node:crypto';
import { dayMs, hourMs } from '../../shared/clock.ts';
import type { AttemptResult, DueDelivery } from '../../shared/db/tables/webhook-deliveries.ts';
import { chatError } from '../../shared/domain/webhooks/chat.ts';
import {
  retryWaitsMs,
  type WebhookFormat,
  webhookLimits,
} from '../../shared/domain/webhooks/endpoint.ts';
import type { HttpResult } from '../../shared/http/result.ts';

/** Statuses whose `Retry-After` counts (Standard Webhooks, "Deliverability and reliability"). */
const throttling = new Set([429, 502, 503, 504]);
/** Longest wait of the whole endpoint that a response can request. */
const maxThrottleMs = hourMs;

type Attempted = Pick<DueDelivery, 'attempts' | 'isManual' | 'endedAt'>;

/** What a response says about a delivery and its endpoint. */
export interface Judgement extends AttemptResult {
  /** True if the endpoint answered that it does not exist any more. */
  isGone: boolean;
  /** Time for which the endpoint asks for no requests at all, in ms; 0 for none. */
  throttleMs: number;
}

/**
 * Judges the response to an attempt. Success is a status of 2xx, and for a chat no error code in
 * the body. A redirect is a failure. 410 ends the endpoint.
 */
export function judge(result: HttpResult, delivery: Attempted, format: WebhookFormat): Judgement {
  const status = result.kind === 'response' ? result.status : null;
  const response = result.kind === 'response' ? beginningOf(result.body) : null;
  const reason = failureOf(result, format);
  const isGone = status === 410;
  const seen = { status, response, isAttempt: true, isGone };
  if (reason === null) return { ...seen, state: 'delivered', reason, afterMs: null, throttleMs: 0 };
  const requestedMs =
    result.kind === 'response' && throttling.has(result.status) ? (result.retryAfterMs ?? 0) : 0;
  const throttleMs = Math.min(requestedMs, maxThrottleMs);
  const waitMs = isGone ? null : waitAfter(delivery, requestedMs);
  const state = waitMs === null ? 'failed' : 'waiting';
  return { ...seen, state, reason, afterMs: waitMs, throttleMs };
}

/** Returns why an attempt failed; null for a success. */
function failureOf(result: HttpResult, format: WebhookFormat): string | null {
  if (result.kind !== 'response')
    return result.cause === undefined ? result.reason : `${result.reason} (${result.cause})`;
  if (result.status < 200 || result.status > 299) return `http_${result.status}`;
  const error = format === 'standard' ? undefined : chatError(format, result.body);
  return error === undefined ? null : `chat_${error}`;
}

/**
 * Returns the wait before the next attempt, with a tenth of jitter. Returns null after the last
 * attempt, and after a redelivery of a delivery that had ended.
 */
function waitAfter({ attempts, isManual, endedAt }: Attempted, requestedMs: number): number | null {
  if (isManual && endedAt !== null) return null;
  const waitMs = retryWaitsMs[attempts];
  if (waitMs === undefined) return null;
  const jitterMs = randomInt(Math.ceil(waitMs / 10) + 1);
  return Math.max(waitMs, Math.min(requestedMs, dayMs)) + jitterMs;
}

/** Returns the first KB of a response as a text that PostgreSQL stores. */
const beginningOf = (body: string): string =>
  Buffer.from(body.slice(0, webhookLimits.responseBytes))
    .subarray(0, webhookLimits.responseBytes)
    .toString('utf8')
    .replaceAll('\0', '')
    .replace(/\uFFFD+$/, '');
