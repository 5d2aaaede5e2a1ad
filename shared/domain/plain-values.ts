import { z } from 'zod';

/**
 * Plain forms of values: clients that build JSON or a query from text write `"1"` and `"true"`
 * where a number or a boolean is meant (protocol/push.md#plain-forms, protocol/queries.md#flags).
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
 * Reads a boolean: true, false, 1 and 0, also as text in any case. Undefined for any other value.
 */
export function flagIn(value: unknown): boolean | undefined {
  if (typeof value === 'boolean') return value;
  return flags.get(typeof value === 'string' ? value.trim().toLowerCase() : value);
}

const decimal = /^[+-]?\d{1,15}(\.\d{1,15})?$/;

/** Reads a number, also as decimal text. Undefined for any other value. */
export function numberIn(value: unknown): number | undefined {
  if (typeof value === 'number') return value;
  return typeof value === 'string' && decimal.test(value.trim()) ? Number(value) : undefined;
}

/** Schema of a flag of a query; undefined where it is absent or empty. */
export const flagQuery = z
  .preprocess(
    (value) => (typeof value === 'string' ? value.trim().toLowerCase() : value),
    z.enum(['true', 'false', '1', '0', ''], 'takes true, false, 1 or 0').optional(),
  )
  .transform((text) => (text ? flagIn(text) : undefined))
  .optional();
