import { isIPv4, isIPv6 } from 'node:net';
import type { Handle } from '../../../shared/db/pool.ts';
import {
  type Budget,
  chargeBalance,
  insertSend,
  readNumberHistory,
  takeBudget,
} from '../../../shared/db/tables/messages/send-budgets.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { effectiveOptions } from '../../../shared/domain/apps/app.ts';
import { Refusal, refuse } from '../../../shared/domain/errors/errors.ts';
import { isDomesticPhone, type Phone } from '../../../shared/domain/messages/phone.ts';
import {
  blockPerHour,
  dayMs,
  freeMessages,
  hourMs,
  minGapOfAnyMs,
  numberLimits,
  prices,
  type SendKind,
} from '../../../shared/domain/messages/sms.ts';
import type { ApiDeps } from '../deps.ts';

/** What is spent by one message. */
export interface CountedMessage {
  app: App;
  phone: Phone;
  kind: SendKind;
  sign: string;
  /** Undefined for a caller whose address says nothing of whom it serves: a server with the master key. */
  ipAddress: string | undefined;
}

/** Longer than any app lives. */
const foreverMs = 100 * 365 * dayMs;
/** Digits at the end of a number that its block leaves open. */
const blockDigits = 4;

/**
 * Counts a message against every budget it falls under, as part of `tx`: refused by one, it is counted by none.
 * Throws 1 within 10 seconds, 601 within a number's other limits, 154 for those of address, block and app
 * (protocol/codes.md#limits, protocol/admin-api.md#options-of-an-app).
 */
export async function spendBudgets(deps: ApiDeps, tx: Handle, spending: CountedMessage): Promise<void> {
  const { app, phone, kind, sign, ipAddress } = spending;
  const now = new Date(deps.clock.now());
  const { appId } = app;
  await spendNumber(tx, spending, now);
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
  for (const budget of budgets) if (!(await takeBudget(tx, budget, now))) throw refuse('thresholdExceeded');
  await insertSend(tx, { appId, number: phone.e164, kind, sign }, now);
}

async function spendNumber(tx: Handle, { app, phone, kind, sign }: CountedMessage, now: Date): Promise<void> {
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

/** Pays for a message: the first hundred at home are free, the rest is taken off the balance. Throws 160. */
export async function chargeMessage(
  { clock }: Pick<ApiDeps, 'clock'>,
  tx: Handle,
  { app, phone }: Pick<CountedMessage, 'app' | 'phone'>,
): Promise<void> {
  const { appId, plan } = app;
  const isHome = isDomesticPhone(phone);
  const free: Budget = { appId, scope: 'free', key: '', limit: freeMessages, windowMs: foreverMs };
  if (isHome && (await takeBudget(tx, free, new Date(clock.now())))) return;
  const price = isHome ? prices.domestic : prices.abroad;
  if (!(await chargeBalance(tx, appId, price, effectiveOptions(plan, {}).smsBalance)))
    throw refuse('insufficientBalance');
}

const blockOf = ({ e164 }: Phone) => e164.slice(0, -blockDigits);

/** An address as a digest; of IPv6 the network, since a host has as many addresses there as it likes. */
export function ipAddressKey({ vault }: Pick<ApiDeps, 'vault'>, ipAddress: string): string {
  return vault.derive(`address ${networkOf(ipAddress)}`).slice(0, 22);
}

function networkOf(ipAddress: string): string {
  const mapped = ipAddress.replace(/^::ffff:(?=\d+\.)/i, '');
  if (isIPv4(mapped) || !isIPv6(mapped)) return mapped;
  const [head = '', tail] = mapped.split('%')[0]?.split('::') ?? [];
  const first = head.split(':').filter((part) => part !== '');
  const last = tail?.split(':').filter((part) => part !== '') ?? [];
  const zeros =
    tail === undefined ? [] : Array<string>(Math.max(0, 8 - first.length - last.length)).fill('0');
  return [...first, ...zeros, ...last]
    .slice(0, 4)
    .map((part) => Number.parseInt(part, 16).toString(16))
    .join(':');
}
