/**
 * Tables of the members of a vendor's request: name, place and type. A table sorts the vendor's
 * object of a push, so that each member is sent where the vendor expects it
 * (protocol/push.md#vendor-objects). Pure.
 */
import { isJsonObject, type Json, type JsonObject } from '../../shared/domain/json.ts';
import { reasonAs } from '../../shared/domain/reasons.ts';
import type { Rendering } from '../contract/connector.ts';
import { firstChars } from './android.ts';
import { unfitMember, type ValueType } from './values.ts';

/** Member of a vendor's request. */
export interface Member {
  readonly name: string;
  /** Dotted path of the object that contains the member; empty for the request itself. */
  readonly parent: string;
  /** `part` for an object whose members are rows of the table. */
  readonly type: ValueType;
}

/** Type of an object whose members are rows of the table. It has no other members. */
export const part: ValueType = {
  expected: 'an object',
  read: (value) => (isJsonObject(value) ? value : undefined),
};

/** Returns rows for the members of one object. */
export const membersAt = (parent: string, types: Readonly<Record<string, ValueType>>): Member[] =>
  Object.entries(types).map(([name, type]) => ({ name, parent, type }));

export interface TableOptions {
  /**
   * Objects whose members callers may also write at the top of the vendor's object. If several of
   * these objects have a member of this name, the first object gets it.
   */
  flat: readonly string[];
  /**
   * What to do with members that are not in the table. `refuse` returns an error with the nearest
   * known name. `parent` moves unknown members at the top to this object; unknown members of other
   * objects stay.
   */
  unknown: 'refuse' | { parent: string };
  /** True if names may be written in snake case and camel case. */
  isAnyCase?: boolean;
  /** Other names of members: alias to name. */
  aliases?: Readonly<Record<string, string>>;
}

export interface ArrangeOptions {
  /** Object of the request that the given object belongs to; the request itself by default. */
  parent?: string;
  /**
   * Objects at the top of the vendor's object that are moved: name of the object, and its path in
   * the request.
   */
  moved?: Readonly<Record<string, string>>;
  /** Refuses members that are not in the table, as `unknown: 'refuse'` does. */
  isStrict?: boolean;
}

const notOfObject = '__proto__';

/** Maximum length of a name in errors. Longer names are not compared with known names. */
const maxNameChars = 40;
const shortName = (name: string): string =>
  name.length > maxNameChars ? `${firstChars(name, maxNameChars)}…` : name;

/** Members of a vendor's request. */
export class MemberTable {
  readonly members: readonly Member[];
  readonly #options: TableOptions;
  readonly #byPath: ReadonlyMap<string, Member>;
  /** Names of members by alternative spelling. */
  readonly #spellings: ReadonlyMap<string, string>;
  readonly #parents: ReadonlySet<string>;

