import type { Handle } from '../../../shared/db/pool.ts';
import {
  countConversion,
  listOpenBreakers,
  openBreaker,
  type Prefix,
  readConversion,
} from '../../../shared/db/tables/messages/sms-conversion.ts';
import { Refusal } from '../../../shared/domain/errors/errors.ts';
import { pumping } from '../../../shared/domain/messages/sms.ts';
import type { ApiDeps } from '../deps.ts';

type PumpingDeps = Pick<ApiDeps, 'db' | 'clock' | 'metrics'>;

/**
 * Against SMS pumping: who has messages sent for a share of their price does not use the codes (protocol/known-problems.md#sms-pumping).
 * Of every app and country the codes sent and used are counted; when hardly any is used, sending there is broken
 * off for an hour, and a metric says so.
 */
export class PumpingGuard {
  readonly #deps: PumpingDeps;

  constructor(deps: PumpingDeps) {
    this.#deps = deps;
  }

  /** Throws 154 while sending to this country is broken off. */
  async check(prefix: Prefix): Promise<void> {
    const { db, clock, metrics } = this.#deps;
    const nowMs = clock.now();
    const { sent, used, openUntil } = await readConversion(db, prefix, {
      from: new Date(nowMs - pumping.windowMs),
      // Codes of the last five to ten minutes may still be used.
      settledBefore: new Date(bucketOf(nowMs) - pumping.bucketMs),
      now: new Date(nowMs),
    });
    if (openUntil) throw brokenOff(openUntil.getTime() - nowMs);
    if (sent < pumping.minSent || used >= sent * pumping.minUsedShare) return;
    const until = new Date(nowMs + pumping.openMs);
    if (await openBreaker(db, prefix, { now: new Date(nowMs), until }))
      metrics.smsBreakerTrips.inc({ app: prefix.appId, prefix: prefix.prefix });
    throw brokenOff(pumping.openMs);
  }

  async countSent(tx: Handle, prefix: Prefix): Promise<void> {
    await countConversion(tx, prefix, 'sent', new Date(bucketOf(this.#deps.clock.now())));
  }

  /** Writes the breakers that are open on any process into this process's gauge. */
  async updateGauge(): Promise<void> {
    const { db, clock, metrics } = this.#deps;
    const open = await listOpenBreakers(db, new Date(clock.now()));
    metrics.smsBreakerOpen.reset();
    for (const { appId, prefix } of open) metrics.smsBreakerOpen.set({ app: appId, prefix }, 1);
  }
}

const bucketOf = (ms: number) => Math.floor(ms / pumping.bucketMs) * pumping.bucketMs;

const brokenOff = (ms: number) =>
  new Refusal('thresholdExceeded', {
    text: 'Messages to this country are held back: hardly any of the codes sent there was used.',
    retryAfterSeconds: Math.ceil(ms / 1000),
  });
