import { refuse } from '../../domain/errors/errors.ts';
import { isMemberName } from '../../domain/objects/typed-values.ts';

export interface TextColumn {
  type: 'text';
  sql: string;
  /** Where the spelling it was stored with is kept, if that differs; order and patterns look there. */
  spelling?: string;
  /** The stored form of a value that a client asks for. */
  canonical?: (value: string) => string;
  /** Only `{"name": value}` is answered (protocol/queries.md#equality-only). */
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

/** A relation of a role: pairs in a table of their own. All names are ours, never a client's. */
export interface RelationColumn {
  type: 'relation';
  /** Class of the members. */
  className: string;
  /** Table of the pairs: `role_id` and the column `member`. */
  table: 'role_user' | 'role_role';
  member: 'user_id' | 'child_id';
}

/** What one column of the class's own table holds. */
export type OwnColumn = TextColumn | PlainColumn | TextArrayColumn;

/** How a member of a class is kept in a column. `sql` is our own text, never a client's. */
export type Column = OwnColumn | RelationColumn;

/** What the compiler knows of a class. Members that are no columns live in the jsonb column. */
export interface ClassSchema {
  name: string;
  /** The table of its rows. */
  table: string;
  /** Its rows may have an ACL, in the column `acl`. */
  hasAcl: boolean;
  /** The jsonb column of custom members. */
  jsonColumn: string;
  /** Public member names, aliases included, and their columns. */
  columns: ReadonlyMap<string, Column>;
  /** Members that conditions and orders may not name, so that nobody guesses them by asking. */
  hidden?: ReadonlySet<string>;
}

/** A member that a condition, an order or a projection names. */
export type Field = ValueField | { name: string; column: RelationColumn };

/** A field with a value of its own: no relation. */
export type ValueField = { name: string; column: OwnColumn } | { name: string; path: string[] };

/** True for a field that is a relation. */
export const isRelation = (field: Field): field is { name: string; column: RelationColumn } =>
  'column' in field && field.column.type === 'relation';

/** Longer names are refused, in whole. */
const maxNameLength = 256;
const innerName = /^[A-Za-z0-9_-]{1,128}$/;

/**
 * Splits `a.b.c` and checks each part. Throws 105 for a malformed or a hidden name: private members begin
 * with `_`, and may be neither filtered nor sorted nor projected (develop/architecture.md#queries).
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

/** The member that `name` stands for. Throws 105 as `pathOf`, for a hidden one, and for a part of one that has none. */
export function resolveField(name: string, cls: ClassSchema): Field {
  const path = parsePath(name);
  if (cls.hidden?.has(path[0] ?? '')) throw refuse('invalidKeyName', `${path[0]} cannot be queried.`);
  const column = cls.columns.get(path[0] ?? '');
  if (!column) return { name, path };
  if (path.length > 1) throw refuse('invalidKeyName', `${path[0]} has no members.`);
  return column.type === 'relation' ? { name, column } : { name, column };
}
