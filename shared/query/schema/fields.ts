import { refuse } from '../../domain/errors/errors.ts';
import { isMemberName } from '../../domain/objects/typed-values.ts';

export interface TextColumn {
  type: 'text';
  sql: string;
  /** Column or expression of the original spelling, if it differs; sorting and patterns use it. */
  spelling?: string;
  /** Converts a client's value to its stored form. */
  canonical?: (value: string) => string;
  /** Returns the stored values that are equal to a client's value; absent: the value alone. */
  namesOf?: (value: string) => readonly string[];
  /** Allows `{"name": value}` only (protocol/queries.md#equality-only). */
  isEqualityOnly?: boolean;
}

export interface PlainColumn {
  type: 'boolean' | 'integer' | 'time';
  sql: string;
}

export interface TextArrayColumn {
  type: 'textArray';
  sql: string;
}

/** A relation of a role: pairs in a separate table. All names are constants, never a client's text. */
export interface RelationColumn {
  type: 'relation';
  /** Class of the members. */
  className: string;
  /** Table of the pairs, with the columns `role_id` and `member`. */
  table: 'role_user' | 'role_role';
  member: 'user_id' | 'child_id';
}

/** Column of the class's own table. */
export type OwnColumn = TextColumn | PlainColumn | TextArrayColumn;

/** Column of a class's member. `sql` is a constant, never a client's text. */
export type Column = OwnColumn | RelationColumn;

/** Schema of a class for the compiler. Members without a column are in the jsonb column. */
export interface ClassSchema {
  name: string;
  /** Table of the rows. */
  table: string;
  /** SQL of the ACL of a row; undefined for a class without ACLs. */
  acl: string | undefined;
  /** The jsonb column of custom members. */
  jsonColumn: string;
  /** Public member names, aliases included, and their columns. */
  columns: ReadonlyMap<string, Column>;
  /** Members that conditions and sort orders may not name, so that no caller can guess their values. */
  hidden?: ReadonlySet<string>;
}

/** Member that a condition, a sort order or a projection names. */
export type Field = ValueField | { name: string; column: RelationColumn };

/** Field with a value of its own; excludes relations. */
export type ValueField = { name: string; column: OwnColumn } | { name: string; path: string[] };

/** Returns whether a field is a relation. */
export const isRelation = (field: Field): field is { name: string; column: RelationColumn } =>
  'column' in field && field.column.type === 'relation';

/** Limit of a whole dotted name. */
const maxNameLength = 256;
const innerName = /^[A-Za-z0-9_-]{1,128}$/;

/**
 * Splits `a.b.c` and checks each part. Throws 105 for a malformed or private name: private members begin with `_`
 * and cannot be filtered, sorted or projected (develop/architecture.md#queries).
 */
export function parsePath(name: string): string[] {
  const [first = '', ...inner] = name.split('.');
  const isValid =
    name.length <= maxNameLength &&
    isMemberName(first) &&
    inner.length <= 8 &&
    inner.every((part) => innerName.test(part));
  if (!isValid) throw refuse('invalidKeyName');
  return [first, ...inner];
}

/** Returns the field of a name. Throws 105 as `parsePath`, for a hidden member, and for a path into a column. */
export function resolveField(name: string, cls: ClassSchema): Field {
  const path = parsePath(name);
  if (cls.hidden?.has(path[0] ?? '')) throw refuse('invalidKeyName', `${path[0]} cannot be queried.`);
  const column = cls.columns.get(path[0] ?? '');
  if (!column) return { name, path };
  if (path.length > 1) throw refuse('invalidKeyName', `${path[0]} has no members.`);
  return column.type === 'relation' ? { name, column } : { name, column };
}
