import { isJsonObject, type Json } from '../../domain/json.ts';
import type { RelationColumn } from '../fields.ts';
import type { Params } from '../params.ts';
import type { PlainTest } from '../tree.ts';

/** The table of each relation's members. */
const memberTables = { user_id: 'app_user', child_id: 'role' } as const;

/** The members of a row of `role`, as the end of a SELECT; `member` is the row of each. */
const membersOf = ({ table, member }: RelationColumn): string =>
  `FROM ${table} AS link JOIN ${memberTables[member]} AS member
     ON member.app_id = link.app_id AND member.id = link.${member}
   WHERE link.app_id = role.app_id AND link.role_id = role.id`;

/** A test of a relation: pointers to members are equal to it (compat.md 3.2); it is always there, and has no order. */
export function testRelation(column: RelationColumn, test: PlainTest, params: Params): string {
  switch (test.op) {
    case 'equal':
      return holdsAny(column, [test.value], params);
    case 'in':
      return holdsAny(column, test.values, params);
    case 'all':
      return test.values.length === 0
        ? 'false'
        : `(${test.values.map((value) => holdsAny(column, [value], params)).join(' AND ')})`;
    case 'exists':
      return String(test.isThere);
    default:
      return 'false';
  }
}

function holdsAny(column: RelationColumn, values: Json[], params: Params): string {
  const ids = values.flatMap((value) => {
    if (!isJsonObject(value) || value.__type !== 'Pointer' || value.className !== column.className) return [];
    return typeof value.objectId === 'string' ? [value.objectId] : [];
  });
  if (ids.length === 0) return 'false';
  return `EXISTS (SELECT ${membersOf(column)} AND member.object_id = ANY(${params.add(ids)}::text[]))`;
}

/** Pointers to the members, one row each, as a SELECT. */
export const pointersOf = (column: RelationColumn): string =>
  `SELECT jsonb_build_object('__type', 'Pointer', 'className', '${column.className}', 'objectId', member.object_id)
     ${membersOf(column)}`;

/** `$relatedTo`: the rows that are members of one role, of which `isVisible` holds for who asks. */
export function testRelated(
  { table, member }: RelationColumn,
  { appId, objectId, isVisible }: { appId: string; objectId: string; isVisible: string },
): string {
  return `id IN (SELECT ${member} FROM ${table} WHERE app_id = ${appId} AND role_id IN (
    SELECT id FROM role WHERE app_id = ${appId} AND object_id = ${objectId} AND ${isVisible}))`;
}
