import { dayMs, hourMs } from '../../../shared/clock.ts';
import type { Handle } from '../../../shared/db/pool.ts';
import {
  type Budget,
  chargeBalance,
  countConversion,
  insertSend,
  listOpenBreakers,
  openBreaker,
  type Prefix,
  readConversion,
  readNumberHistory,
  takeBudget,
} from '../../../shared/db/tables/sms.ts';
import { networkOf } from '../../../shared/domain/addresses.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { Refusal, refuse } from '../../../shared/domain/errors/errors.ts';
import { isDomesticPhone, type Phone } from '../../../shared/domain/messages/phone.ts';
import {
  blockPerHour,
  freeMessages,
  minGapOfAnyMs,
  numberLimits,
  prices,
  pumping,
  type SendKind,
} from '../../../shared/domain/messages/sms.ts';
import type { ApiDeps } from '../deps.ts';

/** Message that counts against the budgets. */
interface CountedMessage {
  app: App;
  phone: Phone;
  kind: SendKind;
  sign: string;
  /** Undefined for a caller with the master key: a server sends for many users. */
  ipAddress: string | undefined;
}

/** Window of a budget that never renews. */
const foreverMs = 100 * 365 * dayMs;
/** Number of last digits that vary within a block of numbers. */
const blockDigits = 4;

/**
 * Counts a message against all its budgets as part of `tx`. If a budget is exhausted, the rollback
 * undoes every count. Throws error 1 if the previous message to the number is less than 10 seconds
 * old, error 601 for the number's other limits, error 154 for the limits of network address, block
 * and app (protocol/codes.md#limits, protocol/admin-api.md#options-of-an-app).
 */
export async function spendBudgets(
  deps: ApiDeps,
  tx: Handle,
  message: CountedMessage,
): Promise<void> {
  const { app, phone, kind, sign, ipAddress } = message;
  const now = new Date(deps.clock.now());
  const { appId } = app;
  await requireNumberBudget(tx, message, now);
  const budgets: Budget[] = [
    { appId, scope: 'block', key: blockOf(phone), limit: blockPerHour, windowMs: hourMs },
    { appId, scope: 'app', key: '', limit: app.options.smsPerAppPerDay, windowMs: dayMs },
  ];
  if (ipAddress !== undefined)
    budgets.unshift({
      appId,
      scope: 'address',
      key: ipAddressKey(deps, ipAddress),
      limit: app.options.smsPerAddressPerHour,
      windowMs: hourMs,
    });
  for (const budget of budgets)
    if (!(await takeBudget(tx, budget, now))) throw refuse('thresholdExceeded');
  await insertSend(tx, { appId, number: phone.e164, kind, sign }, now);
}

async function requireNumberBudget(
  tx: Handle,
  { app, phone, kind, sign }: CountedMessage,
  now: Date,
): Promise<void> {
  const number = { appId: app.appId, number: phone.e164, kind, sign };
  const history = await readNumberHistory(tx, number, now);
  const limits = numberLimits[kind];
  if (history.sinceLastMs < minGapOfAnyMs)
    throw new Refusal('smsTooSoon', {
      retryAfterSeconds: Math.ceil((minGapOfAnyMs - history.sinceLastMs) / 1000),
    });
  if (history.sinceLastOfKindMs < limits.minGapMs)
    throw new Refusal('smsTooFrequent', {
      retryAfterSeconds: Math.ceil((limits.minGapMs - history.sinceLastOfKindMs) / 1000),
    });
  if (history.sameKindInHour >= limits.perHour || history.sameKindInDay >= limits.perDay)
    throw refuse('smsTooFrequent');
}

/**
 * Charges the balance of an app that has one (option `smsBalance`) for a message. The first hundred
 * domestic messages are free. Throws error 160 if the balance is too low.
 */
export async function chargeMessage(
  { clock }: Pick<ApiDeps, 'clock'>,
  tx: Handle,
  { app, phone }: Pick<CountedMessage, 'app' | 'phone'>,
): Promise<void> {
  const { appId, options } = app;
  if (options.smsBalance === null) return;
  const isDomestic = isDomesticPhone(phone);
  const free: Budget = { appId, scope: 'free', key: '', limit: freeMessages, windowMs: foreverMs };
  if (isDomestic && (await takeBudget(tx, free, new Date(clock.now())))) return;
  const price = isDomestic ? prices.domestic : prices.abroad;
  if (!(await chargeBalance(tx, appId, price))) throw refuse('insufficientBalance');
}

const blockOf = ({ e164 }: Phone) => e164.slice(0, -blockDigits);

/**
 * Returns the digest of a network address. For IPv6, returns the digest of the /64 network, because
 * a host can use any address in it.
 */
export function ipAddressKey({ vault }: Pick<ApiDeps, 'vault'>, ipAddress: string): string {
  return vault.derive(`address ${networkOf(ipAddress)}`).slice(0, 22);
}

type PumpingDeps = Pick<ApiDeps, 'db' | 'clock' | 'metrics'>;

/**
 * Detects SMS pumping: an attacker who earns a share of the price of messages does not use the
 * codes (protocol/known-problems.md#sms-pumping). Counts the codes sent and used per app and
 * country. If hardly any code is used, suspends sending to that country for an hour and counts this
 * in a metric.
 */
export class PumpingGuard {
  readonly #deps: PumpingDeps;

  constructor(deps: PumpingDeps) {
    this.#deps = deps;
  }

  /** Throws error 154 while sending to this country is suspended. */
  async check(prefix: Prefix): Promise<void> {
    const { db, clock, metrics } = this.#deps;
    const nowMs = clock.now();
    const { sent, used, openUntil } = await readConversion(db, prefix, {
      from: new Date(nowMs - pumping.windowMs),
      // Newer codes may still be used.
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

  /** Updates the gauge of this process with all countries that are suspended. */
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
