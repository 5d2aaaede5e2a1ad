import { isJsonObject, type Json } from '../../domain/json.ts';
import type { PlainTest } from '../condition.ts';
import type { RelationColumn } from '../schema/fields.ts';
import { negate } from './column.ts';
import type { Params } from './params.ts';

/** Tables of the members, by column of the pairs. */
const memberTables = { user_id: 'app_user', child_id: 'role' } as const;

/**
 * Compiles the members of a row of `role` as the end of a SELECT; `member` is the row of each. The condition on the app
 * is repeated so that indexes serve it if PostgreSQL runs it once for all rows.
 */
const membersOf = ({ table, member }: RelationColumn, appId: string): string =>
  `FROM ${table} AS link JOIN ${memberTables[member]} AS member ON member.id = link.${member}
   WHERE link.app_id = ${appId} AND member.app_id = ${appId} AND link.role_id = role.id`;

interface CompileContext {
  appId: string;
  params: Params;
}

/**
 * Compiles a test of a relation: it equals the pointers to its members (protocol/queries.md#relations), always exists
 * and has no order.
 */
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
  // Return before adding parameters: PostgreSQL rejects unused ones.
  if (ids.length === 0) return 'false';
  return `EXISTS (SELECT ${membersOf(relation, params.add(appId))} AND member.object_id = ANY(${params.add(ids)}::text[]))`;
}

/** Compiles a SELECT of pointers to the members of a row. */
export const selectPointers = (relation: RelationColumn, { appId, params }: CompileContext): string =>
  `SELECT jsonb_build_object('__type', 'Pointer', 'className', '${relation.className}', 'objectId', member.object_id)
     ${membersOf(relation, params.add(appId))}`;

/** Compiles `$relatedTo`: rows that are members of one role that the viewer may see (`isVisible`). */
export function compileRelatedTest(
  { table, member }: RelationColumn,
  { appId, objectId, isVisible }: { appId: string; objectId: string; isVisible: string },
): string {
  return `id IN (SELECT ${member} FROM ${table} WHERE app_id = ${appId} AND role_id IN (
    SELECT id FROM role WHERE app_id = ${appId} AND object_id = ${objectId} AND ${isVisible}))`;
}
