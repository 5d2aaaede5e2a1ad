/**
 * Sends one push in requests with many recipients. Splits recipients into requests, limits
 * concurrency, and maps each response to the results of its recipients. A vendor's client provides
 * `exchange`, which sends one request and parses its response.
 */
import type { Clock } from '../../shared/clock.ts';
import type { HttpFailure, HttpResponse } from '../../shared/http/result.ts';
import { EqualRefusals } from '../contract/attempt-result.ts';
import type {
  AttemptResult,
  DayQuota,
  GatewayCall,
  Recipient,
  SendRequest,
} from '../contract/connector.ts';
import type { AccessTokens } from './access-token.ts';
import {
  attemptResult,
  capped,
  expired,
  malformedToken,
  type ResponseRule,
  retry,
  ruleForPage,
  stopping,
  unanswered,
} from './response-rules.ts';

/** Result of one request. */
export type ExchangeResult =
  /** No response. */
  | HttpFailure
  /** The body of the response cannot be parsed. The message may have been sent. */
  | { kind: 'unreadable'; status: number }
  /**
   * The request was not sent. The result counts for its recipients and for all remaining recipients
   * of this send.
   */
  | { kind: 'attempt'; attempt: AttemptResult }
  | ParsedResponse;

export interface ParsedResponse {
  kind: 'parsed';
  status: number;
  /** Rule for the whole request. */
  rule: ResponseRule;
  /** Rules for single device tokens. All other recipients get `rule`. */
  targets?: ReadonlyMap<string, ResponseRule>;
  messageId?: string | undefined;
  /** Message ids for single device tokens. */
  messageIds?: ReadonlyMap<string, string>;
  retryAfterMs?: number | null;
}

/** How a vendor's connector sends. */
export interface MulticastPlan {
  clock: Clock;
  recipientsPerRequest: number;
  /**
   * Separator of the device tokens in a request. A token that contains it fails without a request,
   * because the gateway would read it as several tokens.
   */
  separator?: string;
  /** Concurrent requests of one send; 4 by default. */
  concurrency?: number;
  /** Access tokens. Absent if the gateway needs none. */
  tokens?: AccessTokens;
  /** Message class that the reaction `cap` closes for the day, and the store of closed classes. */
  quota?: { dayQuota: DayQuota; messageClass: string };
  /**
   * Region or API of these requests, if the vendor has several. Refusals of one group say nothing
   * about another group.
   */
  group?: string;
  /** `form` of its results (`AttemptResult`), if the vendor has several kinds of tokens. */
  form?: string;
  /**
   * True if device or gateway hide a repeat of this message by a tag or message id. An unknown
   * outcome is then retried.
   */
  isRepeatHidden: boolean;
  /**
   * Sends one request. `deviceTokens` contains no duplicates and at most `recipientsPerRequest`
   * tokens. `accessToken` is empty without `tokens`. Must not throw because of a response.
   */
  exchange(
    deviceTokens: string[],
    accessToken: string,
    signal: AbortSignal,
  ): Promise<ExchangeResult>;
}

/**
 * Maximum number of extra requests per send made by halving. If more were needed, a single bad
 * token would not be the cause.
 */
const maxHalvings = 64;

/** Sends to all recipients. Resolves when each was reported once. */
export function sendMulticast(plan: MulticastPlan, request: SendRequest): Promise<void> {
  return new MulticastSend(plan, request).run();
}

/** Returns the result of a response whose body cannot be parsed. */
export function unreadable({ status, retryAfterMs }: HttpResponse): ExchangeResult {
  if (status < 300) return { kind: 'unreadable', status };
  return { kind: 'parsed', status, rule: ruleForPage(status), retryAfterMs };
}

/** Returns the metrics of one request for `SenderContext.onCall`. */
export function gatewayCall(result: ExchangeResult, seconds: number): GatewayCall {
  if (result.kind === 'parsed')
    return {
      status: result.status,
      reason: result.rule.reaction === 'sent' ? 'ok' : result.rule.reason,
      seconds,
    };
  if (result.kind === 'unreadable')
    return { status: result.status, reason: 'unreadable_reply', seconds };
  return { status: 0, reason: result.kind === 'attempt' ? 'not_asked' : result.reason, seconds };
}

