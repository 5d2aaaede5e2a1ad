/** Parsers for members of receipts; invalid values become null or are left out. */
import type { Json } from '../../shared/domain/json.ts';

/** Parses epoch milliseconds from a number or a text. */
export function epochMsOf(value: Json | undefined): number | null {
  const time = typeof value === 'number' || typeof value === 'string' ? Number(value) : Number.NaN;
  return Number.isSafeInteger(time) && time > 0 ? time : null;
}

/** Returns a text that is not empty, such as an id, or null. */
export const textOf = (value: Json | undefined): string | null =>
  typeof value === 'string' && value !== '' ? value : null;

/** Splits a comma-separated list of device tokens. */
export const deviceTokensIn = (text: string): string[] =>
  text
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '');
