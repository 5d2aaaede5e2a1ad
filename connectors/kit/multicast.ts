/**
 * Sends one push to the recipients of a batch in requests of many targets: who shares a request, how many requests
 * go at a time, and what each answer means to each recipient. A vendor's client brings the one thing that differs:
 * `exchange`, one request and its answer.
 */
import type { Clock } from '../../shared/clock.ts';
import type { HttpFailure, HttpResponse } from '../../shared/http/client.ts';
import type { AttemptResult, DayQuota, GatewayCall, Recipient, SendRequest } from '../contract/connector.ts';
import type { AccessTokens } from './access-token.ts';
import { capped, expired, retry, stopping, unanswered } from './attempt-results.ts';
import { attemptResult, type ResponseRule, ruleForStatus } from './response-rules.ts';

/** What one request came to. */
export type ExchangeResult =
  /** No answer; what was written may have arrived. */
  | HttpFailure
  /** Answered, but nobody can say what: it may have been sent. */
  | { kind: 'unreadable'; status: number }
  /** Something has to be tried first: an `Attempt` that all its recipients end with. */
  | { kind: 'attempt'; attempt: AttemptResult }
  | ParsedResponse;

export interface ParsedResponse {
  kind: 'parsed';
  status: number;
  /** What the whole request met. */
  rule: ResponseRule;
  /** Targets that were judged one by one; all others share `row`. */
  targets?: ReadonlyMap<string, ResponseRule>;
  messageId?: string | undefined;
  /** Ids of targets that have one each. */
  messageIds?: ReadonlyMap<string, string>;
  retryAfterMs?: number | null;
}

/** How a vendor sends: data and one function. */
export interface MulticastPlan {
  clock: Clock;
  recipientsPerRequest: number;
  /** Requests of one send that are under way at a time. Default 4. */
  concurrency?: number;
  /** Where the gateway wants a token. */
  tokens?: AccessTokens;
  /** The class that `cap` closes for the day, and where that is kept. */
  quota?: { book: DayQuota; messageClass: string };
  /** The device hides a repeat of this message (a tag, a server-side id): then an unknown outcome is tried again. */
  isRepeatHidden: boolean;
  /**
   * One request to these addresses, all different, at most `recipientsPerRequest`. `token` is empty where none is
   * wanted. Must not throw for an answer.
   */
  exchange(deviceTokens: string[], token: string, signal: AbortSignal): Promise<ExchangeResult>;
}

/** Beyond so many requests more than planned, one send halves no further: then it is no single bad token. */
const maxHalvings = 64;

/** Sends to all recipients; resolves when each was reported once. */
export function sendMulticast(plan: MulticastPlan, request: SendRequest): Promise<void> {
  return new MulticastSend(plan, request).run();
}

/** Answers as a vendor's client gets them: a body that cannot be read is judged by the status alone. */
export function unreadable({ status, retryAfterMs }: HttpResponse): ExchangeResult {
  if (status < 300) return { kind: 'unreadable', status };
  return { kind: 'parsed', status, rule: ruleForStatus(status), retryAfterMs };
}

/** The facts of one reading, for `SenderContext.onCall`. */
export function gatewayCall(result: ExchangeResult, seconds: number): GatewayCall {
  if (result.kind === 'parsed')
    return {
      status: result.status,
      reason: result.rule.reaction === 'sent' ? 'ok' : result.rule.reason,
      seconds,
    };
  if (result.kind === 'unreadable') return { status: result.status, reason: 'unreadable_reply', seconds };
  return { status: 0, reason: result.kind === 'attempt' ? 'not_asked' : result.reason, seconds };
}

class MulticastSend {
  readonly #plan: MulticastPlan;
  readonly #request: SendRequest;
  /** The same address twice would get the message twice: its recipients share one target. */
  readonly #byAddress = new Map<string, Recipient[]>();
  readonly #queue: string[][] = [];
  /** How what has not left yet ends, once that is known. */
  #ending: AttemptResult | null = null;
  #halvings = 0;

