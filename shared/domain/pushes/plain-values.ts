/**
 * Plain forms of values in the content of a push (protocol/push.md#plain-forms): clients that build
 * JSON from text write `"1"` and `"true"` where a gateway takes a number or a boolean. Such a value
 * is converted; gateways refuse it.
 */
import type { Json } from '../json.ts';

const flags = new Map<Json, boolean>([
  [1, true],
  [0, false],
  ['1', true],
  ['0', false],
  ['true', true],
  ['false', false],
]);

/** Reads a boolean: true, false, 1 and 0, also as text. Undefined for any other value. */
export function flagIn(value: Json | undefined): boolean | undefined {
  if (typeof value === 'boolean' || value === undefined) return value;
  return flags.get(typeof value === 'string' ? value.trim().toLowerCase() : value);
}

const decimal = /^[+-]?\d{1,15}(\.\d{1,15})?$/;

/** Reads a number, also as decimal text. Undefined for any other value. */
export function numberIn(value: Json | undefined): number | undefined {
  if (typeof value === 'number') return value;
  return typeof value === 'string' && decimal.test(value.trim()) ? Number(value) : undefined;
}
