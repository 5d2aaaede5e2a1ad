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
  if (name === undefined) {
    if (!isOperation(write)) return canonicalValue(write);
    const operand = new Operand(current);
    operate(operand, write, 0);
    return operand.value;
  }
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

/**
 * Value that operations change one after the other. A `Batch` may contain thousands of operations
 * of an array, so the array is not copied for each of them.
 */
class Operand {
  #value: Json | undefined;
  #list: ListEdit | undefined;

  constructor(value: Json | undefined) {
    this.#value = value;
  }

  get value(): Json | undefined {
    if (this.#list) this.value = this.#list.items;
    return this.#value;
  }

  set value(value: Json | undefined) {
    this.#value = value;
    this.#list = undefined;
  }

  get list(): ListEdit {
    this.#list ??= new ListEdit(listOf(this.#value));
    return this.#list;
  }
}

/** Array that operations change. Its items are found by their `stableText`. */
class ListEdit {
  /** A removed item is undefined. */
  readonly #items: (Json | undefined)[];
  /** Positions of the items by their text. Undefined until an operation searches for an item. */
  #positions: Map<string, number[]> | undefined;

  constructor(items: readonly Json[]) {
    this.#items = [...items];
  }

  get items(): Json[] {
    return this.#items.filter((item) => item !== undefined);
  }

  add(items: readonly Json[]): void {
    for (const item of items) {
      if (this.#positions) place(this.#positions, stableText(item), this.#items.length);
      this.#items.push(item);
    }
  }

  addUnique(items: readonly Json[]): void {
    for (const item of items) if (!this.#byText().has(stableText(item))) this.add([item]);
  }

  remove(items: readonly Json[]): void {
    for (const text of items.map(stableText)) {
      for (const position of this.#byText().get(text) ?? []) this.#items[position] = undefined;
      this.#byText().delete(text);
    }
  }

  #byText(): Map<string, number[]> {
    if (this.#positions) return this.#positions;
    const positions = new Map<string, number[]>();
    for (const [position, item] of this.#items.entries())
      if (item !== undefined) place(positions, stableText(item), position);
    this.#positions = positions;
    return positions;
  }
}

function place(positions: Map<string, number[]>, text: string, position: number): void {
  const known = positions.get(text);
  if (known) known.push(position);
  else positions.set(text, [position]);
}

/** Applies an operation to its operand. */
function operate(operand: Operand, operation: JsonObject, depth: number): void {
  switch (operation.__op) {
    case 'Delete':
      operand.value = undefined;
      return;
    case 'Increment':
      operand.value = sum(operand.value, numberOf(operation.amount ?? 1));
      return;
    case 'Decrement':
      operand.value = sum(operand.value, -numberOf(operation.amount ?? 1));
      return;
    case 'Add':
      operand.list.add(objectsOf(operation));
      return;
    case 'AddUnique':
      operand.list.addUnique(objectsOf(operation));
      return;
    case 'Remove':
      operand.list.remove(objectsOf(operation));
      return;
    case 'BitAnd':
      operand.value = bits(operand.value, operation.value, (a, b) => a & b);
      return;
    case 'BitOr':
      operand.value = bits(operand.value, operation.value, (a, b) => a | b);
      return;
    case 'BitXor':
      operand.value = bits(operand.value, operation.value, (a, b) => a ^ b);
      return;
    case 'Batch':
      operateBatch(operand, operation, depth);
      return;
    case 'AddRelation':
    case 'RemoveRelation':
      throw refuse('incorrectType', 'This service keeps no relations: use an array of pointers.');
    default:
      throw refuse('incorrectType', 'This operation is not supported.');
  }
}

function operateBatch(operand: Operand, { ops }: JsonObject, depth: number): void {
  if (!Array.isArray(ops) || depth >= maxBatchDepth)
    throw refuse('incorrectType', 'Batch takes a list of ops.');
  for (const operation of ops) {
    if (!isOperation(operation)) throw refuse('incorrectType', 'Batch takes a list of ops.');
    operate(operand, operation, depth + 1);
  }
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
