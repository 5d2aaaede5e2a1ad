import { createHttpClient, defaultHttpTiming, type HttpClient } from '../../shared/http/client.ts';
import { EqualRefusals } from '../contract/attempt-result.ts';
import type {
  AttemptResult,
  GatewayCheck,
  PersonalTexts,
  Recipient,
  Sender,
  SenderContext,
  SendRequest,
} from '../contract/connector.ts';
import { openTransport } from '../http2/pooled-transport.ts';
import {
  defaultTiming,
  type RequestResult,
  type ResponseDecision,
  type Transport,
  type TransportLoad,
  type TransportTiming,
} from '../http2/transport.ts';
import type { AccessTokens } from '../kit/access-token.ts';
import { checkHttp2 } from '../kit/connection-check.ts';
import {
  attemptResult,
  expired,
  malformedToken,
  notSent,
  profileError,
  reportAll,
  retry,
  stopping,
  unrenderable,
} from '../kit/response-rules.ts';
import { accountTokens, type FcmCredentials, tokenAddress } from './credentials.ts';
import {
  type FcmLabel,
  type FcmPayload,
  formOf,
  forTargets,
  renderFcm,
  type TargetForm,
} from './payload.ts';
import { type FcmRule, ruleForResponse } from './responses.ts';

interface DeliveryOptions {
  context: SenderContext;
  transport: Transport;
  tokens: AccessTokens;
  projectId: string;
  payload: FcmPayload;
  /** End of each recipient's body, after the token, by `index`. Absent if all ends are the same. */
  ends?: ReadonlyMap<number, string>;
  request: SendRequest;
}

