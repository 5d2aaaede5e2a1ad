import { z } from 'zod';

/**
 * Values that clients write as text. Clients that build JSON or a query by hand send `"1"` and
 * `"true"` instead of a number or boolean (protocol/push.md#plain-forms,
 * protocol/queries.md#flags).
 */

const flags = new Map<unknown, boolean>([
  [1, true],
  [0, false],
  ['1', true],
  ['0', false],
  ['true', true],
  ['false', false],
]);

/**
 * Returns a boolean from true, false, 1 and 0, also written as text in any case. Returns undefined
 * for other values.
 */
export function flagIn(value: unknown): boolean | undefined {
  if (typeof value === 'boolean') return value;
  return flags.get(typeof value === 'string' ? value.trim().toLowerCase() : value);
}

const decimal = /^[+-]?\d{1,15}(\.\d{1,15})?$/;

/** Returns a number, also written as decimal text. Returns undefined for other values. */
export function numberIn(value: unknown): number | undefined {
  if (typeof value === 'number') return value;
  return typeof value === 'string' && decimal.test(value.trim()) ? Number(value) : undefined;
}

/** Schema of a boolean query parameter. Parses to undefined if the parameter is absent or empty. */
export const flagQuery = z
  .preprocess(
    (value) => (typeof value === 'string' ? value.trim().toLowerCase() : value),
    z.enum(['true', 'false', '1', '0', ''], 'takes true, false, 1 or 0').optional(),
  )
  .transform((text) => (text ? flagIn(text) : undefined))
  .optional();
