import { reason } from '../../shared/domain/reasons.ts';
import type { AttemptResult, Recipient, SenderContext, SendRequest } from '../contract/connector.ts';
import { EqualRefusals } from '../contract/equal-refusals.ts';
import type { RequestResult, ResponseDecision, Transport } from '../http2/transport.ts';
import type { AccessTokens } from '../kit/access-token.ts';
import {
  attemptResult,
  failed,
  notProcessed,
  profileError,
  reportAll,
  retry,
  stopping,
  withCause,
} from '../kit/response-rules.ts';
import { type FcmRule, ruleForResponse } from './errors.ts';
import { type FcmPayload, formOf, forTargets, type TargetForm } from './payload.ts';

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
  /**
   * The same for the recipients of one form: FCM may refuse a message with one member and take it
   * with the other.
   */
  readonly #endings: Partial<Record<TargetForm, AttemptResult>> = {};
  /** Recipients for the second pass: refused for an expired access token, or not sent yet. */
  #again: Recipient[] = [];
  #refusal: AttemptResult | null = null;
  /** Tokens that are invalid if others succeed; otherwise the credentials belong to another project. */
  readonly #unclear: Unclear[] = [];
  readonly #successes = { token: 0, fid: 0 };
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
      for (const recipient of recipients) if (!isWellFormed(recipient)) report(recipient.index, malformed);
    if (valid.length === 0) return;
    // Avoids a token call for an aborted push.
    if (request.signal.aborted) return this.#reportAll(valid, stopping);
    for (const form of forms) this.#endings[form] = this.#refusals.endingOf(form) ?? undefined;
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

  async #pass(recipients: Recipient[], token: string, isLast: boolean): Promise<void> {
    const groups = Map.groupBy(recipients, ({ deviceToken }) => formOf(deviceToken));
    await Promise.all([...groups].map(([form, members]) => this.#passForm(form, members, { token, isLast })));
  }

  /** Sends to recipients of one form: their requests differ in the member that names the target. */
  #passForm(
    form: TargetForm,
    recipients: Recipient[],
    { token, isLast }: { token: string; isLast: boolean },
  ): Promise<void> {
    const { ends, projectId, request, transport } = this.#options;
    const ending = this.#endingOf(form);
    if (ending) return Promise.resolve(this.#reportAll(recipients, ending));
    const payload = forTargets(this.#options.payload, form);
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
      return recipient && this.#onReply({ recipient, form }, reply, isLast);
    });
  }

  #endingOf(form: TargetForm): AttemptResult | null {
    return this.#ending ?? this.#endings[form] ?? null;
  }

  #onReply({ recipient, form }: Asked, reply: RequestResult, isLast: boolean): ResponseDecision {
    const { context, payload, request } = this.#options;
    if (reply.kind === 'response') return this.#onResponse({ recipient, form }, reply, isLast);
    const ending = this.#endingOf(form);
    if (reply.kind === 'unknown') {
      context.onCall({ status: 0, reason: reply.reason, seconds: reply.seconds });
      const { reason } = reply;
      request.report(recipient.index, { kind: 'unknown', reason, isRepeatHidden: payload.isRepeatHidden });
    } else if (reply.reason !== 'stopped') request.report(recipient.index, unsent(reply));
    else if (ending) request.report(recipient.index, ending);
    else this.#again.push(recipient);
    return ending ? 'stop' : undefined;
  }

  #onResponse(
    { recipient, form }: Asked,
    reply: Extract<RequestResult, { kind: 'response' }>,
    isLast: boolean,
  ): ResponseDecision {
    const { context, request } = this.#options;
    const { status, seconds } = reply;
    if (status === 200) {
      context.onCall({ status, reason: 'ok', seconds });
      if (this.#successes[form] === 0) this.#refusals.noteSent(form);
      this.#successes[form] += 1;
      const isFew = request.recipients.length <= fewRecipients;
      request.report(recipient.index, isFew ? sentAs(reply.body, form) : sentTo[form]);
      return this.#endingOf(form) ? 'stop' : undefined;
    }
    const rule = ruleForResponse(status, reply.body, form);
    context.onCall({ status, reason: rule.reason, seconds });
    if ((rule.reaction === 'renew_token' || rule.reaction === 'try_new_token') && !isLast) {
      this.#refusal ??= attemptResult(rule, status);
      this.#again.push(recipient);
      return 'stop';
    }
    if (rule.projectHint !== undefined) return this.#reportLater({ recipient, form, status, rule });
    const attempt = withForm(attemptResult(rule, status, { retryAfterMs: reply.retryAfterMs }), form);
    request.report(recipient.index, attempt);
    this.#end(form, rule, attempt);
    return this.#endingOf(form) ? 'stop' : undefined;
  }

  /**
   * Ends the rest of the send, or that of one form, if this answer is about more than one
   * recipient.
   */
  #end(form: TargetForm, { reaction }: FcmRule, attempt: AttemptResult): void {
    switch (reaction) {
      case 'throttle':
      case 'profile_error':
      case 'renew_token':
        this.#ending ??= attempt;
        break;
      case 'fail_push':
      case 'fail': {
        // Where bodies differ, the refusal of one proves nothing about the others.
        const isOfAll = reaction === 'fail_push' && !this.#options.ends;
        this.#endings[form] ??= isOfAll ? attempt : (this.#refusals.note(form, attempt) ?? undefined);
      }
    }
  }

  #reportLater(unclear: Unclear): ResponseDecision {
    this.#unclear.push(unclear);
    const { rule, status } = unclear;
    if (this.#isWrongProject())
      this.#ending ??= profileError(status, rule.reason, rule.projectHint ?? 'fcmProject');
    return this.#ending ? 'stop' : undefined;
  }

  #isWrongProject(): boolean {
    const { token, fid } = this.#successes;
    return token + fid === 0 && this.#unclear.length >= maxUnclear;
  }

  /** Reports the unclear recipients: invalid tokens if others succeeded, else a profile error. */
  #reportUnclear(): void {
    const isWrong = this.#isWrongProject();
    for (const { recipient, form, rule, status } of this.#unclear) {
      const attempt = isWrong
        ? profileError(status, rule.reason, rule.projectHint ?? 'fcmProject')
        : withForm(attemptResult(rule, status), form);
      this.#options.request.report(recipient.index, attempt);
    }
  }

  #reportAll(recipients: Recipient[], attempt: AttemptResult): void {
    reportAll({ recipients, report: this.#options.request.report }, attempt);
  }
}

