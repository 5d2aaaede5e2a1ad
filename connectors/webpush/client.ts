import { createHash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import {
  type PushService,
  parseEndpoint,
  serviceOfHost,
} from '../../shared/domain/installations/push-services.ts';
import { keyIdOf, subscriptionIn } from '../../shared/domain/installations/subscription.ts';
import { reason } from '../../shared/domain/reasons.ts';
import { EqualRefusals, maxEqualRefusals } from '../contract/attempt-result.ts';
import type {
  AttemptResult,
  GatewayCheck,
  Recipient,
  Sender,
  SenderContext,
  SendRequest,
} from '../contract/connector.ts';
import { isFailure } from '../contract/gateway-health.ts';
import {
  defaultTiming,
  type ResponseDecision,
  type TransportLoad,
  type TransportTiming,
} from '../http2/transport.ts';
import { checkConnection } from '../kit/connection-check.ts';
import {
  attemptResult,
  expired,
  failed,
  notProcessed,
  profileError,
  reportAll,
  retry,
  stopping,
  unanswered,
  unrenderable,
} from '../kit/response-rules.ts';
import { keyPairsOf, type WebPushCredentials } from './credentials.ts';
import { type BrowserKeys, encrypt } from './encryption.ts';
import { Origin, type OriginRequest, type OriginResult } from './origin.ts';
import { renderWebPush, ttlOf, type WebPushPayload } from './payload.ts';
import { ruleForAnswer, type WebPushRule } from './responses.ts';
import { VapidSigner } from './vapid.ts';

/** Messages that are encrypted in one tick of the event loop, about 10 ms. */
const sliceSize = 50;
/** Encrypted messages that may wait for an answer, for each service. */
const maxWaiting = 2000;
/** Wait of other messages while one message tests a service after a pause. */
const testWaitMs = 5000;
/** Services with open connections. Further services close those that were used longest ago. */
const maxOrigins = 64;

/** Push service to which a check connects. */
const exampleService = 'https://updates.push.services.mozilla.com';

/** A device of a send: where its message goes and how it is encrypted. */
interface Target {
  recipient: Recipient;
  path: string;
  browser: BrowserKeys;
  keyId: string;
}

/** Devices whose messages share a connection and headers. */
interface Group {
  service: PushService;
  /** Origin of the endpoints. VAPID tokens name it. */
  origin: string;
  signer: VapidSigner;
  payload: WebPushPayload;
  /** The profile replaces the host of the endpoints, or names a proxy. */
  isOfProfile: boolean;
  targets: Target[];
}

const noSubscription = failed(0, reason('noSubscription'));
const serviceNotListed = failed(0, reason('pushServiceNotListed'));
const keyUnknown = failed(0, reason('subscriptionKeyUnknown'));

export interface WebPushTuning {
  timing: TransportTiming;
}

export const defaultTuning: WebPushTuning = { timing: defaultTiming };

/** Opens the sender of one profile. It connects to a push service when the first device needs it. */
export const openWebPush = (
  credentials: WebPushCredentials,
  context: SenderContext,
  tuning: WebPushTuning = defaultTuning,
): Sender => new WebPushSender(credentials, context, tuning);

class WebPushSender implements Sender {
  readonly #credentials: WebPushCredentials;
  readonly #context: SenderContext;
  readonly #tuning: WebPushTuning;
  /** Signers by key id. The empty id is the current key. */
  readonly #signers: ReadonlyMap<string, VapidSigner>;
  /** Origins by base URL, the one that was used last at the end. */
  readonly #origins = new Map<string, Origin>();
  #isClosed = false;

  constructor(credentials: WebPushCredentials, context: SenderContext, tuning: WebPushTuning) {
    this.#credentials = credentials;
    this.#context = context;
    this.#tuning = tuning;
    this.#signers = new Map(
      keyPairsOf(credentials).flatMap((pair, i) => {
        const signer = new VapidSigner(pair, credentials.subject);
        const id = keyIdOf(pair.publicKey);
        return (i === 0 ? ['', id] : [id]).map((one) => [one, signer] as const);
      }),
    );
  }

  async send(request: SendRequest): Promise<void> {
    const { message, recipients, signal } = request;
    const nowMs = this.#context.clock.now();
    if (message.expiresAtMs <= nowMs) return reportAll(request, expired);
    if (signal.aborted || this.#isClosed) return reportAll(request, stopping);
    const groups = this.#groupsOf(recipients, request);
    const verdict = new Verdict(request);
    await Promise.all(groups.map((group) => this.#sendGroup(group, request, verdict)));
    verdict.reportUndecided();
  }

  /** Connects to one push service. Push services have no call that checks a sender. */
  check(): Promise<GatewayCheck> {
    const { ca, endpoint = exampleService, proxy } = this.#credentials;
    return checkConnection({ baseUrl: proxy ?? endpoint, ca }, this.#tuning.timing.connectMs);
  }

  load(): TransportLoad {
    const loads = [...this.#origins.values()].map((origin) => origin.load());
    return {
      connections: loads.reduce((sum, { connections }) => sum + connections, 0),
      streams: loads.reduce((sum, { streams }) => sum + streams, 0),
    };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#origins.values()].map((origin) => origin.close()));
  }

  /** Groups devices by service, key and payload. Reports devices that get no message. */
  #groupsOf(recipients: Recipient[], { message, report }: SendRequest): Group[] {
    const groups = new Map<string, Group>();
    const payloads = new Map<string, ReturnType<typeof renderWebPush>>();
    for (const recipient of recipients) {
      const { deviceToken, deviceType, index } = recipient;
      const found = subscriptionIn(deviceToken);
      const endpoint = found && parseEndpoint(found.endpoint);
      if (!found || !endpoint) report(index, noSubscription);
      else if ('error' in endpoint) report(index, serviceNotListed);
      else {
        const signer = this.#signers.get(found.keyId);
        const type = deviceType === 'web' ? 'web' : 'other';
        const rendering = payloads.get(type) ?? renderWebPush(message, deviceType);
        payloads.set(type, rendering);
        if (!signer) report(index, keyUnknown);
        else if (!rendering.ok) report(index, unrenderable(rendering));
        else {
          const { url } = endpoint;
          const key = `${url.origin} ${found.keyId} ${type}`;
          const group = groups.get(key) ?? {
            service: serviceOfHost(url.host) ?? 'other',
            origin: url.origin,
            signer,
            payload: rendering.payload,
            isOfProfile:
              this.#credentials.endpoint !== undefined || this.#credentials.proxy !== undefined,
            targets: [],
          };
          groups.set(key, group);
          group.targets.push({
            recipient,
            path: url.pathname + url.search,
            browser: {
              publicKey: Buffer.from(found.p256dh, 'base64url'),
              auth: Buffer.from(found.auth, 'base64url'),
            },
            keyId: found.keyId,
          });
        }
      }
    }
    return [...groups.values()];
  }

  async #sendGroup(group: Group, request: SendRequest, verdict: Verdict): Promise<void> {
    const origin = this.#originOf(group.origin);
    origin.users += 1;
    try {
      await new GroupSend({ group, request, verdict, origin, context: this.#context }).run(
        this.#headersOf(group, request),
      );
    } finally {
      origin.users -= 1;
    }
  }

  #headersOf({ origin, payload, service, signer }: Group, { message }: SendRequest) {
    const nowMs = this.#context.clock.now();
    const topic = this.#topicOf(payload);
    return {
      authorization: signer.authorization(origin, nowMs),
      'content-encoding': 'aes128gcm',
      'content-type': 'application/octet-stream',
      ttl: String(ttlOf(payload, message.expiresAtMs - nowMs)),
      urgency: payload.urgency,
      ...(topic === null ? {} : { topic }),
      // Without it, Edge's service refuses some values of TTL.
      ...(service === 'microsoft' ? { 'x-wns-cache-policy': 'cache' } : {}),
    };
  }

  /**
   * Returns the topic. One that is made from a collapse id has 32 characters, a length that Apple
   * accepts, and does not reveal the id.
   */
  #topicOf({ topic }: WebPushPayload): string | null {
    if (topic === null || 'value' in topic) return topic?.value ?? null;
    return createHash('sha256')
      .update(`${this.#credentials.publicKey ?? ''}\0${topic.collapseId}`)
      .digest()
      .subarray(0, 24)
      .toString('base64url');
  }

  /** Returns the client for an origin of endpoints. `endpoint` of the profile replaces its host. */
  #originOf(name: string): Origin {
    const { ca, endpoint, proxy } = this.#credentials;
    const { clock, onTransport } = this.#context;
    const existing = this.#origins.get(name);
    const origin =
      existing ??
      new Origin({
        baseUrl: endpoint ?? name,
        ...(ca === undefined ? {} : { ca }),
        ...(proxy === undefined ? {} : { proxy }),
        timing: this.#tuning.timing,
        clock,
        ...(onTransport ? { onEvent: onTransport } : {}),
      });
    this.#origins.delete(name);
    this.#origins.set(name, origin);
    if (this.#origins.size > maxOrigins) this.#closeOldest();
    return origin;
  }

  #closeOldest(): void {
    for (const [name, origin] of this.#origins) {
      if (origin.users > 0) continue;
      this.#origins.delete(name);
      void origin.close();
      return;
    }
  }
}

/** A refusal that is decided at the end of the send. */
interface Undecided {
  index: number;
  status: number;
  rule: WebPushRule;
  keyId: string;
}

/**
 * Decides about refusals of a key or of the sender when all answers of a send are known. If the
 * same key was accepted for other devices, the subscription is to blame, otherwise the profile.
 */
class Verdict {
  readonly #request: SendRequest;
  readonly #refusals: EqualRefusals;
  readonly #undecided: Undecided[] = [];

  constructor(request: SendRequest) {
    this.#request = request;
    this.#refusals = request.refusals ?? new EqualRefusals();
  }

  get refusals(): EqualRefusals {
    return this.#refusals;
  }

  recordSent(origin: string, keyId: string): void {
    for (const group of [origin, keyGroup(keyId), anyGroup]) this.#refusals.recordSent(group);
  }

  postpone(undecided: Undecided): void {
    this.#undecided.push(undecided);
  }

  reportUndecided(): void {
    for (const { index, keyId, rule, status } of this.#undecided)
      this.#request.report(index, this.#resultOf(rule, status, keyId));
  }

  #resultOf(rule: WebPushRule, status: number, keyId: string): AttemptResult {
    if (rule.isOtherKey)
      return this.#refusals.hasSuccess(keyGroup(keyId))
        ? attemptResult(rule, status)
        : failed(status, rule.reason);
    return this.#refusals.hasSuccess(anyGroup)
      ? failed(status, rule.reason)
      : profileError(status, rule.reason, rule.hint ?? 'webpushSender');
  }
}

const anyGroup = 'any';
const keyGroup = (keyId: string): string => `key ${keyId}`;

/** Sends the messages of one group. */
class GroupSend {
  readonly #group: Group;
  readonly #request: SendRequest;
  readonly #verdict: Verdict;
  readonly #origin: Origin;
  readonly #context: SenderContext;
  /** Result for all devices that are not sent to; null while the service gets messages. */
  #ending: AttemptResult | null = null;
  #postponed = 0;

  constructor({
    group,
    request,
    verdict,
    origin,
    context,
  }: {
    group: Group;
    request: SendRequest;
    verdict: Verdict;
    origin: Origin;
    context: SenderContext;
  }) {
    this.#group = group;
    this.#request = request;
    this.#verdict = verdict;
    this.#origin = origin;
    this.#context = context;
    this.#ending = verdict.refusals.endingOf(group.origin);
  }

  /** Sends in slices, because encryption takes 0.2 ms of CPU time for each message. */
  async run(headers: Readonly<Record<string, string>>): Promise<void> {
    const { targets } = this.#group;
    const { health } = this.#origin;
    const sending: Promise<void>[] = [];
    for (let at = 0, size = 0; at < targets.length; at += size) {
      const ending = this.#endingNow();
      size = ending ? 0 : health.admit(Math.min(sliceSize, targets.length - at));
      if (size === 0 && !ending && (await health.untilAnswer())) continue;
      if (size === 0) {
        this.#reportAll(targets.slice(at), this.#endingNow() ?? paused(testWaitMs));
        break;
      }
      const slice = targets.slice(at, at + size);
      const requests = slice.map((target) => this.#requestOf(target));
      const { signal } = this.#request;
      sending.push(
        this.#origin.sendMany({ headers, requests, signal }, (index, result) => {
          const target = slice[index];
          return target && this.#onResult(target, result);
        }),
      );
      if (sending.length * sliceSize >= maxWaiting) await sending.shift();
      await setImmediate();
    }
    await Promise.all(sending);
  }

  #endingNow(): AttemptResult | null {
    if (this.#request.signal.aborted) return stopping;
    const waitMs = this.#origin.health.cooldownMs();
    if (waitMs > 0) return paused(waitMs);
    return this.#ending;
  }

  #requestOf({ browser, path, recipient }: Target): OriginRequest {
    const { payload } = this.#group;
    const text = payload.textWith ? payload.textWith(recipient.badge ?? 1) : payload.text;
    return { path, splice: encrypt(text, browser) };
  }

  #onResult(target: Target, result: OriginResult): ResponseDecision {
    if (result.kind === 'response') this.#onResponse(target, result);
    else this.#onFailure(target, result);
    return this.#endingNow() ? 'stop' : undefined;
  }

  #onResponse(
    { keyId, recipient: { index } }: Target,
    response: Extract<OriginResult, { kind: 'response' }>,
  ): void {
    const { origin, service } = this.#group;
    const { retryAfterMs, seconds, status } = response;
    const rule = ruleForAnswer(service, response);
    this.#context.onCall({ status, reason: rule.reason, seconds });
    this.#origin.health.record(status >= 500 ? 'failed' : 'answered');
    if (rule.reaction === 'sent') {
      this.#verdict.recordSent(origin, keyId);
      this.#request.report(index, attemptResult(rule, status));
      return;
    }
    if (rule.isOtherKey || rule.reaction === 'profile_error') {
      this.#verdict.postpone({ index, status, rule, keyId });
      this.#postponed += 1;
      const isRefused =
        this.#postponed >= maxEqualRefusals && !this.#verdict.refusals.hasSuccess(origin);
      if (isRefused) this.#ending ??= failed(status, rule.reason);
      return;
    }
    const attempt = attemptResult(rule, status, { retryAfterMs });
    this.#report(index, attempt);
    if (rule.reaction === 'throttle') this.#ending ??= ofService(attempt);
    else if (rule.reaction === 'fail' && !rule.isOfDevice)
      this.#ending ??= this.#verdict.refusals.recordRefusal(origin, attempt);
  }

  #onFailure(
    { recipient: { index } }: Target,
    result: Exclude<OriginResult, { kind: 'response' }>,
  ): void {
    const { isRepeatHidden } = this.#group.payload;
    if (result.kind === 'not_sent' && result.reason === 'stopped') {
      this.#origin.health.record('unsent');
      this.#report(index, this.#endingNow() ?? stopping);
      return;
    }
    const seconds = 'seconds' in result ? result.seconds : 0;
    if (result.kind === 'unknown')
      this.#context.onCall({ status: 0, reason: result.reason, seconds });
    const attempt = failureOf(result, {
      isRepeatHidden,
      isOfProfile: this.#group.isOfProfile,
    });
    this.#origin.health.record(isFailure(attempt) ? 'unanswered' : 'unsent');
    // The address and the certificate concern all messages to the service.
    if (result.reason === 'address_refused' || result.reason === 'certificate_refused')
      this.#ending ??= attempt;
    this.#report(index, attempt);
  }

  #report(index: number, attempt: AttemptResult): void {
    this.#request.report(index, ofService(attempt));
  }

  #reportAll(targets: readonly Target[], attempt: AttemptResult): void {
    for (const { recipient } of targets) this.#report(recipient.index, attempt);
  }
}

