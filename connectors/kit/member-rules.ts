/**
 * Rules for the members of a message as data: name, check, expectation in words. Each vendor has such a table; messages are
 * checked before anything is sent. Pure.
 */
import type { Json, JsonObject } from '../../shared/domain/json.ts';
import { charsOf } from './android.ts';

/** Whether a member's value is valid. */
export type Check = (value: Json) => boolean;

export type MemberRule = readonly [name: string, isRight: Check, expected: string];

/** Returns the first violated rule as an error, or null. Absent members violate no rule. */
export function memberError(
  members: JsonObject,
  rules: readonly MemberRule[],
  connector: string,
): string | null {
  for (const [name, isRight, expected] of rules) {
    const value = members[name];
    if (value !== undefined && !isRight(value)) return `${name} of ${connector} must be ${expected}`;
  }
  return null;
}

export const oneOf =
  (...values: Json[]): Check =>
  (value) =>
    values.includes(value);

/** Checks for a text with a length in characters. */
export const isText =
  (from: number, to: number): Check =>
  (value) => {
    if (typeof value !== 'string') return false;
    const chars = charsOf(value);
    return chars >= from && chars <= to;
  };

/** Checks for a text that is not blank, with a maximum length in characters. */
export const isFilled =
  (most: number): Check =>
  (value) =>
    typeof value === 'string' && value.trim() !== '' && charsOf(value) <= most;

/** Checks for a text with a maximum size in bytes. */
export const isBytes =
  (most: number): Check =>
  (value) =>
    typeof value === 'string' && Buffer.byteLength(value) <= most;

/** Checks for a text that matches a pattern. */
export const isLike =
  (form: RegExp): Check =>
  (value) =>
    typeof value === 'string' && form.test(value);

/** Checks for a whole number in a range. */
export const isInt =
  (from: number, to: number): Check =>
  (value) =>
    typeof value === 'number' && Number.isInteger(value) && value >= from && value <= to;

export const isFlag: Check = (value) => typeof value === 'boolean';
