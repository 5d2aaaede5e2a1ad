/**
 * Rules for the members of a message, told as data: its name, what is right of it, and what was expected in words. A
 * vendor's file is such a table with its source; what is wrong is told before anything is sent. Pure.
 */
import type { Json, JsonObject } from '../../shared/domain/json.ts';
import { charsOf } from './android.ts';

/** Whether a member has the form that the gateway takes. */
export type Check = (value: Json) => boolean;

export type MemberRule = readonly [name: string, isRight: Check, expected: string];

/** The first member that is not as its rule says, as a sentence; members that are absent break no rule. */
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

/** A text of so many characters. */
export const isText =
  (from: number, to: number): Check =>
  (value) => {
    if (typeof value !== 'string') return false;
    const chars = charsOf(value);
    return chars >= from && chars <= to;
  };

/** A text of at most so many characters, of which something can be seen. */
export const isFilled =
  (most: number): Check =>
  (value) =>
    typeof value === 'string' && value.trim() !== '' && charsOf(value) <= most;

/** A text of at most so many bytes. */
export const isBytes =
  (most: number): Check =>
  (value) =>
    typeof value === 'string' && Buffer.byteLength(value) <= most;

/** A text of this form. */
export const isLike =
  (form: RegExp): Check =>
  (value) =>
    typeof value === 'string' && form.test(value);

/** A whole number. */
export const isInt =
  (from: number, to: number): Check =>
  (value) =>
    typeof value === 'number' && Number.isInteger(value) && value >= from && value <= to;

export const isFlag: Check = (value) => typeof value === 'boolean';
