import { refuse } from '../../domain/errors/errors.ts';
import { isJsonObject, type Json, type JsonObject } from '../../domain/json.ts';
import { parseNames } from '../parse/operators.ts';
import { type ClassSchema, parsePath } from '../schema.ts';

/** `include=a,b.c` as a tree of names. The tree is resolved level by level. */
export type Include = Map<string, Include>;

/** Maximum number of names in `include`. */
export const maxIncludes = 10;
/** Maximum number of names in a path. Each level may need one query per class. */
const maxDepth = 3;
/** Maximum number of pointers that one reply resolves. This also limits cycles. */
const maxPointers = 5000;

/**
 * Parses `include` (protocol/queries.md#include). Ignores members that cannot contain pointers, as
 * LeanCloud does. Throws error 102 if the list is malformed or too large, error 105 if a
 * name is invalid.
 */
export function parseInclude(value: unknown, cls: ClassSchema): Include {
  const include: Include = new Map();
  if (value === undefined || value === '') return include;
  const names = parseNames(value, 'include', maxIncludes);
  for (const name of names) {
    const path = parsePath(name);
    if (!mayHoldPointers(path, cls)) continue;
    if (path.length > maxDepth)
      throw refuse('invalidQuery', `include goes at most ${maxDepth} names deep.`);
    add(include, path);
  }
  return include;
}

/**
 * Returns whether a member can contain pointers. Columns contain texts, numbers and times, and
 * hidden members never appear in replies.
 */
const mayHoldPointers = ([first = '']: string[], cls: ClassSchema): boolean =>
  !cls.columns.has(first) && !cls.hidden?.has(first);

function add(include: Include, [name, ...rest]: string[]): void {
  if (name === undefined) return;
  const inner = include.get(name) ?? new Map();
  include.set(name, inner);
  add(inner, rest);
}

/** Source of the objects that pointers refer to. */
export interface IncludeSource {
  /** Finds the documents with these ids that the viewer may read, by one query. */
  find(className: string, objectIds: ReadonlySet<string>): Promise<ReadonlyMap<string, JsonObject>>;
  /** Maximum length of all included documents together, in characters of JSON. */
  maxLength: number;
}

/** Document with pointers to resolve. It is a copy, so it may be changed. */
interface PendingDocument {
  document: JsonObject;
  include: Include;
}

/**
 * Returns the documents with resolved pointers. A resolved pointer is
 * `{"__type":"Pointer","className",…}` with all members of the object
 * (protocol/queries.md#include). Pointers to missing or invisible objects stay unchanged. Throws
 * error 116 if a limit is exceeded.
 */
export async function resolveIncludes(
  documents: JsonObject[],
  include: Include,
  source: IncludeSource,
): Promise<JsonObject[]> {
  const copies = include.size === 0 ? documents : documents.map((document) => ({ ...document }));
  const filling = new IncludeResolver(source);
  let open = copies.map((document) => ({ document, include })).filter(hasNames);
  while (open.length > 0) {
    await filling.find(open);
    open = open.flatMap((one) => filling.fill(one)).filter(hasNames);
  }
  return copies;
}

/** Same as `resolveIncludes`, for one document. */
export async function resolveInclude(
  document: JsonObject,
  include: Include,
  source: IncludeSource,
): Promise<JsonObject> {
  return (await resolveIncludes([document], include, source))[0] ?? document;
}

const hasNames = ({ include }: PendingDocument): boolean => include.size > 0;

/** Resolves the pointers of one reply and counts them against the limits. */
class IncludeResolver {
  readonly #source: IncludeSource;
  readonly #found = new Map<string, Map<string, JsonObject>>();
  /** Lengths of included documents. Undefined while a document is included only once. */
  readonly #lengths = new Map<JsonObject, number | undefined>();
  #pointers = 0;
  #length = 0;

  constructor(source: IncludeSource) {
    this.#source = source;
  }

  /**
   * Loads the objects that the documents point to, unless they are loaded already. Uses one query
   * per class.
   */
  async find(open: PendingDocument[]): Promise<void> {
    const idsByClass = new Map<string, Set<string>>();
    for (const { document, include } of open) this.#collect(document, include, idsByClass);
    for (const [className, objectIds] of idsByClass) {
      const loaded = this.#found.get(className) ?? new Map();
      this.#found.set(
        className,
        new Map([...loaded, ...(await this.#source.find(className, objectIds))]),
      );
    }
  }

  #collect(object: JsonObject, include: Include, idsByClass: Map<string, Set<string>>): void {
    for (const [name, inner] of include)
      for (const value of itemsOf(memberOf(object, name))) {
        const pointer = asPointer(value);
        if (!pointer) {
          if (isPlain(value)) this.#collect(value, inner, idsByClass);
          continue;
        }
        const { className, objectId } = pointer;
        this.#pointers += 1;
        if (this.#pointers > maxPointers) throw includeTooLarge();
        if (this.#found.get(className)?.has(objectId)) continue;
        idsByClass.set(className, (idsByClass.get(className) ?? new Set()).add(objectId));
      }
  }

  /** Resolves the pointers of a document. Returns the included documents for the next level. */
  fill({ document, include }: PendingDocument): PendingDocument[] {
    const next: PendingDocument[] = [];
    Object.assign(document, this.#filledMembers(document, include, next));
    return next;
  }

  #filledMembers(object: JsonObject, include: Include, next: PendingDocument[]): JsonObject {
    const members = [...include].flatMap(([name, inner]): [string, Json][] => {
      const value = memberOf(object, name);
      return value === undefined ? [] : [[name, this.#filled(value, inner, next)]];
    });
    return Object.fromEntries(members);
  }

  #filled(value: Json, include: Include, next: PendingDocument[]): Json {
    if (Array.isArray(value)) return value.map((item) => this.#filled(item, include, next));
    const pointer = asPointer(value);
    if (!pointer)
      return isPlain(value) ? { ...value, ...this.#filledMembers(value, include, next) } : value;
    const { className, objectId } = pointer;
    const found = this.#found.get(className)?.get(objectId);
    if (!found) return value;
    this.#count(found);
    const document = { ...found, __type: 'Pointer', className };
    next.push({ document, include });
    return document;
  }

  /** Counts repeated inclusions. The first inclusion was counted when the document was read. */
  #count(document: JsonObject): void {
    const isRepeat = this.#lengths.has(document);
    const length = isRepeat
      ? (this.#lengths.get(document) ?? JSON.stringify(document).length)
      : undefined;
    this.#lengths.set(document, length);
    this.#length += length ?? 0;
    if (this.#length > this.#source.maxLength) throw includeTooLarge();
  }
}

const includeTooLarge = () =>
  refuse('tooLarge', 'Too much is to be included: ask for fewer rows, or include fewer names.');

const memberOf = (object: JsonObject, name: string): Json | undefined =>
  Object.hasOwn(object, name) ? object[name] : undefined;

/**
 * Returns the items of a list, including the items of nested lists. Returns any other value as a
 * single item.
 */
function itemsOf(value: Json | undefined): Json[] {
  if (value === undefined) return [];
  return Array.isArray(value) ? value.flatMap(itemsOf) : [value];
}

function asPointer(value: Json): { className: string; objectId: string } | undefined {
  if (!isJsonObject(value) || value.__type !== 'Pointer') return undefined;
  const { className, objectId } = value;
  return typeof className === 'string' && typeof objectId === 'string'
    ? { className, objectId }
    : undefined;
}

const isPlain = (value: Json): value is JsonObject =>
  isJsonObject(value) && !Object.hasOwn(value, '__type');
