import { randomUUID } from 'node:crypto';
import type {
  AttemptResult,
  Connector,
  GatewayCheck,
  SenderContext,
} from '../../../../connectors/contract/connector.ts';
import { connectors } from '../../../../connectors/registry.ts';
import { type Clock, sleep } from '../../../../shared/clock.ts';
import { type Meaning, meaningOf } from '../../../../shared/domain/admin/reasons/meaning.ts';
import { type Remedy, remedyOf } from '../../../../shared/domain/admin/remedies.ts';
import { gatewayFailureText } from '../../../../shared/domain/breaker.ts';
import { Refusal } from '../../../../shared/domain/errors/errors.ts';
import { type ConnectorId, displayName } from '../../../../shared/domain/labels.ts';
import {
  connectionReason,
  hintText,
  reasonText,
  withHint,
  withStatus,
} from '../../../../shared/domain/reasons.ts';
import { textIn } from '../../../../shared/domain/texts/catalogue.ts';
import type { ApiDeps } from '../../deps.ts';
import type { ProfileDetailService } from './profile-detail.ts';
import type { ProfileId } from './profiles.ts';

/** Maximum duration of a check. An unreachable gateway would take its connection timeout. */
const timeoutMs = 8000;
/** Maximum number of concurrent checks in a process. */
const maxAtOnce = 8;

type ProfileDetails = Pick<ProfileDetailService, 'open'>;

/**
 * Result of a request to a gateway with the credentials of a profile
 * (protocol/admin-api.md#profiles).
 */
export interface ProfileCheck {
  ok: boolean;
  /**
   * `token`: the gateway accepted the credentials. `connection`: the gateway is reachable, but only
   * a push can verify the credentials.
   */
  gave: 'token' | 'connection' | null;
  tookMs: number;
  /** Short reason of a failure: a connection code, a status or a name from the response tables. */
  reason: string | null;
  meaning: Meaning | null;
  sentence: string;
  remedy: Remedy | null;
}

/** Requests a token or a connection from gateways, without sending a push. */
export class ProfileCheckService {
  readonly #clock: Clock;
  readonly #details: ProfileDetails;
  readonly #timeoutMs: number;
  readonly #running = new Map<string, Promise<ProfileCheck>>();

  constructor(
    { clock }: Pick<ApiDeps, 'clock'>,
    details: ProfileDetails,
    checkTimeoutMs = timeoutMs,
  ) {
    this.#clock = clock;
    this.#details = details;
    this.#timeoutMs = checkTimeoutMs;
  }

  /**
   * Checks a profile. Concurrent callers for the same profile share one check. Throws error 404 if
   * the profile does not exist, error 429 if too many checks run.
   */
  async check(profile: ProfileId): Promise<ProfileCheck> {
    const opened = await this.#details.open(profile);
    const key = JSON.stringify([profile, opened.profile.updatedAt]);
    const running = this.#running.get(key);
    if (running) return running;
    return this.#start(key, opened.id, opened.profile.credentials);
  }

  /** Checks credentials that are not stored yet. Throws error 429 if too many checks run. */
  async checkCandidate(connectorId: ConnectorId, credentials: unknown): Promise<ProfileCheck> {
    return this.#start(randomUUID(), connectorId, credentials);
  }

  #start(key: string, connectorId: ConnectorId, credentials: unknown): Promise<ProfileCheck> {
    if (this.#running.size >= maxAtOnce)
      throw new Refusal('tooManyRequests', { retryAfterSeconds: 2 });
    const work = this.#ask(connectors.get(connectorId), credentials).finally(() =>
      this.#running.delete(key),
    );
    this.#running.set(key, work);
    return work;
  }

  async #ask(connector: Connector | undefined, stored: unknown): Promise<ProfileCheck> {
    const startedAtMs = this.#clock.monotonicMs();
    const result = await this.#result(connector, stored);
    const tookMs = Math.round(this.#clock.monotonicMs() - startedAtMs);
    return { ...describe(connector?.id ?? '', result), tookMs };
  }

  async #result(connector: Connector | undefined, stored: unknown): Promise<GatewayCheck> {
    const parsed = connector?.credentials.safeParse(stored);
    if (!connector || !parsed?.success) return { ok: false, attempt: invalidCredentials };
    const sender = connector.open(parsed.data, this.#context());
    const done = new AbortController();
    const late = sleep(this.#timeoutMs, done.signal).then((): GatewayCheck => tooLate);
    try {
      return (
        (await Promise.race([sender.check?.(), late])) ?? { ok: false, attempt: invalidCredentials }
      );
    } finally {
      done.abort();
      // Waits for requests in flight. The caller does not need to wait.
      void sender.close();
    }
  }

  /** Returns a context without stores, because a check keeps no token and sends nothing. */
  #context(): SenderContext {
    return {
      clock: this.#clock,
      messageStore: { enqueue: async () => undefined, deleteWaiting: async () => new Set() },
      tokens: {
        read: async () => null,
        claim: async () => false,
        keep: async () => undefined,
        release: async () => undefined,
      },
      quota: { closed: async () => null, close: async () => undefined },
      callbackUrl: '',
      onCall: () => undefined,
    };
  }
}

const invalidCredentials: AttemptResult = {
  kind: 'profile_error',
  status: 0,
  reason: 'invalid_credentials',
  hint: 'credentialsUnfit',
};

const tooLate: GatewayCheck = {
  ok: false,
  attempt: { kind: 'retry', status: 0, reason: 'timeout', afterMs: null, cause: 'ETIMEDOUT' },
};

function describe(connector: string, result: GatewayCheck): Omit<ProfileCheck, 'tookMs'> {
  const name = displayName(connector);
  if (result.ok) {
    const { gave } = result;
    const sentence = textIn('en', 'profileCheck', gave, () => name);
    return { ok: true, gave, reason: null, meaning: null, sentence, remedy: null };
  }
  const { attempt } = result;
  const { reason, meaning, sentence } = failureOf(connector, attempt);
  const remedy =
    attempt.kind === 'profile_error'
      ? remedyOf('failed', reason)
      : { code: 'unreachable' as const };
  return { ok: false, gave: null, reason: reasonText(reason), meaning, sentence, remedy };
}

function failureOf(
  connector: string,
  attempt: AttemptResult,
): { reason: string; meaning: Meaning; sentence: string } {
  if (attempt.kind === 'sent') return unreached(connector, 'unknown');
  const { reason } = attempt;
  if (attempt.kind === 'profile_error')
    return {
      reason,
      meaning: meaningOf(withHint(reason, attempt.hint)),
      sentence: hintText(attempt.hint),
    };
  if ('cause' in attempt && attempt.cause !== undefined)
    return unreached(connector, connectionReason(attempt.cause));
  const hasStatus = 'status' in attempt && attempt.status > 0;
  return {
    ...unreached(connector, hasStatus ? withStatus(attempt.status, reason) : reason),
    reason,
  };
}

const unreached = (connector: string, reason: string) => ({
  reason,
  meaning: meaningOf(reason),
  sentence: `${gatewayFailureText(connector, reason)}.`,
});