class MulticastSend {
  readonly #plan: MulticastPlan;
  readonly #request: SendRequest;
  /**
   * Recipients whose token equals the token of an earlier recipient. They get its result, because a
   * second message would be shown twice.
   */
  readonly #duplicates = new Map<string, Recipient[]>();
  readonly #queue: Recipient[][] = [];
  /** Result for all recipients that are not sent to yet. Null until a response ends the send. */
  #ending: AttemptResult | null = null;
  #halvings = 0;
  readonly #refusals: EqualRefusals;
  readonly #group: string;
  #hasSuccess = false;

  constructor(plan: MulticastPlan, request: SendRequest) {
    this.#plan = plan;
    this.#request = request;
    this.#refusals = request.refusals ?? new EqualRefusals();
    this.#group = plan.group ?? '';
    const targets = this.#distinct(request.recipients);
    const { recipientsPerRequest } = plan;
    for (let i = 0; i < targets.length; i += recipientsPerRequest)
      this.#queue.push(targets.slice(i, i + recipientsPerRequest));
  }

  async run(): Promise<void> {
    if (this.#isExpired) this.#ending = expired;
    const workers = Math.min(this.#plan.concurrency ?? 4, this.#queue.length);
    await Promise.all(Array.from({ length: workers }, () => this.#runWorker()));
  }

  get #isExpired(): boolean {
    return this.#request.message.expiresAtMs <= this.#plan.clock.now();
  }

  /**
   * Returns one recipient per token. The other recipients of the token are kept in `#duplicates`.
   * Reports the recipients whose token contains the separator.
   */
  #distinct(recipients: readonly Recipient[]): Recipient[] {
    const { separator } = this.#plan;
    const seen = new Set<string>();
    const targets: Recipient[] = [];
    for (const recipient of recipients) {
      const { deviceToken } = recipient;
      const { size } = seen;
      if (separator !== undefined && deviceToken.includes(separator))
        this.#request.report(recipient.index, malformedToken);
      else if (seen.add(deviceToken).size > size) targets.push(recipient);
      else
        this.#duplicates.set(deviceToken, [
          ...(this.#duplicates.get(deviceToken) ?? []),
          recipient,
        ]);
    }
    return targets;
  }

  /**
   * Sends groups until the queue is empty. A group that is halved returns to the queue as two
   * groups.
   */
  async #runWorker(): Promise<void> {
    for (let group = this.#queue.shift(); group; group = this.#queue.shift()) {
      const ending =
        this.#ending ?? this.#refusals.endingOf(this.#group) ?? (await this.#blocker());
      if (ending) this.#reportAll(group, ending);
      else await this.#sendGroup(group);
    }
  }

  /** Returns the result if no request may be sent now; null otherwise. */
  async #blocker(): Promise<AttemptResult | null> {
    if (this.#request.signal.aborted) return stopping;
    const { quota } = this.#plan;
    if (!quota) return null;
    try {
      const reason = await quota.dayQuota.closed(quota.messageClass);
      return reason === null ? null : capped(0, reason);
    } catch {
      return retry(0, 'quota_unavailable');
    }
  }

