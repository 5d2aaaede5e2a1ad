import { refuse } from '../../../../shared/domain/errors/errors.ts';
import type { Condition, SubqueryTest } from '../../../../shared/query/condition.ts';
import type { ListQuery } from '../../../../shared/query/list/list.ts';

/** Members with contact data. */
const sensitive = new Set(['email', 'mobilePhoneNumber']);

/**
 * Checks the rule of `strictlyQuery` (protocol/users.md#strict-queries): a whole e-mail address or number finds its user;
 * parts, ranges and sorting do not. Throws 102.
 */
export function requireStrictQuery(list: ListQuery): void {
  if (!isStrictChoice(list))
    throw refuse('invalidQuery', 'email and mobilePhoneNumber are compared as a whole here.');
}

const isStrictChoice = ({ where, sortOrder }: Pick<ListQuery, 'where' | 'sortOrder'>): boolean =>
  !sortOrder.some(({ field }) => sensitive.has(field.name)) && isStrict(where);

/** Checks the same rule in a subquery. */
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
