import { reason } from '../../shared/domain/reasons.ts';
import type { AttemptResult, GatewayCall, PushMessage, Recipient, Report } from '../contract/connector.ts';
import type { EqualRefusals } from '../contract/equal-refusals.ts';
import type {
  RequestResult,
  RequestTemplate,
  ResponseDecision,
  Transport,
  TransportRequest,
} from '../http2/transport.ts';
import { failed, reportAll, sent } from '../kit/response-rules.ts';
import { apnsIdEnd, apnsIdPrefix, attemptResult, unansweredResult } from './attempt-results.ts';
import { type ApnsError, parseError } from './errors.ts';
import type { ApnsPayload } from './payload.ts';
import type { ProviderToken, TokenTurns } from './provider-token.ts';

/** Connection state of a sender to one of Apple's gateways, shared by its deliveries. */
export interface ApnsSession {
  transport: Transport;
  /** Returns the current provider token; null with certificates. */
  token(): ProviderToken | null;
  /** Sends with one provider token at a time. */
  turns: TokenTurns;
  /** Returns another provider token in place of a refused one, or null. */
  replaceToken(refused: ProviderToken): ProviderToken | null;
  /** Opens new connections, unless that happened since `sinceMs` (monotonic). */
  reconnect(sinceMs: number): void;
  /** Pauses this provider key (60 s). */
  pause(): void;
  onCall(call: GatewayCall): void;
  monotonicMs(): number;
}

/** Result of all recipients not sent to yet, once it is known; shared by the topics of one `send`. */
export interface Ending {
  attempt: AttemptResult | null;
}

export interface DeliveryOptions {
  session: ApnsSession;
  message: PushMessage;
  payload: ApnsPayload;
  /** The whole body of each recipient by `index`, where they differ by more than the badge. */
  bodies?: ReadonlyMap<number, string> | undefined;
  topic: string;
  /** Whether the credentials have no other topic. */
  isOnlyTopic: boolean;
  ending: Ending;
  refusals: EqualRefusals;
  report: Report;
  signal: AbortSignal;
}

/** Recipients that are sent to before the first success of a push. */
const probeSize = 100;

/** Number of recipients from which on a push's collapse id is worth an entry in the HPACK table. */
const manyRecipients = 100;

type Again = 'renew_token' | 'renew_connection';

/** Sends one push to the recipients of one topic: a first pass, then passes for the rest and for repeats. */
export class Delivery {
  readonly #options: DeliveryOptions;
  /** Result of the rest of this topic, while other topics go on. */
  #topicEnding: AttemptResult | null = null;
  #again: Recipient[] = [];
  #cause: Again | null = null;
  /** The provider token of this pass. */
  #token: ProviderToken | null = null;
  #refusal: ApnsError | null = null;
  #hasSuccess = false;
  /** Continues with the rest of the first pass. */
  #onSuccess: () => void = () => undefined;

  constructor(options: DeliveryOptions) {
    this.#options = options;
  }

  /** Resolves when every recipient was reported once. */
  async run(recipients: Recipient[]): Promise<void> {
    const { session, refusals, topic, report } = this.#options;
    const known = refusals.endingOf(topic);
    if (known) return reportAll({ recipients, report }, known);
    let startedAtMs = session.monotonicMs();
    await this.#firstPass(recipients);
    // Another delivery replaced the token, or its age did: continue with the new one.
    while (this.#again.length > 0 && this.#cause === null) {
      startedAtMs = session.monotonicMs();
      await this.#pass(this.#taken(), false);
    }
    if (this.#again.length === 0) return;
    const again = this.#taken();
    const token = this.#token;
    const next = this.#cause === 'renew_token' && token !== null ? session.replaceToken(token) : token;
    if (this.#cause === 'renew_connection') session.reconnect(startedAtMs);
    if (this.#cause === 'renew_token' && next === null) this.#end(again);
    else await this.#pass(again, true);
  }

  /**
   * Sends to a few recipients first, and to the rest as soon as one of them succeeded: a connection
   * in use takes a thousand requests before the first answer, which would all be refused alike.
   */
  async #firstPass(recipients: Recipient[]): Promise<void> {
    const { session, refusals, topic, ending, report } = this.#options;
    if (recipients.length <= probeSize || refusals.hasSuccess(topic)) return this.#pass(recipients, false);
    const success = new Promise<void>((resolve) => {
      this.#onSuccess = resolve;
    });
    const probe = this.#pass(recipients.slice(0, probeSize), false);
    await Promise.race([probe, success]);
    const rest = recipients.slice(probeSize);
    const end = ending.attempt ?? this.#topicEnding;
    if (end) reportAll({ recipients: rest, report }, end);
    // One pass has one token.
    else if (this.#cause !== null || session.token() !== this.#token) this.#again.push(...rest);
    else await this.#pass(rest, false);
    await probe;
  }

  #taken(): Recipient[] {
    const again = this.#again;
    this.#again = [];
    return again;
  }

  /** Reports the refusal for all remaining recipients: no other token is available. */
  #end(recipients: Recipient[]): void {
    const { isOnlyTopic, report } = this.#options;
    if (this.#refusal) reportAll({ recipients, report }, attemptResult(this.#refusal, null, isOnlyTopic));
  }

  #pass(recipients: Recipient[], isLast: boolean): Promise<void> {
    const { session, signal } = this.#options;
    return session.turns.run((token) => {
      this.#token = token;
      const batch = {
        template: this.#template(token, recipients.length),
        requests: this.#requests(recipients),
        signal,
      };
      return session.transport.sendMany(batch, (place, reply) => {
        const recipient = recipients[place];
        return recipient && this.#onReply(recipient, reply, isLast);
      });
    });
  }

  #onReply(recipient: Recipient, reply: RequestResult, isLast: boolean): ResponseDecision {
    const { session, ending, payload, report } = this.#options;
    if (reply.kind === 'response') return this.#onResponse(recipient, reply, isLast);
    if (reply.kind === 'unknown') session.onCall({ status: 0, reason: reply.reason, seconds: reply.seconds });
    if (reply.kind === 'not_sent' && reply.reason === 'stopped') {
      const end = ending.attempt ?? this.#topicEnding;
      if (end) report(recipient.index, end);
      else this.#again.push(recipient);
      return undefined;
    }
    report(recipient.index, unansweredResult(reply, payload.isRepeatHidden));
    return ending.attempt ? 'stop' : undefined;
  }

