import { refuse } from '../../../shared/domain/errors.ts';
import type { ListQuery } from '../../../shared/query/list.ts';
import type { Condition } from '../../../shared/query/tree.ts';

/** Members that say where a person can be reached. */
const sensitive = new Set(['email', 'mobilePhoneNumber']);

/**
 * `strictlyQuery` (compat.md 9.2): who knows an address or a number as a whole finds its user; nobody finds them by
 * parts, ranges or order. Throws 102.
 */
export function requireStrictness({ where, order }: ListQuery): void {
  if (order.some(({ field }) => sensitive.has(field.name)) || !isStrict(where))
    throw refuse('invalidQuery', 'email and mobilePhoneNumber are compared as a whole here.');
}

function isStrict(condition: Condition): boolean {
  switch (condition.kind) {
    case 'and':
      return condition.all.every(isStrict);
    case 'or':
      return condition.any.every(isStrict);
    case 'field': {
      const { field, test } = condition;
      return !sensitive.has(field.name) || (test.op === 'equal' && test.value !== null);
    }
  }
}