/** Characters that need no escape in JSON, because the token is inserted into the JSON body. */
const tokenForm = /^[!#-[\]-~]+$/;
/**
 * Checked apart from the pattern, because a quantifier with an upper limit doubles the time of the
 * match.
 */
const maxTokenChars = 4096;

/** If no token succeeded and this many tokens belong to another project, the send stops. */
const maxUndecided = 50;

/**
 * Only pushes to at most this many recipients report FCM's message ids. For larger pushes they
 * would cost too much memory.
 */
const maxRecipientsWithIds = 20;

/**
 * Sends one push to the recipients of a batch. A second pass repeats with a new access token if
 * needed.
 */
class Delivery {
  readonly #options: DeliveryOptions;
  /** Result for all remaining recipients. Null until a response ends the send. */
  #ending: AttemptResult | null = null;
  /**
   * Result for the remaining recipients of one form. FCM may refuse a message with a `token` but
   * accept it with a `fid`, or the reverse.
   */
  readonly #endings: Partial<Record<TargetForm, AttemptResult>> = {};
  /**
   * Recipients for the second pass. They were refused because of an expired access token, or are
   * not sent to yet.
   */
  #remaining: Recipient[] = [];
  #refusal: AttemptResult | null = null;
  /**
   * Responses that are decided at the end. If other tokens succeed, these tokens are invalid.
   * Otherwise the credentials belong to another project.
   */
  readonly #undecided: Undecided[] = [];
  readonly #successes = { token: 0, fid: 0 };
  readonly #refusals: EqualRefusals;

  constructor(options: DeliveryOptions) {
    this.#options = options;
    this.#refusals = options.request.refusals ?? new EqualRefusals();
  }

  /** Sends to all recipients. Resolves when each was reported once. */
  async run(): Promise<void> {
    const { request, tokens } = this.#options;
    const { recipients, report } = request;
    const valid = recipients.filter(isWellFormed);
    if (valid.length < recipients.length)
      for (const recipient of recipients)
        if (!isWellFormed(recipient)) report(recipient.index, malformedToken);
    if (valid.length === 0) return;
    // Avoids a token call for an aborted push.
    if (request.signal.aborted) return this.#reportAll(valid, stopping);
    for (const form of forms) this.#endings[form] = this.#refusals.endingOf(form) ?? undefined;
    const token = await tokens.current();
    if (!token.ok) return this.#reportAll(valid, token.attempt);
    await this.#pass(valid, token.value, false);
    if (this.#remaining.length > 0) await this.#secondPass(token.value);
    this.#reportUndecided();
  }

  async #secondPass(refused: string): Promise<void> {
    const remaining = this.#remaining;
    this.#remaining = [];
    const token = await this.#options.tokens.replace(refused);
    if (token?.ok) return this.#pass(remaining, token.value, true);
    // The page of a proxy says nothing about the token.
    if (token === null && this.#refusal?.kind === 'retry')
      return this.#pass(remaining, refused, true);
    this.#reportAll(remaining, token?.attempt ?? this.#refusal ?? retry(0, 'no_access_token'));
  }

  async #pass(recipients: Recipient[], token: string, isLast: boolean): Promise<void> {
    const groups = Map.groupBy(recipients, ({ deviceToken }) => formOf(deviceToken));
    await Promise.all(
      [...groups].map(([form, members]) => this.#passForm(form, members, { token, isLast })),
    );
  }

  /** Sends to the recipients of one form. Their requests use the same member for the target. */
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
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json; charset=UTF-8',
      },
      body: ends ? payload.body.subarray(0, payload.tokenAt) : payload.body,
      spliceAt: payload.tokenAt,
    };
    const requests = recipients.map(({ deviceToken, index }) => ({
      path: '',
      splice: ends ? deviceToken + (ends.get(index) ?? '') : deviceToken,
    }));
    return transport.sendMany({ template, requests, signal: request.signal }, (index, reply) => {
      const recipient = recipients[index];
      return recipient && this.#onReply({ recipient, form }, reply, isLast);
    });
  }

  #endingOf(form: TargetForm): AttemptResult | null {
    return this.#ending ?? this.#endings[form] ?? null;
  }

  #onReply({ recipient, form }: Target, reply: RequestResult, isLast: boolean): ResponseDecision {
    const { context, payload, request } = this.#options;
    if (reply.kind === 'response') return this.#onResponse({ recipient, form }, reply, isLast);
    const ending = this.#endingOf(form);
    if (reply.kind === 'unknown') {
      context.onCall({ status: 0, reason: reply.reason, seconds: reply.seconds });
      const { reason } = reply;
      request.report(recipient.index, {
        kind: 'unknown',
        reason,
        isRepeatHidden: payload.isRepeatHidden,
      });
    } else if (reply.reason !== 'stopped')
      request.report(recipient.index, notSent(reply, 'certificateWanted'));
    else if (ending) request.report(recipient.index, ending);
    else this.#remaining.push(recipient);
    return ending ? 'stop' : undefined;
  }

  #onResponse(
    { recipient, form }: Target,
    reply: Extract<RequestResult, { kind: 'response' }>,
    isLast: boolean,
  ): ResponseDecision {
    const { context, request } = this.#options;
    const { status, seconds } = reply;
    if (status === 200) {
      context.onCall({ status, reason: 'ok', seconds });
      if (this.#successes[form] === 0) this.#refusals.recordSent(form);
      this.#successes[form] += 1;
      const isFew = request.recipients.length <= maxRecipientsWithIds;
      request.report(recipient.index, isFew ? sentAs(reply.body, form) : sentTo[form]);
      return this.#endingOf(form) ? 'stop' : undefined;
    }
    const rule = ruleForResponse(status, reply.body, form);
    context.onCall({ status, reason: rule.reason, seconds });
    if ((rule.reaction === 'renew_token' || rule.reaction === 'try_new_token') && !isLast) {
      this.#refusal ??= attemptResult(rule, status);
      this.#remaining.push(recipient);
      return 'stop';
    }
    if (rule.isUnknown) {
      const { isRepeatHidden } = this.#options.payload;
      const { reason, afterMs = 0 } = rule;
      request.report(recipient.index, { kind: 'unknown', reason, isRepeatHidden, afterMs });
      return this.#endingOf(form) ? 'stop' : undefined;
    }
    if (rule.projectHint !== undefined) return this.#reportLater({ recipient, form, status, rule });
    const attempt = withForm(
      attemptResult(rule, status, { retryAfterMs: reply.retryAfterMs }),
      form,
    );
    request.report(recipient.index, attempt);
    this.#end(form, rule, attempt);
    return this.#endingOf(form) ? 'stop' : undefined;
  }

  /**
   * Ends the rest of the send, or of one form, if the response concerns more than one recipient.
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
        // If bodies differ, a refused body says nothing about the other bodies.
        const isOfAll = reaction === 'fail_push' && !this.#options.ends;
        this.#endings[form] ??= isOfAll
          ? attempt
          : (this.#refusals.recordRefusal(form, attempt) ?? undefined);
      }
    }
  }

  #reportLater(unclear: Undecided): ResponseDecision {
    this.#undecided.push(unclear);
    const { rule, status } = unclear;
    if (this.#isWrongProject())
      this.#ending ??= profileError(status, rule.reason, rule.projectHint ?? 'fcmProject');
    return this.#ending ? 'stop' : undefined;
  }

  #isWrongProject(): boolean {
    const { token, fid } = this.#successes;
    return token + fid === 0 && this.#undecided.length >= maxUndecided;
  }

  /**
   * Reports the undecided recipients: as invalid tokens if others succeeded, otherwise as a profile
   * error.
   */
  #reportUndecided(): void {
    const isWrong = this.#isWrongProject();
    for (const { recipient, form, rule, status } of this.#undecided) {
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

/** Recipient of a request, and the form of its registration id. */
interface Target {
  recipient: Recipient;
  form: TargetForm;
}

interface Undecided extends Target {
  status: number;
  rule: FcmRule;
}

const sentTo: Record<TargetForm, AttemptResult> = {
  token: { kind: 'sent', form: 'token' },
  fid: { kind: 'sent', form: 'fid' },
};

const withForm = (attempt: AttemptResult, form: TargetForm): AttemptResult =>
  attempt.kind === 'invalid_token' ? { ...attempt, form } : attempt;

const isWellFormed = ({ deviceToken }: Recipient): boolean =>
  deviceToken.length <= maxTokenChars && tokenForm.test(deviceToken);

/**
 * Returns a success with the message id, which is the part after the last slash of
 * `{"name":"projects/p/messages/0:15…"}`.
 */
function sentAs(body: string, form: TargetForm): AttemptResult {
  const messageId = /"name"\s*:\s*"[^"]*\/([^"/]{1,200})"/.exec(body)?.[1];
  return messageId === undefined ? sentTo[form] : { kind: 'sent', messageId, form };
}

const host = 'https://fcm.googleapis.com';

export interface FcmTuning {
  timing: TransportTiming;
  /**
   * Connections per credential and thread. Each connection carries 100 requests at a time
   * (protocol/fcm.md#limits).
   */
  maxConnections: number;
}

/**
 * At most one PING per minute, because Google treats frequent PINGs as an attack
 * (protocol/fcm.md#connections).
 */
export const defaultTuning: FcmTuning = {
  timing: { ...defaultTiming, pingAfterMs: 60_000 },
  maxConnections: 16,
};

/** Opens the sender of one service account. It connects when the first push is sent. */
export function openFcm(
  label: FcmLabel,
  credentials: FcmCredentials,
  { context, tuning }: { context: SenderContext; tuning: FcmTuning },
): Sender {
  const { clock, tokens: store } = context;
  const { ca, endpoint = host, proxy, serviceAccount } = credentials;
  const timing = { ...defaultHttpTiming, drainMs: tuning.timing.drainMs };
  const client = createHttpClient({
    baseUrl: tokenAddress(credentials).base,
    ca,
    proxy,
    connections: 1,
    timing,
    clock,
  });
  const options = { baseUrl: endpoint, ca, proxy, ...tuning, clock, onEvent: context.onTransport };
  const transport = openTransport(options);
  const tokens = accountTokens({ credentials, store, clock, client });
  const connect = () => checkHttp2(options, 'certificateWanted');
  const projectId = serviceAccount.project_id;
  return new FcmSender({ label, context, client, transport, connect, tokens, projectId });
}

interface SenderDeps {
  label: FcmLabel;
  context: SenderContext;
  /** Client for the token call. */
  client: HttpClient;
  transport: Transport;
  /** Opens a connection and closes it, as a check. */
  connect(): Promise<GatewayCheck>;
  tokens: AccessTokens;
  projectId: string;
}

class FcmSender implements Sender {
  readonly #deps: SenderDeps;

  constructor(deps: SenderDeps) {
    this.#deps = deps;
  }

  async send(request: SendRequest): Promise<void> {
    const { context, label } = this.#deps;
    const { message, recipients } = request;
    if (recipients.length === 0) return;
    const nowMs = context.clock.now();
    if (message.expiresAtMs <= nowMs) return reportAll(request, expired);
    const rendering = renderFcm(label, message, nowMs);
    if (!rendering.ok) return reportAll(request, unrenderable(rendering));
    const { payload } = rendering;
    await new Delivery({ ...this.#deps, payload, request }).run();
  }

  async sendTexts(
    request: Omit<SendRequest, 'recipients'>,
    { groups, dataOf }: PersonalTexts,
  ): Promise<void> {
    const { context, label } = this.#deps;
    const { message, report } = request;
    const nowMs = context.clock.now();
    if (message.expiresAtMs <= nowMs)
      return reportAll(
        { recipients: groups.flatMap(({ recipients }) => recipients), report },
        expired,
      );
    const recipients: Recipient[] = [];
    const ends = new Map<number, string>();
    let shared: FcmPayload | undefined;
    for (const group of groups) {
      const rendering = renderFcm(label, { ...message, data: dataOf(group.values) }, nowMs);
      if (!rendering.ok) {
        reportAll({ recipients: group.recipients, report }, unrenderable(rendering));
        continue;
      }
      const { body, tokenAt } = rendering.payload;
      const end = body.toString('utf8', tokenAt);
      for (const recipient of group.recipients) ends.set(recipient.index, end);
      recipients.push(...group.recipients);
      // The payloads differ only in their bodies.
      shared ??= rendering.payload;
    }
    if (!shared) return;
    await new Delivery({
      ...this.#deps,
      payload: shared,
      ends,
      request: { ...request, recipients },
    }).run();
  }

  warmUp(): Promise<void> {
    return this.#deps.transport.connect();
  }

  async check(): Promise<GatewayCheck> {
    const token = await this.#deps.tokens.check();
    if (!token.ok) return token;
    const connection = await this.#deps.connect();
    return connection.ok ? token : connection;
  }

  load(): TransportLoad {
    return this.#deps.transport.load();
  }

  async close(): Promise<void> {
    await Promise.all([this.#deps.transport.close(), this.#deps.client.close()]);
  }
}
