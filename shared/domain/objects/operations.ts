import { type ErrorName, Refusal, refuse } from '../errors/errors.ts';
import { exactNumber, integerOf } from '../exact-numbers.ts';
import { isJsonObject, type Json, type JsonObject, unstorableText } from '../json.ts';
import { canonicalValue, isMemberName } from './typed-values.ts';

/**
 * Members of an object by name. A Map, so that names such as `__proto__` and `constructor` are
 * safe.
 */
export type Members = Map<string, Json>;

/** Writes a value or applies an operation at a path. `a.b` is `['a', 'b']`. */
export interface Write {
  path: string[];
  value: unknown;
  /** Name of the member as it was sent, if it differs from the path. */
  sentName?: string;
}

/** Maximum nesting of `Batch`. */
const maxBatchDepth = 3;

/**
 * Applies writes in order (protocol/objects.md#operations). A missing value counts as 0 or an empty
 * array. Throws error 111 if an operation is unknown, malformed or does not fit the type of the
 * value, and the errors of `canonicalValue`.
 */
export function applyWrites(members: Members, writes: Write[]): void {
  for (const { path, value, sentName = path.join('.') } of writes) {
    const [first = '', ...inner] = path;
    const next = named(sentName, value, () => changed(members.get(first), inner, value));
    if (next === undefined) members.delete(first);
    else members.set(first, next);
  }
}

/** Errors about a value, whose texts do not name its member. */
const ofValues = new Set<ErrorName>(['incorrectType', 'malformedPointer', 'forbiddenName']);

/** Adds the name of the member to an error about its value. */
function named<T>(member: string, value: unknown, change: () => T): T {
  try {
    return change();
  } catch (error) {
    const fault = unstorableText(value, member);
    if (fault) throw refuse('incorrectType', fault);
    throw error instanceof Refusal && ofValues.has(error.kind)
      ? refuse(error.kind, `${member}: ${error.message}`)
      : error;
  }
}

/** Returns `current` with the write applied at `path`; undefined if the value is deleted. */
function changed(current: Json | undefined, path: string[], write: unknown): Json | undefined {
  const [name, ...inner] = path;
  if (name === undefined)
    return isOperation(write) ? operated(current, write, 0) : canonicalValue(write);
  const parent = current ?? {};
  if (!isJsonObject(parent) || Object.hasOwn(parent, '__type'))
    throw refuse('incorrectType', 'A dotted key leads into a value that is no object.');
  const entries = new Map(Object.entries(parent));
  const next = changed(entries.get(name), inner, write);
  if (next === undefined) {
    // A delete in a missing object must not create the object.
    if (!entries.delete(name)) return current;
  } else entries.set(name, next);
  return Object.fromEntries(entries);
}

export function isOperation(value: unknown): value is JsonObject {
  return isJsonObject(value) && Object.hasOwn(value, '__op');
}

/** True if a value is the operation that removes a member. */
export const isDeletion = (value: unknown): boolean =>
  isOperation(value) && value.__op === 'Delete';

function operated(
  current: Json | undefined,
  operation: JsonObject,
  depth: number,
): Json | undefined {
  switch (operation.__op) {
    case 'Delete':
      return undefined;
    case 'Increment':
      return sum(current, numberOf(operation.amount ?? 1));
    case 'Decrement':
      return sum(current, -numberOf(operation.amount ?? 1));
    case 'Add':
      return [...listOf(current), ...objectsOf(operation)];
    case 'AddUnique':
      return unique(listOf(current), objectsOf(operation));
    case 'Remove':
      return without(listOf(current), objectsOf(operation));
    case 'BitAnd':
      return bits(current, operation.value, (a, b) => a & b);
    case 'BitOr':
      return bits(current, operation.value, (a, b) => a | b);
    case 'BitXor':
      return bits(current, operation.value, (a, b) => a ^ b);
    case 'Batch':
      return batch(current, operation, depth);
    case 'AddRelation':
    case 'RemoveRelation':
      throw refuse('incorrectType', 'This service keeps no relations: use an array of pointers.');
    default:
      throw refuse('incorrectType', 'This operation is not supported.');
  }
}

