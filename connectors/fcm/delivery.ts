import type { AttemptResult, Recipient, SenderContext, SendRequest } from '../contract/connector.ts';
import { EqualRefusals } from '../contract/equal-refusals.ts';
import type { RequestResult, ResponseDecision, Transport } from '../http2/transport.ts';
import type { AccessTokens } from '../kit/access-token.ts';
import {
  failed,
  notProcessed,
  profileError,
  reportAll,
  retry,
  sent,
  stopping,
  withCause,
} from '../kit/attempt-results.ts';
import { attemptResult } from '../kit/response-rules.ts';
import { type FcmRule, ruleForResponse } from './errors.ts';
import type { FcmPayload } from './payload.ts';

export interface DeliveryOptions {
  context: SenderContext;
  transport: Transport;
  tokens: AccessTokens;
  projectId: string;
  payload: FcmPayload;
  /** The body of each recipient behind its token, by `index`, where they differ. */
  ends?: ReadonlyMap<number, string>;
  request: SendRequest;
}

/** Characters that need no escape in the JSON body, where the token is inserted. */
const tokenForm = /^[!#-[\]-~]+$/;
/** Compared apart from the form: a repetition with a limit takes twice the time. */
const maxTokenChars = 4096;

/** Number of tokens of another project, without any success, after which the send stops. */
const maxUnclear = 50;

/** Largest push that reports FCM's message ids; large ones would only cost memory. */
const fewRecipients = 20;

/** Sends one push to the recipients of a batch: a first pass, and a second one with another access token. */
export class Delivery {
  readonly #options: DeliveryOptions;
  /** Result of the recipients not sent to yet, once it is known. */
  #ending: AttemptResult | null = null;
  /** Recipients for the second pass: refused for an expired access token, or not sent yet. */
  #again: Recipient[] = [];
  #refusal: AttemptResult | null = null;
  /** Tokens that are invalid if others succeed; otherwise the credentials belong to another project. */
  #unclear: { recipient: Recipient; status: number; rule: FcmRule }[] = [];
  #successes = 0;
  readonly #refusals: EqualRefusals;

  constructor(options: DeliveryOptions) {
    this.#options = options;
    this.#refusals = options.request.refusals ?? new EqualRefusals();
  }

  /** Resolves when every recipient was reported once. */
  async run(): Promise<void> {
    const { request, tokens } = this.#options;
    const { recipients, report } = request;
    const valid = recipients.filter(isWellFormed);
    if (valid.length < recipients.length)
      for (const recipient of recipients)
        if (!isWellFormed(recipient)) report(recipient.index, failed(0, 'the registration id is malformed'));
    if (valid.length === 0) return;
    // Avoids a token call for an aborted push.
    if (request.signal.aborted) return this.#reportAll(valid, stopping);
    const ending = this.#refusals.endingOf(group);
    if (ending) return this.#reportAll(valid, ending);
    const token = await tokens.current();
    if (!token.ok) return this.#reportAll(valid, token.attempt);
    await this.#pass(valid, token.value, false);
    if (this.#again.length > 0) await this.#passAgain(token.value);
    this.#reportUnclear();
  }

  async #passAgain(refused: string): Promise<void> {
    const again = this.#again;
    this.#again = [];
    const token = await this.#options.tokens.replace(refused);
    if (token?.ok) return this.#pass(again, token.value, true);
    // The page of a proxy says nothing about the token.
    if (token === null && this.#refusal?.kind === 'retry') return this.#pass(again, refused, true);
    this.#reportAll(again, token?.attempt ?? this.#refusal ?? retry(0, 'no_access_token'));
  }

  #pass(recipients: Recipient[], token: string, isLast: boolean): Promise<void> {
    const { ends, payload, projectId, request, transport } = this.#options;
    const template = {
      pathPrefix: `/v1/projects/${projectId}/messages:send`,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json; charset=UTF-8' },
      body: ends ? payload.body.subarray(0, payload.tokenAt) : payload.body,
      spliceAt: payload.tokenAt,
    };
    const requests = recipients.map(({ deviceToken, index }) => ({
      path: '',
      splice: ends ? deviceToken + (ends.get(index) ?? '') : deviceToken,
    }));
    return transport.sendMany({ template, requests, signal: request.signal }, (place, reply) => {
      const recipient = recipients[place];
      return recipient && this.#onReply(recipient, reply, isLast);
    });
  }

  #onReply(recipient: Recipient, reply: RequestResult, isLast: boolean): ResponseDecision {
    const { context, payload, request } = this.#options;
    if (reply.kind === 'response') return this.#onResponse(recipient, reply, isLast);
    if (reply.kind === 'unknown') {
      context.onCall({ status: 0, reason: reply.reason, seconds: reply.seconds });
      const { reason } = reply;
      request.report(recipient.index, { kind: 'unknown', reason, isRepeatHidden: payload.isRepeatHidden });
    } else if (reply.reason !== 'stopped') request.report(recipient.index, unsent(reply));
    else if (this.#ending) request.report(recipient.index, this.#ending);
    else this.#again.push(recipient);
    return this.#ending ? 'stop' : undefined;
  }

  #onResponse(
    recipient: Recipient,
    reply: Extract<RequestResult, { kind: 'response' }>,
    isLast: boolean,
  ): ResponseDecision {
    const { context, request } = this.#options;
    const { status, seconds } = reply;
    if (status === 200) {
      context.onCall({ status, reason: 'ok', seconds });
      if (this.#successes === 0) this.#refusals.noteSent(group);
      this.#successes += 1;
      const isFew = request.recipients.length <= fewRecipients;
      request.report(recipient.index, isFew ? sentAs(reply.body) : sent);
      return this.#ending ? 'stop' : undefined;
    }
    const rule = ruleForResponse(status, reply.body);
    context.onCall({ status, reason: rule.reason, seconds });
    if ((rule.reaction === 'renew_token' || rule.reaction === 'try_new_token') && !isLast) {
      this.#refusal ??= attemptResult(rule, status);
      this.#again.push(recipient);
      return 'stop';
    }
    if (rule.projectHint !== undefined) return this.#reportLater({ recipient, status, rule });
    const attempt = attemptResult(rule, status, { retryAfterMs: reply.retryAfterMs });
    request.report(recipient.index, attempt);
    this.#ending ??= this.#endingAfter(rule, attempt);
    return this.#ending ? 'stop' : undefined;
  }

  /** Returns the result of the rest of the send after this answer; null if the rest is sent. */
  #endingAfter({ reaction }: FcmRule, attempt: AttemptResult): AttemptResult | null {
    switch (reaction) {
      case 'throttle':
      case 'profile_error':
      case 'renew_token':
        return attempt;
      case 'fail_push':
        // Where bodies differ, the refusal of one proves nothing about the others.
        return this.#options.ends ? this.#refusals.note(group, attempt) : attempt;
      case 'fail':
        return this.#refusals.note(group, attempt);
      default:
        return null;
    }
  }

  #reportLater(unclear: { recipient: Recipient; status: number; rule: FcmRule }): ResponseDecision {
    this.#unclear.push(unclear);
    const { rule, status } = unclear;
    if (this.#successes === 0 && this.#unclear.length >= maxUnclear)
      this.#ending ??= profileError(status, rule.reason, rule.projectHint ?? '');
    return this.#ending ? 'stop' : undefined;
  }

  /** Reports the unclear recipients: invalid tokens if others succeeded, else a profile error. */
  #reportUnclear(): void {
    const isWrongProject = this.#successes === 0 && this.#unclear.length >= maxUnclear;
    for (const { recipient, rule, status } of this.#unclear) {
      const attempt = isWrongProject
        ? profileError(status, rule.reason, rule.projectHint ?? '')
        : attemptResult(rule, status);
      this.#options.request.report(recipient.index, attempt);
    }
  }

  #reportAll(recipients: Recipient[], attempt: AttemptResult): void {
    reportAll({ recipients, report: this.#options.request.report }, attempt);
  }
}

/** All requests are of one kind. */
const group = '';

const isWellFormed = ({ deviceToken }: Recipient): boolean =>
  deviceToken.length <= maxTokenChars && tokenForm.test(deviceToken);

/** Returns the result of a request that was not processed: never written, refused by the peer, or taken back. */
function unsent({ afterMs, reason, cause }: Extract<RequestResult, { kind: 'not_sent' }>): AttemptResult {
  if (reason === 'certificate_refused')
    return withCause(
      profileError(0, reason, 'The gateway asks for a client certificate: check the endpoint.'),
      cause,
    );
  return withCause(notProcessed(reason, afterMs), cause);
}

/** Returns a success with the message id: the part after the last slash of `{"name":"projects/p/messages/0:15…"}`. */
function sentAs(body: string): AttemptResult {
  const messageId = /"name"\s*:\s*"[^"]*\/([^"/]{1,200})"/.exec(body)?.[1];
  return messageId === undefined ? sent : { kind: 'sent', messageId };
}
