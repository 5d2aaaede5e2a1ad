import type { Handle } from '../../../shared/db/pool.ts';
import {
  countConversion,
  listOpenBreakers,
  openBreaker,
  type Prefix,
  readConversion,
} from '../../../shared/db/tables/sms.ts';
import { Refusal } from '../../../shared/domain/errors/errors.ts';
import { pumping } from '../../../shared/domain/messages/sms.ts';
import type { ApiDeps } from '../deps.ts';

type PumpingDeps = Pick<ApiDeps, 'db' | 'clock' | 'metrics'>;

/**
 * Detects SMS pumping: an attacker who earns a share of the price of messages does not use the codes
 * (protocol/known-problems.md#sms-pumping). Counts the codes sent and used per app and country. When hardly any is used,
 * sending to that country is suspended for an hour, and a metric shows it.
 */
export class PumpingGuard {
  readonly #deps: PumpingDeps;

  constructor(deps: PumpingDeps) {
    this.#deps = deps;
  }

  /** Throws 154 while sending to this country is suspended. */
  async check(prefix: Prefix): Promise<void> {
    const { db, clock, metrics } = this.#deps;
    const nowMs = clock.now();
    const { sent, used, openUntil } = await readConversion(db, prefix, {
      from: new Date(nowMs - pumping.windowMs),
      // Codes of the last five to ten minutes may still be used.
      settledBefore: new Date(bucketOf(nowMs) - pumping.bucketMs),
      now: new Date(nowMs),
    });
    if (openUntil) throw suspended(openUntil.getTime() - nowMs);
    if (sent < pumping.minSent || used >= sent * pumping.minUsedShare) return;
    const until = new Date(nowMs + pumping.openMs);
    if (await openBreaker(db, prefix, { now: new Date(nowMs), until }))
      metrics.smsBreakerTrips.inc({ app: prefix.appId, prefix: prefix.prefix });
    throw suspended(pumping.openMs);
  }

  /** Counts a sent code as part of `tx`. */
  async countSent(tx: Handle, prefix: Prefix): Promise<void> {
    await countConversion(tx, prefix, 'sent', new Date(bucketOf(this.#deps.clock.now())));
  }

  /** Updates the gauge of this process with all open breakers. */
  async updateGauge(): Promise<void> {
    const { db, clock, metrics } = this.#deps;
    const open = await listOpenBreakers(db, new Date(clock.now()));
    metrics.smsBreakerOpen.reset();
    for (const { appId, prefix } of open) metrics.smsBreakerOpen.set({ app: appId, prefix }, 1);
  }
}

const bucketOf = (ms: number) => Math.floor(ms / pumping.bucketMs) * pumping.bucketMs;

const suspended = (ms: number) =>
  new Refusal('thresholdExceeded', {
    text: 'Messages to this country are held back: hardly any of the codes sent there was used.',
    retryAfterSeconds: Math.ceil(ms / 1000),
  });
