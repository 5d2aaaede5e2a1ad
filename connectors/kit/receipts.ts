/** Members that receipts of several gateways have, read with care: what is none is null or left out. */
import type { Json } from '../../shared/domain/json.ts';

/** Epoch milliseconds, as a number or a text. */
export function epochMsOf(value: Json | undefined): number | null {
  const time = typeof value === 'number' || typeof value === 'string' ? Number(value) : Number.NaN;
  return Number.isSafeInteger(time) && time > 0 ? time : null;
}

/** A text that says something: our id of the push, the gateway's of the message. */
export const textOf = (value: Json | undefined): string | null =>
  typeof value === 'string' && value !== '' ? value : null;

/** Addresses with commas between them. */
export const deviceTokensIn = (text: string): string[] =>
  text
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '');