  constructor(members: readonly Member[], options: TableOptions) {
    this.members = members;
    this.#options = options;
    this.#byPath = new Map(members.map((member) => [join(member.parent, member.name), member]));
    const names = options.isAnyCase ? members.map(({ name }) => name) : [];
    this.#spellings = new Map([
      ...names.map((name): [string, string] => [camelCase(name), name]),
      ...names.map((name): [string, string] => [snakeCase(name), name]),
      ...Object.entries(options.aliases ?? {}),
    ]);
    this.#parents = new Set(members.map(({ parent }) => parent));
  }

  /** True if an object of the request has a member of this name. */
  has(parent: string, name: string): boolean {
    return this.#byPath.has(join(parent, this.#nameOf(name)));
  }

  /** True if callers may write a member of this name at the top of the vendor's object. */
  hasAtTop(name: string): boolean {
    return ['', ...this.#options.flat].some((parent) => this.has(parent, name));
  }

  /**
   * Sorts the members of a vendor's object into the request, in the vendor's form. `path` is the
   * key of the object in the push, for errors. A null stays, so that a later merge removes the
   * member.
   */
  arrange(object: JsonObject, path: string, options: ArrangeOptions = {}): Rendering<JsonObject> {
    const { isStrict = false, parent = '', moved = {} } = options;
    try {
      return { ok: true, payload: this.#read(object, { isStrict, parent, path, moved }) };
    } catch (error) {
      if (error instanceof MemberError) return { ok: false, error: error.message };
      throw error;
    }
  }

  #read(object: JsonObject, at: Position): JsonObject {
    const sent = Object.entries(object).filter(([name]) => name !== notOfObject);
    return merged(sent.map(([name, value]) => this.#readOne(name, value, at)));
  }

  /**
   * Converts one member. Returns an object that contains the member at its path below `at.parent`.
   */
  #readOne(sent: string, value: Json, at: Position): JsonObject {
    const name = this.#nameOf(sent);
    const path = `${at.path}.${shortName(sent)}`;
    const moved = at.moved && Object.hasOwn(at.moved, name) ? at.moved[name] : undefined;
    if (moved !== undefined && isJsonObject(value)) {
      const [last = '', ...outer] = moved.split('.').reverse();
      return nested(
        outer.reverse().join('.'),
        last,
        this.#read(value, { isStrict: at.isStrict, parent: moved, path }),
      );
    }
    const parent = this.#parentOf(name, at);
    if (parent === undefined)
      throw new MemberError(
        reasonAs(`${path}: ${this.#unknown(name, at.parent)}`, 'memberUnfit', { member: path }),
      );
    const member = this.#byPath.get(join(parent, name));
    const known =
      value === null || !member ? value : this.#valueOf(member, value, path, at.isStrict);
    return nested(parent.slice(at.parent.length).replace(/^\./, ''), name, known);
  }

  #valueOf(member: Member, value: Json, path: string, isStrict: boolean): Json {
    const known = member.type.read(value);
    if (known === undefined)
      throw new MemberError(unfitMember(path, `must be ${member.type.expected}`));
    if (!isJsonObject(known)) return known;
    if (member.type.values) return valuesOf(known, member.type.values, path);
    const parent = join(member.parent, member.name);
    return member.type === part || this.#parents.has(parent)
      ? this.#read(known, { isStrict, parent, path })
      : known;
  }

  /** Returns the object that a member belongs to; undefined if the member is refused. */
  #parentOf(name: string, { isStrict, parent }: Position): string | undefined {
    const { flat, unknown } = this.#options;
    const parents = parent === '' ? ['', ...flat] : [parent];
    const known = parents.find((one) => this.#byPath.has(join(one, name)));
    if (known !== undefined) return known;
    if (isStrict || unknown === 'refuse') return undefined;
    return parent === '' ? unknown.parent : parent;
  }

  /** Returns the error text for an unknown member, with the member that was probably meant. */
  #unknown(name: string, parent: string): string {
    const elsewhere = this.members
      .filter((member) => member.name === name)
      .map((member) => member.parent);
    if (elsewhere.length > 0)
      return `there is no such member; ${name} is a member of ${elsewhere.map((one) => one || 'the message').join(', ')}`;
    const [nearest] = (name.length > maxNameChars ? [] : this.members)
      .map((member) => ({
        member,
        distance: editDistance(member.name, name) + (member.parent === parent ? 0 : 0.5),
      }))
      .filter(({ distance }) => distance < Math.max(2, name.length / 3))
      .sort((one, other) => one.distance - other.distance);
    return nearest
      ? `there is no such member; the nearest is ${join(nearest.member.parent, nearest.member.name)}`
      : `there is no such member${this.#membersAt(parent)}`;
  }

  #membersAt(parent: string): string {
    const names = this.members.filter((member) => member.parent === parent).map(({ name }) => name);
    return names.length === 0 ? '' : `; known are ${names.join(', ')}`;
  }

  #nameOf(sent: string): string {
    return this.#spellings.get(sent) ?? sent;
  }
}

function valuesOf(object: JsonObject, type: ValueType, path: string): JsonObject {
  const values = Object.entries(object).map(([name, value]): [string, Json] => {
    const known = type.read(value);
    if (known === undefined)
      throw new MemberError(unfitMember(`${path}.${shortName(name)}`, `must be ${type.expected}`));
    return [name, known];
  });
  return Object.fromEntries(values);
}

/**
 * Path of an object in the request (`parent`), and the path of the same object in the push
 * (`path`).
 */
interface Position {
  isStrict: boolean;
  parent: string;
  path: string;
  moved?: Readonly<Record<string, string>>;
}

class MemberError extends Error {
  override readonly name = 'MemberError';
}

const join = (parent: string, name: string): string => (parent === '' ? name : `${parent}.${name}`);

const camelCase = (name: string): string =>
  name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
const snakeCase = (name: string): string =>
  name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

function nested(parent: string, name: string, value: Json): JsonObject {
  const inner: JsonObject = Object.fromEntries([[name, value]]);
  return parent
    .split('.')
    .filter(Boolean)
    .reduceRight<JsonObject>((object, one) => ({ [one]: object }), inner);
}

/** Merges objects; the last one wins. Unlike in `deepMerge`, its nulls stay. Takes linear time. */
export function merged(objects: readonly JsonObject[]): JsonObject {
  /** By name, the value, or the objects to merge. */
  const members = new Map<string, Json[]>();
  for (const object of objects)
    for (const [name, value] of Object.entries(object)) {
      const known = members.get(name);
      if (known && isJsonObject(known[0]) && isJsonObject(value)) known.push(value);
      else members.set(name, [value]);
    }
  return Object.fromEntries(
    [...members].map(([name, values]): [string, Json] => [
      name,
      values.length > 1 ? merged(values.filter(isJsonObject)) : (values[0] ?? null),
    ]),
  );
}

/** Returns the edit distance of two names (Levenshtein). */
function editDistance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, i) => i);
  for (const [i, letter] of [...one].entries()) {
    const next = [i + 1];
    for (const [j, otherLetter] of [...other].entries())
      next.push(
        Math.min(
          (next[j] ?? 0) + 1,
          (row[j + 1] ?? 0) + 1,
          (row[j] ?? 0) + (letter === otherLetter ? 0 : 1),
        ),
      );
    row = next;
  }
  return row.at(-1) ?? 0;
}
