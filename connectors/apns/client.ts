import { reason } from '../../shared/domain/reasons.ts';
import type {
  AttemptResult,
  GatewayCheck,
  PersonalTexts,
  PushMessage,
  Recipient,
  Sender,
  SenderContext,
  SendRequest,
} from '../contract/connector.ts';
import { EqualRefusals } from '../contract/equal-refusals.ts';
import { openTransport } from '../http2/pooled-transport.ts';
import {
  defaultTiming,
  type Transport,
  type TransportLoad,
  type TransportOptions,
  type TransportTiming,
} from '../http2/transport.ts';
import { checkHttp2 } from '../kit/connection-check.ts';
import { failed, profileError, reportAll, retry } from '../kit/response-rules.ts';
import { pauseMs } from './attempt-results.ts';
import { type ApnsCredentials, certificateExpiryMs, topicsOf } from './credentials.ts';
import { type ApnsSession, Delivery, malformed } from './delivery.ts';
import { type ApnsPayload, renderApns } from './payload.ts';
import { renderTexts } from './personal.ts';
import { ProviderTokens, TokenTurns } from './provider-token.ts';
import { sendableTopic } from './push-types.ts';
import { certificateProblem } from './routing.ts';

/** Apple's own gateways (protocol/apns.md#hosts). */
const hosts = { prod: 'https://api.push.apple.com', dev: 'https://api.sandbox.push.apple.com' };

export interface ApnsTuning {
  timing: TransportTiming;
  /** Connections to each of the two gateways, per credential and thread. */
  maxConnections: number;
}

export const defaultTuning: ApnsTuning = { timing: defaultTiming, maxConnections: 8 };

/** Opens the sender of one set of credentials; it connects with the first push. */
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
        // The whole body is in the place of the badge.
        const payload = { ...shared, body: Buffer.alloc(0), badgeAt: 0 };
        return this.#deliver({ ...request, recipients }, payload, bodies);
      }),
    );
  }

  /** Sends a rendered push; `bodies`: that of each recipient in place of the shared one. */
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
        const options = { session, message, payload, bodies, topic, ending, refusals, report, signal };
        return new Delivery({ ...options, isOnlyTopic: isOnlyTopic && isListed }).run(members);
      }),
    );
  }

  warmUp({ prod }: Pick<PushMessage, 'prod'>): Promise<void> {
    return this.#session(this.#credentials.environment ?? prod).transport.connect();
  }

  check(): Promise<GatewayCheck> {
    const environment = this.#credentials.environment ?? 'prod';
    return checkHttp2(this.#transportOptions(environment));
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

  /** Returns the result of all recipients if nothing can be sent now. */
  #refusal({ message }: SendRequest): AttemptResult | undefined {
    const nowMs = this.#context.clock.now();
    if (message.expiresAtMs <= nowMs)
      return { kind: 'rejected', outcome: 'expired', status: 0, reason: 'expired' };
    if (this.#certificateEndMs <= nowMs) return profileError(0, 'certificate_expired', 'certificateExpired');
    if (this.#pausedUntilMs > nowMs)
      return retry(0, 'TooManyProviderTokenUpdates', this.#pausedUntilMs - nowMs);
    return undefined;
  }

  /** Groups recipients by topic; reports those that cannot be sent to. */
  #byTopic({ message, recipients, report }: SendRequest, payload: ApnsPayload): Map<string, Recipient[]> {
    const listed = topicsOf(this.#credentials);
    const groups = new Map<string, Recipient[]>();
    for (const recipient of recipients) {
      const wanted = recipient.topic ?? message.topic ?? (listed.length === 1 ? listed[0] : undefined);
      const topic = wanted === undefined ? undefined : sendableTopic(wanted, payload.pushType, listed);
      const unserved =
        topic === undefined ? null : certificateProblem(this.#credentials, payload.pushType, topic);
      const problem =
        malformed(recipient) ??
        (topic === undefined ? withoutTopic(wanted) : undefined) ??
        (unserved === null ? undefined : failed(0, unserved));
      if (topic === undefined || problem) {
        report(recipient.index, problem ?? withoutTopic(wanted));
        continue;
      }
      const group = groups.get(topic);
      if (group) group.push(recipient);
      else groups.set(topic, [recipient]);
    }
    return groups;
  }

  #session(environment: 'prod' | 'dev'): ApnsSession {
    const known = this.#sessions.get(environment);
    if (known) return known;
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
      turns: new TokenTurns(token, () => renew(clock.monotonicMs())),
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
      // protocol/apns.md#connections: one stream until a valid token was answered; certificates start large.
      firstStreams: auth === 'token' ? 1 : undefined,
      maxConnections: this.#tuning.maxConnections,
      timing: this.#tuning.timing,
      clock: this.#context.clock,
      onEvent: this.#context.onTransport,
    };
  }
}

/** Returns a failure, not a `profile_error`: each installation names its own topic, and others may be valid. */
function withoutTopic(wanted: string | undefined): AttemptResult {
  return failed(
    0,
    wanted === undefined ? reason('noTopic') : reason('foreignTopic', { topic: wanted.slice(0, 100) }),
  );
}