  #onResponse(
    recipient: Recipient,
    reply: Extract<RequestResult, { kind: 'response' }>,
    isLast: boolean,
  ): ResponseDecision {
    const { session, ending, isOnlyTopic, report } = this.#options;
    if (reply.status === 200) {
      session.onCall({ status: 200, reason: 'ok', seconds: reply.seconds });
      report(recipient.index, sent);
      if (!this.#hasSuccess) this.#noteSuccess();
      // Alternating tokens count as token updates, which APNs limits (protocol/apns.md#provider-tokens).
      const isOutdated = !isLast && session.token() !== this.#token;
      return ending.attempt || isOutdated ? 'stop' : undefined;
    }
    const answer = parseError(reply);
    session.onCall({ status: reply.status, reason: answer.reason, seconds: reply.seconds });
    if (!isLast && (answer.reaction === 'renew_token' || answer.reaction === 'renew_connection')) {
      this.#cause ??= answer.reaction;
      this.#refusal ??= answer;
      this.#again.push(recipient);
      return 'stop';
    }
    const attempt = attemptResult(answer, reply.retryAfterMs, isOnlyTopic);
    report(recipient.index, attempt);
    return this.#verdict(answer, attempt);
  }

  #noteSuccess(): void {
    this.#hasSuccess = true;
    this.#onSuccess();
    this.#options.refusals.noteSent(this.#options.topic);
  }

  /** Returns whether the transport goes on after this response. */
  #verdict(answer: ApnsError, attempt: AttemptResult): ResponseDecision {
    const { session, ending, refusals, topic, bodies } = this.#options;
    // Where bodies differ, the refusal of one proves nothing about the others.
    const reaction = answer.reaction === 'fail_push' && bodies ? 'fail' : answer.reaction;
    switch (reaction) {
      case 'fail':
        this.#topicEnding ??= refusals.note(topic, attempt);
        return this.#topicEnding ? 'stop' : undefined;
      case 'retry_elsewhere':
        return 'drain';
      case 'fail_topic':
        this.#topicEnding = attempt;
        if (attempt.kind === 'profile_error') ending.attempt ??= attempt;
        return 'stop';
      case 'pause':
        session.pause();
        ending.attempt ??= attempt;
        return 'stop';
      case 'fail_push':
      case 'profile_error':
      case 'renew_token':
        ending.attempt ??= attempt;
        return 'stop';
      default:
        return ending.attempt ? 'stop' : undefined;
    }
  }

  #template(token: ProviderToken | null, count: number): RequestTemplate {
    const { message, payload, topic } = this.#options;
    return {
      pathPrefix: '/3/device/',
      headers: {
        ...(token === null ? {} : { authorization: token.authorization }),
        'apns-topic': topic,
        'apns-push-type': payload.pushType,
        'apns-priority': payload.priority,
        'apns-expiration': payload.expiration,
        ...(payload.collapseId === null ? {} : { 'apns-collapse-id': payload.collapseId }),
      },
      // These values change with every push, so only the names go into the HPACK table (protocol/apns.md#connections). With
      // many recipients the collapse id is worth its entry: one byte per request from then on.
      batchHeaders: count < manyRecipients ? ['apns-expiration', 'apns-collapse-id'] : ['apns-expiration'],
      requestHeaderName: 'apns-id',
      requestHeaderPrefix: apnsIdPrefix(message.objectId),
      body: payload.body,
      ...(payload.badgeAt === undefined ? {} : { spliceAt: payload.badgeAt }),
    };
  }

  #requests(recipients: Recipient[]): TransportRequest[] {
    const { payload, bodies } = this.#options;
    const isSpliced = payload.badgeAt !== undefined;
    return recipients.map(({ deviceToken, badge, id, index }) => ({
      path: deviceToken.toLowerCase(),
      headerValue: apnsIdEnd(id),
      // The dispatcher counts it before the first attempt; an installation without a count shows 1.
      ...(bodies ? { splice: bodies.get(index) ?? '' } : isSpliced ? { splice: String(badge ?? 1) } : {}),
    }));
  }
}

/** Hexadecimal, of any length that fits a header (protocol/apns.md#request: the length may change). */
const tokenForm = /^[0-9a-fA-F]+$/;
/** Compared apart from the form: a repetition with a limit takes twice the time. */
const maxTokenChars = 200;

const notHexadecimal = failed(0, reason('tokenNotHexadecimal'));

/** Returns a failure for a token that must not be put into a path. The token stays: no gateway called it invalid. */
export function malformed({ deviceToken }: Recipient): AttemptResult | undefined {
  return deviceToken.length <= maxTokenChars && tokenForm.test(deviceToken) ? undefined : notHexadecimal;
}
