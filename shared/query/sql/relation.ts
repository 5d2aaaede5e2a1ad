import { isJsonObject, type Json } from '../../domain/json.ts';
import type { PlainTest } from '../condition.ts';
import type { RelationColumn } from '../schema/fields.ts';
import { negate } from './column.ts';
import type { Params } from './params.ts';

/** The table of each relation's members. */
const memberTables = { user_id: 'app_user', child_id: 'role' } as const;

/**
 * The members of a row of `role`, as the end of a SELECT; `member` is the row of each. The app is named again, so that
 * indexes are used where PostgreSQL runs this once for all rows.
 */
const membersOf = ({ table, member }: RelationColumn, appId: string): string =>
  `FROM ${table} AS link JOIN ${memberTables[member]} AS member ON member.id = link.${member}
   WHERE link.app_id = ${appId} AND member.app_id = ${appId} AND link.role_id = role.id`;

interface CompileContext {
  appId: string;
  params: Params;
}

/** A test of a relation: pointers to members are equal to it (protocol/queries.md#relations); it is always there, and has no order. */
export function compileMembersTest(
  relation: RelationColumn,
  test: PlainTest,
  context: CompileContext,
): string {
  switch (test.op) {
    case 'equal':
      return compileEquality(relation, [test.value], context);
    case 'notEqual':
      return negate(compileEquality(relation, [test.value], context));
    case 'in':
      return compileEquality(relation, test.values, context);
    case 'notIn':
      return negate(compileEquality(relation, test.values, context));
    case 'all':
      return test.values.length === 0
        ? 'false'
        : `(${test.values.map((value) => compileEquality(relation, [value], context)).join(' AND ')})`;
    case 'exists':
      return String(test.isThere);
    default:
      return 'false';
  }
}

function compileEquality(
  relation: RelationColumn,
  values: Json[],
  { appId, params }: CompileContext,
): string {
  const ids = values.flatMap((value) => {
    if (!isJsonObject(value) || value.__type !== 'Pointer' || value.className !== relation.className)
      return [];
    return typeof value.objectId === 'string' ? [value.objectId] : [];
  });
  // PostgreSQL refuses a value that no statement uses.
  if (ids.length === 0) return 'false';
  return `EXISTS (SELECT ${membersOf(relation, params.add(appId))} AND member.object_id = ANY(${params.add(ids)}::text[]))`;
}

/** Pointers to the members of a row, one row each, as a SELECT. */
export const selectPointers = (relation: RelationColumn, { appId, params }: CompileContext): string =>
  `SELECT jsonb_build_object('__type', 'Pointer', 'className', '${relation.className}', 'objectId', member.object_id)
     ${membersOf(relation, params.add(appId))}`;

/** `$relatedTo`: the rows that are members of one role, of which `isVisible` holds for who asks. */
export function compileRelatedTest(
  { table, member }: RelationColumn,
  { appId, objectId, isVisible }: { appId: string; objectId: string; isVisible: string },
): string {
  return `id IN (SELECT ${member} FROM ${table} WHERE app_id = ${appId} AND role_id IN (
    SELECT id FROM role WHERE app_id = ${appId} AND object_id = ${objectId} AND ${isVisible}))`;
}
