import { reason } from '../../shared/domain/reasons.ts';
import { EqualRefusals } from '../contract/attempt-result.ts';
import type {
  AttemptResult,
  GatewayCall,
  GatewayCheck,
  PersonalTexts,
  PushMessage,
  Recipient,
  Report,
  Sender,
  SenderContext,
  SendRequest,
} from '../contract/connector.ts';
import { openTransport } from '../http2/pooled-transport.ts';
import {
  defaultTiming,
  type RequestResult,
  type RequestTemplate,
  type ResponseDecision,
  type Transport,
  type TransportLoad,
  type TransportOptions,
  type TransportRequest,
  type TransportTiming,
} from '../http2/transport.ts';
import { checkHttp2 } from '../kit/connection-check.ts';
import { failed, profileError, reportAll, retry, sent } from '../kit/response-rules.ts';
import { type ApnsCredentials, certificateExpiryMs, topicsOf } from './credentials.ts';
import { type ApnsPayload, renderApns } from './payload.ts';
import { renderTexts } from './personal.ts';
import { type ProviderToken, ProviderTokens, TokenLock } from './provider-token.ts';
import { bundleIdIn, sendableTopic } from './push-types.ts';
import {
  type ApnsError,
  apnsIdEnd,
  apnsIdPrefix,
  attemptResult,
  parseError,
  pauseMs,
  unansweredResult,
} from './responses.ts';
import { certificateProblem } from './routing.ts';

/** Connection to one of Apple's two gateways, shared by all deliveries of a sender. */
interface ApnsSession {
  transport: Transport;
  /** Returns the current provider token; null if the profile uses a certificate. */
  token(): ProviderToken | null;
  /** Ensures that only one provider token is in use at a time. */
  tokenLock: TokenLock;
  /**
   * Returns a new provider token in place of a refused token; null if no new token is allowed yet.
   */
  replaceToken(refused: ProviderToken): ProviderToken | null;
  /** Replaces the connections, unless they were already replaced after `sinceMs` (monotonic). */
  reconnect(sinceMs: number): void;
  /** Stops sending with this provider key for 60 s. */
  pause(): void;
  onCall(call: GatewayCall): void;
  monotonicMs(): number;
}

/**
 * Result for all remaining recipients. Null until a response ends the send. All topics of one
 * `send` share it.
 */
interface Ending {
  attempt: AttemptResult | null;
}

interface DeliveryOptions {
  session: ApnsSession;
  message: PushMessage;
  payload: ApnsPayload;
  /** Body of each recipient by `index`. Absent if the bodies differ at most by the badge. */
  bodies?: ReadonlyMap<number, string> | undefined;
  /** Topic of the request, or the bundle id in the path of a broadcast. */
  topic: string;
  /** Channel of a broadcast. */
  channel?: string | undefined;
  /** True if the credentials have no other topic. */
  isOnlyTopic: boolean;
  ending: Ending;
  refusals: EqualRefusals;
  report: Report;
  signal: AbortSignal;
}

/** Number of recipients that are sent to before the first success of a push. */
const probeSize = 100;

/** With at least this many recipients, the push's collapse id gets an entry in the HPACK table. */
const manyRecipients = 100;

type RenewReaction = 'renew_token' | 'renew_connection';

/**
 * Sends one push to the recipients of one topic. The first pass sends to everyone; later passes
 * send to recipients that were left out or must be repeated.
 */
class Delivery {
  readonly #options: DeliveryOptions;
  /** Result for the remaining recipients of this topic only. */
  #topicEnding: AttemptResult | null = null;
  #remaining: Recipient[] = [];
  #cause: RenewReaction | null = null;
  /** The provider token that the current pass uses. */
  #token: ProviderToken | null = null;
  #refusal: ApnsError | null = null;
  #hasSuccess = false;
  /** Resolves the wait of the first pass, which then sends to the recipients after the probe. */
  #onSuccess: () => void = () => undefined;

  constructor(options: DeliveryOptions) {
    this.#options = options;
  }

