import type { AttemptResult, GatewayCall, PushMessage, Recipient, Report } from '../contract/connector.ts';
import type {
  RequestResult,
  RequestTemplate,
  ResponseDecision,
  Transport,
  TransportRequest,
} from '../http2/transport.ts';
import { failed, sent } from '../kit/attempt-results.ts';
import { apnsIdOf, attemptResult, unansweredResult } from './attempt-results.ts';
import { type ApnsError, parseError } from './errors.ts';
import type { ApnsPayload } from './payload.ts';
import type { ProviderToken } from './provider-token.ts';

/** What a delivery may do to the door it goes through; kept by the sender, shared by all deliveries. */
export interface ApnsSession {
  transport: Transport;
  /** The provider token of now; null with certificates. */
  token(): ProviderToken | null;
  /** Another provider token in place of a refused one, or null. */
  replaceToken(refused: ProviderToken): ProviderToken | null;
  /** New connections, unless that was done since `sinceMs` (monotonic). */
  reconnect(sinceMs: number): void;
  /** The key rests: no batch is begun for a while. */
  pause(): void;
  onCall(call: GatewayCall): void;
  monotonicMs(): number;
}

/** What all topics of one `send` share: how its rest ends, once that is known. */
export interface Ending {
  attempt: AttemptResult | null;
}

export interface DeliveryOptions {
  session: ApnsSession;
  message: PushMessage;
  payload: ApnsPayload;
  topic: string;
  /** The credentials know no other topic. */
  isOnlyTopic: boolean;
  ending: Ending;
  report: Report;
  signal: AbortSignal;
}

/** From so many on a header of this push alone goes into the connection's table with its value. */
const manyRecipients = 100;

type Again = 'renew_token' | 'renew_connection';

/** One push to the recipients of one topic: a first pass, and others for what it left or may repeat. */
export class Delivery {
  readonly #options: DeliveryOptions;
  /** How the rest of this topic ends, where the other topics go on. */
  #topicEnding: AttemptResult | null = null;
  #again: Recipient[] = [];
  #cause: Again | null = null;
  /** The provider token of this pass. */
  #token: ProviderToken | null = null;
  #refusal: ApnsError | null = null;

  constructor(options: DeliveryOptions) {
    this.#options = options;
  }

  /** Resolves when every recipient was reported once. */
  async run(recipients: Recipient[]): Promise<void> {
    const { session } = this.#options;
    let startedAtMs = session.monotonicMs();
    await this.#pass(recipients, false);
    // The token was replaced meanwhile, by another delivery or for its age: this one goes on with the new one.
    while (this.#again.length > 0 && this.#cause === null) {
      startedAtMs = session.monotonicMs();
      await this.#pass(this.#taken(), false);
    }
    if (this.#again.length === 0) return;
    const again = this.#taken();
    const token = this.#token;
    const next = this.#cause === 'renew_token' && token !== null ? session.replaceToken(token) : token;
    // After such an answer the connection is of no more use (protocol/apns.md#provider-tokens).
    session.reconnect(startedAtMs);
    if (this.#cause === 'renew_token' && next === null) this.#end(again);
    else await this.#pass(again, true);
  }

  #taken(): Recipient[] {
    const again = this.#again;
    this.#again = [];
    return again;
  }

  /** No other token can be made now: what waits ends as the refusal says. */
  #end(recipients: Recipient[]): void {
    const { isOnlyTopic, report } = this.#options;
    for (const { index } of recipients)
      if (this.#refusal) report(index, attemptResult(this.#refusal, null, isOnlyTopic));
  }

  #pass(recipients: Recipient[], isLast: boolean): Promise<void> {
    const { session, signal } = this.#options;
    this.#token = session.token();
    const template = this.#template(this.#token, recipients.length);
    const batch = { template, requests: this.#requests(recipients), signal };
    return session.transport.sendMany(batch, (place, reply) => {
      const recipient = recipients[place];
      return recipient && this.#onReply(recipient, reply, isLast);
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
      // Two tokens in turns would be changes of token, which are limited (protocol/apns.md#provider-tokens).
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

  /** Whether the rest may go on after this answer. */
  #verdict(answer: ApnsError, attempt: AttemptResult): ResponseDecision {
    const { session, ending } = this.#options;
    switch (answer.reaction) {
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
    const { payload, topic } = this.#options;
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
      // Different with every push: only their names go into the connection's table (protocol/apns.md#connections). To many
      // devices the collapse id, which nearly every push has, is worth its entry: a byte per request from then on.
      batchHeaders: count < manyRecipients ? ['apns-expiration', 'apns-collapse-id'] : ['apns-expiration'],
      requestHeaderName: 'apns-id',
      body: payload.body,
      ...(payload.badgeAt === undefined ? {} : { spliceAt: payload.badgeAt }),
    };
  }

  #requests(recipients: Recipient[]): TransportRequest[] {
    const { message, payload } = this.#options;
    const isSpliced = payload.badgeAt !== undefined;
    return recipients.map(({ deviceToken, badge, id }) => ({
      path: deviceToken,
      headerValue: apnsIdOf(message.objectId, id),
      // Counted by the dispatcher before the first attempt; an installation that was never counted shows 1.
      ...(isSpliced ? { splice: String(badge ?? 1) } : {}),
    }));
  }
}

/** Hex, of any length that fits a header (protocol/apns.md#request: its length is not to be relied on). */
const tokenForm = /^[0-9a-fA-F]{1,200}$/;

/** A device token that must not come near a path. Not called dead: no gateway said so. */
export function malformed({ deviceToken }: Recipient): AttemptResult | undefined {
  return tokenForm.test(deviceToken) ? undefined : failed(0, 'the device token is not hexadecimal');
}