function batch(current: Json | undefined, { ops }: JsonObject, depth: number): Json | undefined {
  if (!Array.isArray(ops) || depth >= maxBatchDepth)
    throw refuse('incorrectType', 'Batch takes a list of ops.');
  return ops.reduce<Json | undefined>((value, operation) => {
    if (!isOperation(operation)) throw refuse('incorrectType', 'Batch takes a list of ops.');
    return operated(value, operation, depth + 1);
  }, current);
}

function numberOf(value: Json | undefined): number | bigint {
  if (typeof value === 'bigint') return value;
  if (typeof value !== 'number' || !Number.isFinite(value))
    throw refuse('incorrectType', 'The amount must be a number.');
  return value;
}

/** Adds integers exactly, also beyond 2^53. Fractions are added as doubles. */
function sum(current: Json | undefined, amount: number | bigint): number | bigint {
  const value = numericValue(current);
  const [a, b] = [integerOf(String(value)), integerOf(String(amount))];
  if (a !== undefined && b !== undefined) return inRange(exactNumber(String(a + b)));
  const total = Number(value) + Number(amount);
  return inRange(Math.abs(total) <= Number.MAX_SAFE_INTEGER ? total : undefined);
}

function inRange(number: number | bigint | undefined): number | bigint {
  if (number === undefined) throw refuse('incorrectType', 'A number is out of range.');
  return number;
}

/**
 * Returns the value as a number. Null counts as missing, because clients store null to empty a
 * member.
 */
function numericValue(current: Json | undefined): number | bigint {
  if (current === undefined || current === null) return 0;
  if (typeof current !== 'number' && typeof current !== 'bigint')
    throw refuse('incorrectType', 'Only numbers can be counted.');
  return current;
}

function listOf(current: Json | undefined): Json[] {
  if (current === undefined || current === null) return [];
  if (!Array.isArray(current))
    throw refuse('incorrectType', 'Only arrays can be added to or removed from.');
  return current;
}

function objectsOf({ objects }: JsonObject): Json[] {
  if (!Array.isArray(objects)) throw refuse('incorrectType', 'objects must be an array.');
  return objects.map((item) => canonicalValue(item));
}

function unique(list: Json[], more: Json[]): Json[] {
  const known = new Set(list.map(stableText));
  const added = more.filter((item) => {
    const text = stableText(item);
    const isNew = !known.has(text);
    known.add(text);
    return isNew;
  });
  return [...list, ...added];
}

function without(list: Json[], removed: Json[]): Json[] {
  const texts = new Set(removed.map(stableText));
  return list.filter((item) => !texts.has(stableText(item)));
}

/** Returns a JSON text that is equal for equal values, whatever the order of their members. */
export function stableText(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(stableText).join()}]`;
  if (!isJsonObject(value)) return JSON.stringify(value);
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${entries.map(([name, member]) => `${JSON.stringify(name)}:${stableText(member)}`).join()}}`;
}

/** Applies a bit operation on 64 bits, like LeanCloud. */
function bits(
  current: Json | undefined,
  operand: Json | undefined,
  operate: (a: bigint, b: bigint) => bigint,
): number | bigint {
  const [a, b] = [numericValue(current), numberOf(operand)].map((value) =>
    integerOf(String(value)),
  );
  if (a === undefined || b === undefined || !is64Bit(a) || !is64Bit(b))
    throw refuse('incorrectType', 'Bit operations take whole numbers of 64 bits.');
  return inRange(exactNumber(String(operate(a, b))));
}

const is64Bit = (value: bigint): boolean => BigInt.asIntN(64, value) === value;

const maxNameParts = 8;
const innerName = /^[^$.\p{Cc}]{1,128}$/u;

/**
 * Splits the name of a member, such as `a.b.c`, into its parts (protocol/objects.md#dotted-names).
 * Throws error 105 if the name is invalid.
 */
export function memberPath(name: string): [first: string, ...inner: string[]] {
  const [first = '', ...inner] = name.split('.');
  if (
    !isMemberName(first) ||
    inner.length > maxNameParts ||
    !inner.every((part) => innerName.test(part))
  )
    throw refuse('invalidKeyName');
  return [first, ...inner];
}
