import type { Outcome } from '../outcome.ts';
import { readReason } from '../reasons.ts';
import { type Code, codesOf, isCode } from '../texts/catalogue.ts';
import { reasonsByRemedy } from './reasons/remedy-codes.ts';

/** What an operator can do about recipients that a push did not reach. */
export interface Remedy {
  code: RemedyCode;
}

export type RemedyCode = Code<'remedies'>;

/** Codes of all remedies. */
export const remedyCodes: readonly string[] = codesOf('remedies');

/** Returns what can be done about recipients with an outcome and a stored reason. */
export const remedyOf = (outcome: Outcome, reason: string): Remedy => ({ code: codeOf(outcome, reason) });

const remedies = new Map<string, RemedyCode>(
  Object.entries(reasonsByRemedy).flatMap(([remedy, reasons]) =>
    isCode('remedies', remedy) ? reasons.map((reason) => [reason, remedy] as const) : [],
  ),
);

/** Statuses of HTTP that say more than that a request was refused. */
const byStatus: Readonly<Record<string, RemedyCode>> = {
  '401': 'credentials',
  '403': 'credentials',
  '407': 'unreachable',
  '413': 'tooLarge',
  '429': 'tooFast',
};

/**
 * Returns the remedy of the cause that a stored reason names; `vendorCode` for a reason that is not
 * in the catalogue.
 */
function ofReason(reason: string): RemedyCode {
  const { code, params } = readReason(reason);
  if (params.why !== undefined) return ofReason(params.why);
  const ofStatus = code === 'httpRefusal' ? byStatus[params.status ?? ''] : undefined;
  return ofStatus ?? remedies.get(code) ?? 'vendorCode';
}

function codeOf(outcome: Outcome, reason: string): RemedyCode {
  const found = ofReason(reason);
  switch (outcome) {
    case 'invalid_token':
      return found === 'wrongApp' ? 'wrongApp' : 'invalidToken';
    case 'expired':
      return found === 'vendorCode' ? 'expired' : found;
    case 'capped':
      return found === 'vendorCode' ? 'gatewayQuota' : found;
    case 'dropped':
      return found === 'cancelled' ? 'cancelled' : 'dropped';
    default:
      return found;
  }
}