  /** Sends to all recipients. Resolves when each recipient was reported once. */
  async run(recipients: Recipient[]): Promise<void> {
    const { session, refusals, topic, report } = this.#options;
    const ending = refusals.endingOf(topic);
    if (ending) return reportAll({ recipients, report }, ending);
    let startedAtMs = session.monotonicMs();
    await this.#firstPass(recipients);
    // The token was replaced by another delivery or because of its age. Continue with the new
    // token.
    while (this.#remaining.length > 0 && this.#cause === null) {
      startedAtMs = session.monotonicMs();
      await this.#pass(this.#takeRemaining(), false);
    }
    if (this.#remaining.length === 0) return;
    const remaining = this.#takeRemaining();
    const token = this.#token;
    const next =
      this.#cause === 'renew_token' && token !== null ? session.replaceToken(token) : token;
    if (this.#cause === 'renew_connection') session.reconnect(startedAtMs);
    if (this.#cause === 'renew_token' && next === null) this.#end(remaining);
    else await this.#pass(remaining, true);
  }

  /**
   * Sends to a few recipients first, and to the others when one of them has succeeded. Without this
   * probe, a connection in use would take a thousand requests before the first answer, and all
   * might be refused for the same reason.
   */
  async #firstPass(recipients: Recipient[]): Promise<void> {
    const { session, refusals, topic, ending, report } = this.#options;
    if (recipients.length <= probeSize || refusals.hasSuccess(topic))
      return this.#pass(recipients, false);
    const success = new Promise<void>((resolve) => {
      this.#onSuccess = resolve;
    });
    const probe = this.#pass(recipients.slice(0, probeSize), false);
    await Promise.race([probe, success]);
    const rest = recipients.slice(probeSize);
    const end = ending.attempt ?? this.#topicEnding;
    if (end) reportAll({ recipients: rest, report }, end);
    // A pass uses one token only. If the token has changed, a later pass sends to the remaining
    // recipients.
    else if (this.#cause !== null || session.token() !== this.#token) this.#remaining.push(...rest);
    else await this.#pass(rest, false);
    await probe;
  }

  #takeRemaining(): Recipient[] {
    const remaining = this.#remaining;
    this.#remaining = [];
    return remaining;
  }

  /** Reports the refusal for all remaining recipients, because no other token is available. */
  #end(recipients: Recipient[]): void {
    const { isOnlyTopic, report } = this.#options;
    if (this.#refusal)
      reportAll({ recipients, report }, attemptResult(this.#refusal, null, isOnlyTopic));
  }

  #pass(recipients: Recipient[], isLast: boolean): Promise<void> {
    const { session, signal } = this.#options;
    return session.tokenLock.run((token) => {
      this.#token = token;
      const batch = {
        template: this.#template(token, recipients.length),
        requests: this.#requests(recipients),
        signal,
      };
      return session.transport.sendMany(batch, (index, reply) => {
        const recipient = recipients[index];
        return recipient && this.#onReply(recipient, reply, isLast);
      });
    });
  }

  #onReply(recipient: Recipient, reply: RequestResult, isLast: boolean): ResponseDecision {
    const { session, ending, payload, report } = this.#options;
    if (reply.kind === 'response') return this.#onResponse(recipient, reply, isLast);
    if (reply.kind === 'unknown')
      session.onCall({ status: 0, reason: reply.reason, seconds: reply.seconds });
    if (reply.kind === 'not_sent' && reply.reason === 'stopped') {
      const end = ending.attempt ?? this.#topicEnding;
      if (end) report(recipient.index, end);
      else this.#remaining.push(recipient);
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
      if (!this.#hasSuccess) this.#recordSuccess();
      // A pass stops when the token was replaced. APNs counts alternating tokens as token updates,
      // which it limits (protocol/apns.md#provider-tokens).
      const isOutdated = !isLast && session.token() !== this.#token;
      return ending.attempt || isOutdated ? 'stop' : undefined;
    }
    const answer = parseError(reply, this.#options.channel !== undefined);
    session.onCall({ status: reply.status, reason: answer.reason, seconds: reply.seconds });
    if (!isLast && (answer.reaction === 'renew_token' || answer.reaction === 'renew_connection')) {
      this.#cause ??= answer.reaction;
      this.#refusal ??= answer;
      this.#remaining.push(recipient);
      return 'stop';
    }
    const attempt = attemptResult(answer, reply.retryAfterMs, isOnlyTopic);
    report(recipient.index, attempt);
    return this.#decide(answer, attempt);
  }

  #recordSuccess(): void {
    this.#hasSuccess = true;
    this.#onSuccess();
    this.#options.refusals.recordSent(this.#options.topic);
  }

  /** Handles a refusal. Returns whether the transport continues the batch after this response. */
  #decide(answer: ApnsError, attempt: AttemptResult): ResponseDecision {
    const { session, ending, refusals, topic, bodies } = this.#options;
    // If bodies differ, a refused body says nothing about the other bodies.
    const reaction = answer.reaction === 'fail_push' && bodies ? 'fail' : answer.reaction;
    switch (reaction) {
      case 'fail':
        this.#topicEnding ??= refusals.recordRefusal(topic, attempt);
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
    const { message, payload, topic, channel } = this.#options;
    return {
      pathPrefix: channel === undefined ? '/3/device/' : '/4/broadcasts/apps/',
      headers: {
        ...(token === null ? {} : { authorization: token.authorization }),
        ...(channel === undefined ? { 'apns-topic': topic } : { 'apns-channel-id': channel }),
        'apns-push-type': payload.pushType,
        'apns-priority': payload.priority,
        'apns-expiration': payload.expiration,
        ...(payload.collapseId === null ? {} : { 'apns-collapse-id': payload.collapseId }),
      },
      // These values change with every push, so the HPACK table gets only their names
      // (protocol/apns.md#connections). If a push has many recipients, its collapse id gets an
      // entry too, because each further request then needs only one byte for it.
      batchHeaders:
        count < manyRecipients
          ? ['apns-expiration', 'apns-collapse-id', 'apns-channel-id']
          : ['apns-expiration'],
      requestHeaderName: channel === undefined ? 'apns-id' : 'apns-request-id',
      requestHeaderPrefix: apnsIdPrefix(message.objectId),
      body: payload.body,
      ...(payload.badgeAt === undefined ? {} : { spliceAt: payload.badgeAt }),
    };
  }

  #requests(recipients: Recipient[]): TransportRequest[] {
    const { payload, bodies, channel, topic } = this.#options;
    const isSpliced = payload.badgeAt !== undefined;
    // The dispatcher increments the badge before the first attempt. A device without a stored badge
    // shows 1.
    const spliceOf = ({ badge, index }: Recipient) =>
      bodies ? (bodies.get(index) ?? '') : isSpliced ? String(badge ?? 1) : undefined;
    return recipients.map((recipient) => ({
      path: channel === undefined ? recipient.deviceToken.toLowerCase() : encodeURIComponent(topic),
      headerValue: apnsIdEnd(recipient.id),
      splice: spliceOf(recipient),
    }));
  }
}

/** Channel ids are base64. They become the value of a header. */
const channelForm = /^[!-~]{1,512}$/;
const badChannel = failed(0, 'BadChannelId');

/** Hexadecimal. The length is not fixed, because Apple may change it (protocol/apns.md#request). */
const tokenForm = /^[0-9a-fA-F]+$/;
/**
 * Maximum length of a token. It is checked apart from the pattern, because a quantifier with an
 * upper limit doubles the time of the match.
 */
const maxTokenChars = 512;

const notHexadecimal = failed(0, reason('tokenNotHexadecimal'));

/**
 * Returns a failure if a token cannot be put into a path. The device is kept, because no gateway
 * called the token invalid.
 */
function malformed(
  { deviceToken }: Recipient,
  { broadcast }: PushMessage,
): AttemptResult | undefined {
  if (broadcast) return channelForm.test(deviceToken) ? undefined : badChannel;
  return deviceToken.length <= maxTokenChars && tokenForm.test(deviceToken)
    ? undefined
    : notHexadecimal;
}

/** Apple's two gateways (protocol/apns.md#hosts). */
const hosts = { prod: 'https://api.push.apple.com', dev: 'https://api.sandbox.push.apple.com' };

export interface ApnsTuning {
  timing: TransportTiming;
  /** Connections per gateway, credential and thread. */
  maxConnections: number;
}

export const defaultTuning: ApnsTuning = { timing: defaultTiming, maxConnections: 8 };

/** Opens the sender for one set of credentials. It connects when the first push is sent. */
export function openApns(
  credentials: ApnsCredentials,
  context: SenderContext,
  tuning: ApnsTuning = defaultTuning,
): Sender {
  return new ApnsSender(credentials, context, tuning);
}

class ApnsSender implements Sender {
  readonly #credentials: ApnsCredentials;
  readonly #context: SenderContext;
  readonly #tuning: ApnsTuning;
  readonly #tokens: ProviderTokens | null;
  readonly #certificateEndMs: number;
  readonly #sessions = new Map<'prod' | 'dev', ApnsSession>();
  #pausedUntilMs = 0;

  constructor(credentials: ApnsCredentials, context: SenderContext, tuning: ApnsTuning) {
    this.#credentials = credentials;
    this.#context = context;
    this.#tuning = tuning;
    const isToken = credentials.auth === 'token';
    this.#tokens = isToken ? new ProviderTokens(credentials, context.clock) : null;
    this.#certificateEndMs = isToken
      ? Number.POSITIVE_INFINITY
      : certificateExpiryMs(credentials.certificate);
  }

  async send(request: SendRequest): Promise<void> {
    const rendering = renderApns(request.message);
    if (rendering.ok) return this.#deliver(request, rendering.payload);
    reportAll(request, failed(0, rendering.error));
  }

  async sendTexts(request: Omit<SendRequest, 'recipients'>, texts: PersonalTexts): Promise<void> {
    const groups = renderTexts(request, texts);
    await Promise.all(
      groups.map(({ recipients, shared, bodies }) => {
        // `badgeAt` is 0, so each recipient's whole body is inserted where the badge would be.
        const payload = { ...shared, body: Buffer.alloc(0), badgeAt: 0 };
        return this.#deliver({ ...request, recipients }, payload, bodies);
      }),
    );
  }

  /**
   * Sends a rendered push. `bodies` contains the body of each recipient and replaces the shared
   * body.
   */
  async #deliver(
    request: SendRequest,
    payload: ApnsPayload,
    bodies?: ReadonlyMap<number, string>,
  ): Promise<void> {
    const { message, report } = request;
    const refusal = this.#refusal(request);
    if (refusal) return reportAll(request, refusal);
    const session = this.#session(this.#credentials.environment ?? message.prod);
    const topics = this.#byTopic(request, payload);
    const ending = { attempt: null };
    const refusals = request.refusals ?? new EqualRefusals();
    const isOnlyTopic = topicsOf(this.#credentials).length === 1;
    await Promise.all(
      [...topics].map(([topic, members]) => {
        const isListed = topicsOf(this.#credentials)[0] === topic;
        const { signal } = request;
        const options = {
          session,
          message,
          payload,
          bodies,
          topic,
          ...(message.broadcast ? { channel: members[0]?.deviceToken } : {}),
          ending,
          refusals,
          report,
          signal,
        };
        return new Delivery({ ...options, isOnlyTopic: isOnlyTopic && isListed }).run(members);
      }),
    );
  }

  warmUp({ prod }: Pick<PushMessage, 'prod'>): Promise<void> {
    return this.#session(this.#credentials.environment ?? prod).transport.connect();
  }

  check(): Promise<GatewayCheck> {
    const environment = this.#credentials.environment ?? 'prod';
    return checkHttp2(this.#transportOptions(environment), 'certificateRefused');
  }

  load(): TransportLoad {
    const loads = [...this.#sessions.values()].map(({ transport }) => transport.load());
    return {
      connections: loads.reduce((sum, { connections }) => sum + connections, 0),
      streams: loads.reduce((sum, { streams }) => sum + streams, 0),
    };
  }

  async close(): Promise<void> {
    await Promise.all([...this.#sessions.values()].map(({ transport }) => transport.close()));
  }

  /** Returns the result of all recipients if nothing can be sent now; undefined otherwise. */
  #refusal({ message }: SendRequest): AttemptResult | undefined {
    const nowMs = this.#context.clock.now();
    if (message.expiresAtMs <= nowMs)
      return { kind: 'rejected', outcome: 'expired', status: 0, reason: 'expired' };
    if (this.#certificateEndMs <= nowMs)
      return profileError(0, 'certificate_expired', 'certificateExpired');
    if (this.#pausedUntilMs > nowMs)
      return retry(0, 'TooManyProviderTokenUpdates', this.#pausedUntilMs - nowMs);
    return undefined;
  }

  /** Groups recipients by topic. Reports the recipients that cannot be sent to. */
  #byTopic(
    { message, recipients, report }: SendRequest,
    payload: ApnsPayload,
  ): Map<string, Recipient[]> {
    const listed = topicsOf(this.#credentials);
    const groups = new Map<string, Recipient[]>();
    for (const recipient of recipients) {
      const requestedTopic =
        recipient.topic ?? message.topic ?? (listed.length === 1 ? listed[0] : undefined);
      const topic =
        requestedTopic === undefined
          ? undefined
          : topicOf(requestedTopic, message, payload.pushType, listed);
      const unserved =
        topic === undefined || message.broadcast
          ? null
          : certificateProblem(this.#credentials, payload.pushType, topic);
      const problem =
        malformed(recipient, message) ??
        (topic === undefined ? withoutTopic(requestedTopic) : undefined) ??
        (unserved === null ? undefined : failed(0, unserved));
      if (topic === undefined || problem) {
        report(recipient.index, problem ?? withoutTopic(requestedTopic));
        continue;
      }
      const group = groups.get(topic);
      if (group) group.push(recipient);
      else groups.set(topic, [recipient]);
    }
    return groups;
  }

  #session(environment: 'prod' | 'dev'): ApnsSession {
    const existing = this.#sessions.get(environment);
    if (existing) return existing;
    const session = this.#newSession(this.#openTransport(environment));
    this.#sessions.set(environment, session);
    return session;
  }

  #newSession(transport: Transport): ApnsSession {
    const { clock } = this.#context;
    const tokens = this.#tokens;
    let renewedAtMs = Number.NEGATIVE_INFINITY;
    const renew = (sinceMs: number) => {
      if (renewedAtMs >= sinceMs) return;
      renewedAtMs = clock.monotonicMs();
      transport.renew();
    };
    const token = () => tokens?.current() ?? null;
    return {
      transport,
      reconnect: renew,
      token,
      tokenLock: new TokenLock(token, () => renew(clock.monotonicMs())),
      replaceToken: (refused) => tokens?.replace(refused) ?? null,
      pause: () => {
        if (this.#pausedUntilMs > clock.now()) return;
        this.#pausedUntilMs = clock.now() + pauseMs;
        renew(clock.monotonicMs());
      },
      onCall: (call) => this.#context.onCall(call),
      monotonicMs: () => clock.monotonicMs(),
    };
  }

  #openTransport(environment: 'prod' | 'dev'): Transport {
    return openTransport(this.#transportOptions(environment));
  }

  #transportOptions(environment: 'prod' | 'dev'): TransportOptions {
    const { auth, ca, endpoint, proxy } = this.#credentials;
    const { certificate, privateKey } =
      this.#credentials.auth === 'certificate'
        ? this.#credentials
        : { certificate: undefined, privateKey: undefined };
    return {
      baseUrl: endpoint ?? hosts[environment],
      ca,
      proxy,
      certificate,
      privateKey,
      // With a token, a connection is limited to one stream until APNs has accepted the token
      // (protocol/apns.md#connections). With a certificate there is no such limit.
      firstStreams: auth === 'token' ? 1 : undefined,
      maxConnections: this.#tuning.maxConnections,
      timing: this.#tuning.timing,
      clock: this.#context.clock,
      onEvent: this.#context.onTransport,
    };
  }
}

/** Returns the topic of a request. The path of a broadcast has the bundle id without a suffix. */
function topicOf(
  requested: string,
  { broadcast }: PushMessage,
  pushType: string,
  listed: readonly string[],
): string | undefined {
  const topic = sendableTopic(requested, pushType, listed);
  return topic !== undefined && broadcast ? bundleIdIn(topic) : topic;
}

/**
 * Returns the failure of a recipient whose topic is unknown. The result is not a `profile_error`,
 * because each device names its own topic, and other devices may have a valid topic.
 */
function withoutTopic(requestedTopic: string | undefined): AttemptResult {
  return failed(
    0,
    requestedTopic === undefined
      ? reason('noTopic')
      : reason('foreignTopic', { topic: requestedTopic.slice(0, 100) }),
  );
}
