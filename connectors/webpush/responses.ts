/**
 * Answers of push services (protocol/webpush.md#answers). The services share RFC 8030 and differ in
 * what they refuse and how they say it.
 */
import type { PushService } from '../../shared/domain/installations/push-services.ts';
import { isJsonObject } from '../../shared/domain/json.ts';
import { isTemporaryStatus } from '../../shared/http/result.ts';
import {
  type ResponseRule,
  responseTable,
  ruleForPage,
  ruleForStatus,
} from '../kit/response-rules.ts';
import { parseObject } from '../kit/values.ts';

/** A rule, and whether it concerns the VAPID key of the subscription. */
export interface WebPushRule extends ResponseRule {
  /**
   * The subscription was made with another key. It is invalid only if the service accepts messages
   * signed with this key for other subscriptions.
   */
  isOtherKey?: true;
}

/** A new subscription may be unknown to its push service for some seconds. */
const newSubscriptionMs = 60_000;
/** Wait after a rate limit without `Retry-After`. */
const rateWaitMs = 60_000;
/** Wait if the device of a UnifiedPush server is away (ntfy, code 50701). */
const awayMs = 10 * 60_000;

const gone = (code: string): WebPushRule => ({
  code,
  reason: 'unsubscribed',
  reaction: 'dead_token',
  isProof: true,
  keepForMs: newSubscriptionMs,
});
const otherKey = (code: string): WebPushRule => ({
  code,
  reason: 'subscription_of_other_key',
  reaction: 'dead_token',
  keepForMs: newSubscriptionMs,
  isOtherKey: true,
});
const tooLarge = (code: string): WebPushRule => ({
  code,
  reason: 'message_too_large',
  reaction: 'fail',
  isOfDevice: true,
});
const refusedSender = (code: string): WebPushRule => ({
  code,
  reason: 'sender_refused',
  reaction: 'profile_error',
  hint: 'webpushSender',
});
const malformed = (code: string): WebPushRule => ({
  code,
  reason: 'bad_request',
  reaction: 'fail',
});

export const responseRules: readonly WebPushRule[] = [
  { code: '200', reason: 'ok', reaction: 'sent' },
  { code: '201', reason: 'ok', reaction: 'sent' },
  { code: '202', reason: 'ok', reaction: 'sent' },
  { code: '204', reason: 'ok', reaction: 'sent' },
  // RFC 8030, 7.3 names 404. Services say 410 when a user has unsubscribed.
  gone('404'),
  gone('410'),
  malformed('400'),
  refusedSender('401'),
  refusedSender('403'),
  malformed('405'),
  tooLarge('413'),
  // The rate of one device (Apple) or visitor (ntfy).
  { code: '429', reason: 'device_rate_exceeded', reaction: 'retry', defaultWaitMs: rateWaitMs },
  { code: '507', reason: 'device_unreachable_now', reaction: 'retry', afterMs: awayMs },
  // Google limits the whole site.
  { code: 'google 429', reason: 'rate_exceeded', reaction: 'throttle', defaultWaitMs: rateWaitMs },
  tooLarge('google 400 size'),
  otherKey('google 403 key'),
  refusedSender('google 400 sender'),
  // The book of Mozilla's push service, errno.
  gone('mozilla 404 102'),
  tooLarge('mozilla 413 104'),
  otherKey('mozilla 401 key'),
  otherKey('apple 400 VapidPkHashMismatch'),
  otherKey('apple 403 VapidPkHashMismatch'),
  refusedSender('apple 400 BadAuthorizationHeader'),
  refusedSender('apple 400 BadVapidPublicKey'),
  refusedSender('apple 400 BadJwtToken'),
  otherKey('microsoft 401 key'),
  otherKey('microsoft 403 key'),
  {
    code: 'microsoft 406',
    reason: 'rate_exceeded',
    reaction: 'throttle',
    defaultWaitMs: rateWaitMs,
  },
];

const ruleFor: (code: string) => WebPushRule = responseTable(responseRules);
const known = new Set(responseRules.map(({ code }) => code));

/**
 * Pages of proxies. Push services answer with JSON, a short text or nothing. Traefik and
 * ingress-nginx answer 404 with these texts while the service behind them is away.
 */
const proxyPage = /^\s*(<|404 page not found\s*$|default backend - 404\s*$)/;

/** The parts of an answer that decide about it. */
export interface PushAnswer {
  status: number;
  body: string;
  /** Microsoft's reason (`X-WNS-Error-Description`). Its errors have no body. */
  header?: string | undefined;
}

/** Returns the rule of an answer: the first row that fits, from the most specific code on. */
export function ruleForAnswer(service: PushService, answer: PushAnswer): WebPushRule {
  const { body, status } = answer;
  const detail = detailOf(service, answer);
  if (status >= 400 && detail === '' && proxyPage.test(body)) return ruleForPage(status);
  const code = [`${service} ${status} ${detail}`, `${service} ${status}`, `${status}`].find((one) =>
    known.has(one),
  );
  if (code !== undefined) return ruleFor(code);
  if (isTemporaryStatus(status)) return ruleForStatus(status);
  if (status >= 300 && status < 400)
    return { code: `${status}`, reason: 'redirected', reaction: 'fail' };
  return { code: `http_${status}`, reason: 'bad_request', reaction: 'fail' };
}

/** Returns the part of the answer that distinguishes answers with the same status. */
function detailOf(service: PushService, { body, header = '', status }: PushAnswer): string {
  switch (service) {
    case 'google':
      if (status === 400 && /less than \d+ bytes/.test(body)) return 'size';
      if (status === 400 && /UnauthorizedRegistration/.test(body)) return 'sender';
      return status === 403 && /do not correspond/.test(body) ? 'key' : '';
    case 'mozilla': {
      const error = parseObject(body);
      const message = typeof error?.message === 'string' ? error.message : '';
      if (status === 401 && /public key mismatch/i.test(message)) return 'key';
      return typeof error?.errno === 'number' ? String(error.errno) : '';
    }
    case 'apple': {
      const error = parseObject(body);
      return isJsonObject(error) && typeof error.reason === 'string' ? error.reason : '';
    }
    case 'microsoft':
      return (status === 401 || status === 403) && /public key.*channel/i.test(header) ? 'key' : '';
    default:
      return '';
  }
}
