import type { Condition, MembersTest, RelatedTo, Subquery } from '../condition.ts';
import { compileOrder } from '../list/paging.ts';
import type { ClassSchema } from '../schema/fields.ts';
import { visibleTo } from '../viewer.ts';
import { testColumn } from './column.ts';
import type { Params } from './params.ts';
import { testPath } from './path.ts';
import { pointersOf, testMembers, testRelated } from './relation.ts';
import { itemsOf, testSubquery } from './subquery.ts';

/**
 * A condition as a boolean SQL expression over the columns of the class, in parentheses, ready to be
 * joined by AND. Its text is made of our own words and placeholders only; values, names of members and
 * JSON paths go through `params`. It may be NULL where it does not hold: use it in WHERE, negate it with
 * `IS NOT TRUE`.
 */
export function compileWhere(condition: Condition, cls: ClassSchema, params: Params): string {
  switch (condition.kind) {
    case 'and':
      return joined(condition.all, { cls, params, word: ' AND ', empty: 'true' });
    case 'or':
      return joined(condition.any, { cls, params, word: ' OR ', empty: 'false' });
    case 'related':
      return compileRelated(condition, params);
    case 'members':
      return compileMembers(condition, params);
    case 'field': {
      const { field, test } = condition;
      if (test.op === 'subquery') {
        const rows = compileRows(test.query, params);
        const items = itemsOf(field, cls.json, params);
        return testSubquery(items, test, { rows, params });
      }
      return 'column' in field
        ? testColumn(field.column, test, params)
        : testPath({ json: cls.json, path: field.path }, test, params);
    }
  }
}

function compileMembers({ relation, test, appId }: MembersTest, params: Params): string {
  if (test.op !== 'subquery') return testMembers(relation, test, { appId, params });
  const rows = compileRows(test.query, params);
  return testSubquery(pointersOf(relation, { appId, params }), test, { rows, params });
}

function compileRelated({ relation, owner, objectId, reader }: RelatedTo, params: Params): string {
  return testRelated(relation, {
    appId: params.add(reader.appId),
    objectId: params.add(objectId),
    isVisible: visibleTo(reader, owner, params),
  });
}

interface Joint {
  cls: ClassSchema;
  params: Params;
  word: string;
  empty: string;
}

function joined(parts: Condition[], { cls, params, word, empty }: Joint): string {
  if (parts.length === 0) return empty;
  return `(${parts.map((part) => compileWhere(part, cls, params)).join(word)})`;
}

/** Inside a SELECT of its own every column is the inner table's, whatever the outer one is. */
function compileRows({ cls, where, order, limit, skip, reader }: Subquery, params: Params): string {
  const conditions = [
    `app_id = ${params.add(reader.appId)}`,
    compileWhere(where, cls, params),
    visibleTo(reader, cls, params),
  ];
  return `FROM ${cls.table} WHERE ${conditions.join(' AND ')} ORDER BY ${compileOrder({ where, order }, cls, params)}
    LIMIT ${params.add(limit)} OFFSET ${params.add(skip)}`;
}