  async #sendGroup(group: Recipient[]): Promise<void> {
    const { tokens } = this.#plan;
    const token = tokens ? await tokens.current() : { ok: true as const, value: '' };
    if (!token.ok) {
      this.#end(token.attempt);
      this.#reportAll(group, token.attempt);
      return;
    }
    const result = await this.#exchange(group, token.value);
    if (!tokens || result.kind !== 'parsed' || !renewsToken(result.rule))
      return this.#handle(group, result);
    const next = await tokens.replace(token.value);
    if (next?.ok === false) return this.#handle(group, { kind: 'attempt', attempt: next.attempt });
    // Without a next token, the refused token was new: another thread may have renewed it.
    const last = next === null ? result : await this.#exchange(group, next.value);
    return this.#handle(group, afterRenewal(last));
  }

  /**
   * Sends one request, unless the push has expired since the send began. Earlier requests and token
   * calls may have taken long.
   */
  async #exchange(group: Recipient[], token: string): Promise<ExchangeResult> {
    if (this.#isExpired) return { kind: 'attempt', attempt: expired };
    const deviceTokens = group.map(({ deviceToken }) => deviceToken);
    return this.#plan.exchange(deviceTokens, token, this.#request.signal);
  }

  async #handle(group: Recipient[], result: ExchangeResult): Promise<void> {
    const { isRepeatHidden } = this.#plan;
    if (result.kind === 'parsed') return this.#handleParsed(group, result);
    if (result.kind === 'attempt') this.#end(result.attempt);
    this.#reportAll(group, unparsedResult(result, isRepeatHidden));
  }

  async #handleParsed(group: Recipient[], response: ParsedResponse): Promise<void> {
    const { rule, status, targets, retryAfterMs = null } = response;
    const isSingle = group.length === 1;
    if (rule.reaction === 'ambiguous' && !isSingle && this.#halvings < maxHalvings) {
      this.#halvings += 2;
      const middle = Math.ceil(group.length / 2);
      this.#queue.unshift(group.slice(0, middle), group.slice(middle));
      return;
    }
    // With several recipients, the response does not say which token is invalid.
    const shared =
      rule.reaction === 'dead_token' && !isSingle ? { ...rule, reaction: 'fail' as const } : rule;
    const attempt = withMessageId(
      attemptResult(shared, status, { retryAfterMs, isSingle }),
      response.messageId,
    );
    if (endsSend(rule)) this.#end(attempt);
    if (rule.reaction === 'cap') await this.#closeForToday(rule);
    const { messageIds } = response;
    let isShared = false;
    for (const target of group) {
      const own = targets?.get(target.deviceToken);
      isShared ||= own === undefined;
      const final = own ? attemptResult(own, status, { retryAfterMs, isSingle: true }) : attempt;
      if (final.kind === 'sent' && !this.#hasSuccess) this.#recordSuccess();
      if (own) this.#recordRefusal(own, final);
      this.#report(
        target,
        messageIds ? withMessageId(final, messageIds.get(target.deviceToken)) : final,
      );
    }
    // A response counts as one refusal, even if several devices share it.
    if (isShared) this.#recordRefusal(rule, attempt);
  }

  #recordSuccess(): void {
    this.#hasSuccess = true;
    this.#refusals.recordSent(this.#group);
  }

  #recordRefusal({ reaction, isOfDevice }: ResponseRule, attempt: AttemptResult): void {
    const isCounted = (reaction === 'fail' || reaction === 'ambiguous') && isOfDevice !== true;
    if (isCounted) this.#refusals.recordRefusal(this.#group, attempt);
  }

  async #closeForToday({ reason }: ResponseRule): Promise<void> {
    const { quota } = this.#plan;
    // If this cannot be stored, the gateway will refuse the next send with the same code.
    await quota?.dayQuota.close(quota.messageClass, reason).catch(() => undefined);
  }

  #end(attempt: AttemptResult): void {
    this.#ending ??= attempt;
  }

  #reportAll(group: Recipient[], attempt: AttemptResult): void {
    for (const target of group) this.#report(target, attempt);
  }

  #report({ deviceToken, index }: Recipient, result: AttemptResult): void {
    const attempt = withForm(result, this.#plan.form);
    this.#request.report(index, attempt);
    if (this.#duplicates.size === 0) return;
    for (const twin of this.#duplicates.get(deviceToken) ?? [])
      this.#request.report(twin.index, attempt);
  }
}

const renewsToken = ({ reaction }: ResponseRule): boolean =>
  reaction === 'renew_token' || reaction === 'try_new_token';

/** Returns the result of a request with a new access token. */
const afterRenewal = (result: ExchangeResult): ExchangeResult =>
  result.kind === 'parsed' && result.rule.withNewToken
    ? { ...result, rule: result.rule.withNewToken }
    : result;

const endsSend = ({ reaction }: ResponseRule): boolean =>
  ['fail_push', 'throttle', 'profile_error', 'renew_token', 'cap'].includes(reaction);

function unparsedResult(
  result: Exclude<ExchangeResult, ParsedResponse>,
  isRepeatHidden: boolean,
): AttemptResult {
  if (result.kind === 'attempt') return result.attempt;
  if (result.kind === 'unreadable')
    return { kind: 'unknown', reason: 'unreadable_reply', isRepeatHidden };
  return unanswered(result, isRepeatHidden);
}

function withForm(attempt: AttemptResult, form: string | undefined): AttemptResult {
  const hasForm =
    form !== undefined && (attempt.kind === 'sent' || attempt.kind === 'invalid_token');
  return hasForm ? { ...attempt, form } : attempt;
}

function withMessageId(attempt: AttemptResult, messageId: string | undefined): AttemptResult {
  return attempt.kind === 'sent' && messageId ? { kind: 'sent', messageId } : attempt;
}