  constructor(plan: MulticastPlan, request: SendRequest) {
    this.#plan = plan;
    this.#request = request;
    for (const recipient of request.recipients) {
      const known = this.#byAddress.get(recipient.deviceToken);
      if (known) known.push(recipient);
      else this.#byAddress.set(recipient.deviceToken, [recipient]);
    }
    const deviceTokens = [...this.#byAddress.keys()];
    const { recipientsPerRequest } = plan;
    for (let i = 0; i < deviceTokens.length; i += recipientsPerRequest)
      this.#queue.push(deviceTokens.slice(i, i + recipientsPerRequest));
  }

  async run(): Promise<void> {
    const { message } = this.#request;
    if (message.expiresAtMs <= this.#plan.clock.now()) this.#ending = expired;
    const workers = Math.min(this.#plan.concurrency ?? 4, this.#queue.length);
    await Promise.all(Array.from({ length: workers }, () => this.#work()));
  }

  /** Takes groups until there are none; one that is halved comes back as two. */
  async #work(): Promise<void> {
    for (let group = this.#queue.shift(); group; group = this.#queue.shift()) {
      const ending = this.#ending ?? (await this.#obstacle());
      if (ending) this.#reportAll(group, ending);
      else await this.#sendGroup(group);
    }
  }

  /** Why nothing may leave now. */
  async #obstacle(): Promise<AttemptResult | null> {
    if (this.#request.signal.aborted) return stopping;
    const { quota } = this.#plan;
    if (!quota) return null;
    try {
      const reason = await quota.book.closed(quota.messageClass);
      return reason === null ? null : capped(0, reason);
    } catch {
      return retry(0, 'quota_unavailable');
    }
  }

  async #sendGroup(group: string[]): Promise<void> {
    const { tokens } = this.#plan;
    const token = tokens ? await tokens.current() : { ok: true as const, value: '' };
    if (!token.ok) {
      this.#end(token.attempt);
      this.#reportAll(group, token.attempt);
      return;
    }
    const result = await this.#exchange(group, token.value);
    if (!tokens || result.kind !== 'parsed' || result.rule.reaction !== 'renew_token')
      return this.#judge(group, result);
    const next = await tokens.replace(token.value);
    if (next === null) return this.#judge(group, result);
    if (!next.ok) return this.#judge(group, { kind: 'attempt', attempt: next.attempt });
    return this.#judge(group, await this.#exchange(group, next.value));
  }

  #exchange(group: string[], token: string): Promise<ExchangeResult> {
    return this.#plan.exchange(group, token, this.#request.signal);
  }

  async #judge(group: string[], result: ExchangeResult): Promise<void> {
    const { isRepeatHidden } = this.#plan;
    if (result.kind === 'parsed') return this.#judgeAnswer(group, result);
    if (result.kind === 'attempt') this.#end(result.attempt);
    this.#reportAll(group, unparsedResult(result, isRepeatHidden));
  }

  async #judgeAnswer(group: string[], answer: ParsedResponse): Promise<void> {
    const { rule, status, targets, retryAfterMs = null } = answer;
    const isAlone = group.length === 1;
    if (rule.reaction === 'ambiguous' && !isAlone && this.#halvings < maxHalvings) {
      this.#halvings += 2;
      const middle = Math.ceil(group.length / 2);
      this.#queue.unshift(group.slice(0, middle), group.slice(middle));
      return;
    }
    // Of many targets no single one is known to be dead.
    const shared = rule.reaction === 'dead_token' && !isAlone ? { ...rule, reaction: 'fail' as const } : rule;
    const attempt = withMessageId(attemptResult(shared, status, { retryAfterMs, isAlone }), answer.messageId);
    if (endsSend(rule)) this.#end(attempt);
    if (rule.reaction === 'cap') await this.#closeForToday(rule);
    for (const deviceToken of group) {
      const own = targets?.get(deviceToken);
      const told = own ? attemptResult(own, status, { retryAfterMs, isAlone: true }) : attempt;
      this.#report(deviceToken, withMessageId(told, answer.messageIds?.get(deviceToken)));
    }
  }

  async #closeForToday({ reason }: ResponseRule): Promise<void> {
    const { quota } = this.#plan;
    // Not written down, the next send learns it from the gateway itself.
    await quota?.book.close(quota.messageClass, reason).catch(() => undefined);
  }

  #end(attempt: AttemptResult): void {
    this.#ending ??= attempt;
  }

  #reportAll(group: string[], attempt: AttemptResult): void {
    for (const deviceToken of group) this.#report(deviceToken, attempt);
  }

  #report(deviceToken: string, attempt: AttemptResult): void {
    for (const { index } of this.#byAddress.get(deviceToken) ?? []) this.#request.report(index, attempt);
  }
}

const endsSend = ({ reaction }: ResponseRule): boolean =>
  ['fail_push', 'throttle', 'profile_error', 'renew_token', 'cap'].includes(reaction);

function unparsedResult(
  result: Exclude<ExchangeResult, ParsedResponse>,
  isRepeatHidden: boolean,
): AttemptResult {
  if (result.kind === 'attempt') return result.attempt;
  if (result.kind === 'unreadable') return { kind: 'unknown', reason: 'unreadable_reply', isRepeatHidden };
  return unanswered(result, isRepeatHidden);
}

function withMessageId(attempt: AttemptResult, messageId: string | undefined): AttemptResult {
  return attempt.kind === 'sent' && messageId ? { kind: 'sent', messageId } : attempt;
}