/**
 * Returns the result of a request without a response. `isOfProfile`: the profile chose the address,
 * so a refused address or certificate is an error of the profile. Otherwise it concerns one service.
 */
function failureOf(
  result: Exclude<OriginResult, { kind: 'response' }>,
  { isRepeatHidden, isOfProfile }: { isRepeatHidden: boolean; isOfProfile: boolean },
): AttemptResult {
  const { cause, reason: why } = { cause: undefined, ...result };
  const details = cause === undefined ? {} : { cause };
  if (result.kind === 'unknown')
    return { kind: 'unknown', reason: why, isRepeatHidden, ...details };
  if (why === 'address_refused' || why === 'certificate_refused')
    return isOfProfile
      ? unanswered({ kind: 'not_sent', reason: why, seconds: 0, ...details }, isRepeatHidden)
      : failed(0, why);
  if (why === 'bad_request') return failed(0, why);
  const waitMs = 'afterMs' in result ? result.afterMs : null;
  return { ...notProcessed(why, waitMs), ...details };
}

/** Result of a device whose service gets no messages now. */
const paused = (waitMs: number): AttemptResult => ofService(retry(0, 'service_paused', waitMs));

/** Marks a result that says nothing about the other services of the profile. */
const ofService = (attempt: AttemptResult): AttemptResult =>
  attempt.kind === 'retry' || attempt.kind === 'unknown'
    ? { ...attempt, isOfService: true }
    : attempt;
