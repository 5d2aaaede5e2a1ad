import { outcomes } from '../outcome.ts';
import { pushEventTypes } from '../pushes/push-events.ts';
import type { Edition, Plan } from './app.ts';

/** Usage of the service by an app on one day. */
export interface Usage {
  calls: number;
  peakCallsPerMinute: number;
  recipients: number;
}

/** Charges of one day, in units of `currency`. */
export interface Fees {
  calls: number;
  recipients: number;
  total: number;
  currency: 'CNY' | 'USD';
}

/**
 * Billing blocks: 600 calls per minute and 10,000 recipients. A started block counts as a whole
 * block.
 */
const callBlock = 600;
const recipientBlock = 10_000;

/**
 * Prices by edition (protocol/push.md#fees). Prices of recipients are in hundredths, so that sums
 * are exact.
 */
const prices = {
  home: {
    currency: 'CNY',
    firstBlock: 60,
    furtherBlock: 30,
    freeRecipients: 1_000_000,
    blockCents: 50,
  },
  international: {
    currency: 'USD',
    firstBlock: 20,
    furtherBlock: 10,
    freeRecipients: 100_000,
    blockCents: 2,
  },
} as const;

/**
 * Computes the fees of a day from its peak of calls per minute and its number of recipients.
 * Development apps are free.
 */
export function feesOf(app: { edition: Edition; plan: Plan }, usage: Usage): Fees {
  const price = prices[app.edition];
  const { currency } = price;
  if (app.plan === 'development') return { calls: 0, recipients: 0, total: 0, currency };
  const callBlocks = blocksAbove(usage.peakCallsPerMinute, callBlock, callBlock);
  const calls = callBlocks === 0 ? 0 : price.firstBlock + price.furtherBlock * (callBlocks - 1);
  const cents =
    blocksAbove(usage.recipients, price.freeRecipients, recipientBlock) * price.blockCents;
  return { calls, recipients: cents / 100, total: (calls * 100 + cents) / 100, currency };
}

function blocksAbove(used: number, free: number, block: number): number {
  return Math.max(0, Math.ceil((used - free) / block));
}

/** Numbers of a report: pushes, recipients by outcome, and devices by receipt. */
export const reportFigures = [
  'pushes',
  ...outcomes,
  'delivered',
  'clicked',
  ...pushEventTypes,
] as const;
export type ReportFigures = Record<(typeof reportFigures)[number], number>;
