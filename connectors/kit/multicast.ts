/**
 * Sends one push to the recipients of a batch in requests of many targets: who shares a request, how many requests
 * go at a time, and what each answer means to each recipient. A vendor's client brings the one thing that differs:
 * `exchange`, one request and its answer.
 */
import type { Clock } from '../../shared/clock.ts';
import type { HttpResponse, HttpUnanswered } from '../../shared/http/client.ts';
import type { Attempt, DayQuota, GatewayCall, Recipient, SendRequest } from '../contract/connector.ts';
import type { AccessTokens } from './access-token.ts';
import { capped, expired, retry, stopping, unanswered } from './attempt-results.ts';
import { attemptOf, type Row, rowOfStatus } from './response-rules.ts';

/** What one request came to. */
export type Reading =
  /** No answer; what was written may have arrived. */
  | HttpUnanswered
  /** Answered, but nobody can say what: it may have been sent. */
  | { kind: 'unreadable'; status: number }
  /** Something has to be tried first: an `Attempt` that all its recipients end with. */
  | { kind: 'attempt'; attempt: Attempt }
  | Answer;

export interface Answer {
  kind: 'answer';
  status: number;
  /** What the whole request met. */
  row: Row;
  /** Targets that were judged one by one; all others share `row`. */
  targets?: ReadonlyMap<string, Row>;
  messageId?: string | undefined;
  /** Ids of targets that have one each. */
  messageIds?: ReadonlyMap<string, string>;
  retryAfterMs?: number | null;
}

/** How a vendor sends: data and one function. */
export interface ManyPlan {
  clock: Clock;
  recipientsPerRequest: number;
  /** Requests of one send that are under way at a time. Default 4. */
  atOnce?: number;
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
  exchange(addresses: string[], token: string, signal: AbortSignal): Promise<Reading>;
}

/** Beyond so many requests more than planned, one send halves no further: then it is no single bad token. */
const maxHalvings = 64;

/** Sends to all recipients; resolves when each was reported once. */
export function sendMany(plan: ManyPlan, request: SendRequest): Promise<void> {
  return new ManySend(plan, request).run();
}

/** Answers as a vendor's client gets them: a body that cannot be read is judged by the status alone. */
export function unreadable({ status, retryAfterMs }: HttpResponse): Reading {
  if (status < 300) return { kind: 'unreadable', status };
  return { kind: 'answer', status, row: rowOfStatus(status), retryAfterMs };
}

/** The facts of one reading, for `SenderContext.onCall`. */
export function callOf(reading: Reading, seconds: number): GatewayCall {
  if (reading.kind === 'answer')
    return {
      status: reading.status,
      reason: reading.row.reaction === 'sent' ? 'ok' : reading.row.reason,
      seconds,
    };
  if (reading.kind === 'unreadable') return { status: reading.status, reason: 'unreadable_reply', seconds };
  return { status: 0, reason: reading.kind === 'attempt' ? 'not_asked' : reading.reason, seconds };
}

class ManySend {
  readonly #plan: ManyPlan;
  readonly #request: SendRequest;
  /** The same address twice would get the message twice: its recipients share one target. */
  readonly #byAddress = new Map<string, Recipient[]>();
  readonly #queue: string[][] = [];
  /** How what has not left yet ends, once that is known. */
  #ending: Attempt | null = null;
  #halvings = 0;

  constructor(plan: ManyPlan, request: SendRequest) {
    this.#plan = plan;
    this.#request = request;
    for (const recipient of request.recipients) {
      const known = this.#byAddress.get(recipient.address);
      if (known) known.push(recipient);
      else this.#byAddress.set(recipient.address, [recipient]);
    }
    const addresses = [...this.#byAddress.keys()];
    const { recipientsPerRequest } = plan;
    for (let i = 0; i < addresses.length; i += recipientsPerRequest)
      this.#queue.push(addresses.slice(i, i + recipientsPerRequest));
  }

  async run(): Promise<void> {
    const { message } = this.#request;
    if (message.expiresAtMs <= this.#plan.clock.now()) this.#ending = expired;
    const workers = Math.min(this.#plan.atOnce ?? 4, this.#queue.length);
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
  async #obstacle(): Promise<Attempt | null> {
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
    const reading = await this.#exchange(group, token.value);
    if (!tokens || reading.kind !== 'answer' || reading.row.reaction !== 'renew_token')
      return this.#judge(group, reading);
    const next = await tokens.replace(token.value);
    if (next === null) return this.#judge(group, reading);
    if (!next.ok) return this.#judge(group, { kind: 'attempt', attempt: next.attempt });
    return this.#judge(group, await this.#exchange(group, next.value));
  }

  #exchange(group: string[], token: string): Promise<Reading> {
    return this.#plan.exchange(group, token, this.#request.signal);
  }

  async #judge(group: string[], reading: Reading): Promise<void> {
    const { isRepeatHidden } = this.#plan;
    if (reading.kind === 'answer') return this.#judgeAnswer(group, reading);
    if (reading.kind === 'attempt') this.#end(reading.attempt);
    this.#reportAll(group, attemptWithoutAnswer(reading, isRepeatHidden));
  }

  async #judgeAnswer(group: string[], answer: Answer): Promise<void> {
    const { row, status, targets, retryAfterMs = null } = answer;
    const isAlone = group.length === 1;
    if (row.reaction === 'ambiguous' && !isAlone && this.#halvings < maxHalvings) {
      this.#halvings += 2;
      const middle = Math.ceil(group.length / 2);
      this.#queue.unshift(group.slice(0, middle), group.slice(middle));
      return;
    }
    // Of many targets no single one is known to be dead.
    const shared = row.reaction === 'dead_token' && !isAlone ? { ...row, reaction: 'fail' as const } : row;
    const attempt = withMessage(attemptOf(shared, status, { retryAfterMs, isAlone }), answer.messageId);
    if (endsTheRest(row)) this.#end(attempt);
    if (row.reaction === 'cap') await this.#closeForToday(row);
    for (const address of group) {
      const own = targets?.get(address);
      const told = own ? attemptOf(own, status, { retryAfterMs, isAlone: true }) : attempt;
      this.#report(address, withMessage(told, answer.messageIds?.get(address)));
    }
  }

  async #closeForToday({ reason }: Row): Promise<void> {
    const { quota } = this.#plan;
    // Not written down, the next send learns it from the gateway itself.
    await quota?.book.close(quota.messageClass, reason).catch(() => undefined);
  }

  #end(attempt: Attempt): void {
    this.#ending ??= attempt;
  }

  #reportAll(group: string[], attempt: Attempt): void {
    for (const address of group) this.#report(address, attempt);
  }

  #report(address: string, attempt: Attempt): void {
    for (const { index } of this.#byAddress.get(address) ?? []) this.#request.report(index, attempt);
  }
}

const endsTheRest = ({ reaction }: Row): boolean =>
  ['fail_push', 'throttle', 'halt', 'renew_token', 'cap'].includes(reaction);

function attemptWithoutAnswer(reading: Exclude<Reading, Answer>, isRepeatHidden: boolean): Attempt {
  if (reading.kind === 'attempt') return reading.attempt;
  if (reading.kind === 'unreadable') return { kind: 'unknown', reason: 'unreadable_reply', isRepeatHidden };
  return unanswered(reading, isRepeatHidden);
}

function withMessage(attempt: Attempt, messageId: string | undefined): Attempt {
  return attempt.kind === 'sent' && messageId ? { kind: 'sent', messageId } : attempt;
}
