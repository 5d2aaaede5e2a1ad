import { refuse } from '../../../../shared/domain/errors/errors.ts';
import type { Condition, SubqueryTest } from '../../../../shared/query/condition.ts';
import type { ListQuery } from '../../../../shared/query/list/list.ts';

/** Members that say where a person can be reached. */
const sensitive = new Set(['email', 'mobilePhoneNumber']);

/**
 * `strictlyQuery` (protocol/users.md#strict-queries): who knows an address or a number as a whole finds its user; nobody finds them by
 * parts, ranges or order. Throws 102.
 */
export function requireStrictQuery(list: ListQuery): void {
  if (!isStrictChoice(list))
    throw refuse('invalidQuery', 'email and mobilePhoneNumber are compared as a whole here.');
}

const isStrictChoice = ({ where, order }: Pick<ListQuery, 'where' | 'order'>): boolean =>
  !order.some(({ field }) => sensitive.has(field.name)) && isStrict(where);

/** The users of an inner query are found by the same rule. */
const isStrictWithin = ({ query, key }: SubqueryTest): boolean =>
  isStrictChoice(query) && !(key && sensitive.has(key.name));

function isStrict(condition: Condition): boolean {
  switch (condition.kind) {
    case 'and':
      return condition.all.every(isStrict);
    case 'or':
      return condition.any.every(isStrict);
    case 'related':
      return true;
    case 'members':
      return condition.test.op !== 'subquery' || isStrictWithin(condition.test);
    case 'field': {
      const { field, test } = condition;
      if (test.op === 'subquery' && !isStrictWithin(test)) return false;
      return !sensitive.has(field.name) || (test.op === 'equal' && test.value !== null);
    }
  }
}