const forms: readonly TargetForm[] = ['token', 'fid'];

/** A recipient that was asked for, and what its registration id is. */
interface Asked {
  recipient: Recipient;
  form: TargetForm;
}

interface Unclear extends Asked {
  status: number;
  rule: FcmRule;
}

const sentTo: Record<TargetForm, AttemptResult> = {
  token: { kind: 'sent', form: 'token' },
  fid: { kind: 'sent', form: 'fid' },
};

const withForm = (attempt: AttemptResult, form: TargetForm): AttemptResult =>
  attempt.kind === 'invalid_token' ? { ...attempt, form } : attempt;

const malformed = failed(0, reason('registrationMalformed'));

const isWellFormed = ({ deviceToken }: Recipient): boolean =>
  deviceToken.length <= maxTokenChars && tokenForm.test(deviceToken);

/** Returns the result of a request that was not processed: never written, refused by the peer, or taken back. */
function unsent({ afterMs, reason, cause }: Extract<RequestResult, { kind: 'not_sent' }>): AttemptResult {
  if (reason === 'certificate_refused') return withCause(profileError(0, reason, 'certificateWanted'), cause);
  return withCause(notProcessed(reason, afterMs), cause);
}

/** Returns a success with the message id: the part after the last slash of `{"name":"projects/p/messages/0:15…"}`. */
function sentAs(body: string, form: TargetForm): AttemptResult {
  const messageId = /"name"\s*:\s*"[^"]*\/([^"/]{1,200})"/.exec(body)?.[1];
  return messageId === undefined ? sentTo[form] : { kind: 'sent', messageId, form };
}
