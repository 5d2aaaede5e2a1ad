import type { Condition, SubqueryTest, Test } from './condition.ts';
import type { ClassSchema } from './schema.ts';
import type { MemberUse } from './viewer.ts';

/**
 * Returns every use of a member's name in a checked condition: tests, and the keys and sort orders
 * of subqueries.
 */
export const usesOf = (condition: Condition, cls: ClassSchema): MemberUse[] =>
  usesIn(condition, cls, false);

function usesIn(condition: Condition, cls: ClassSchema, isInner: boolean): MemberUse[] {
  switch (condition.kind) {
    case 'and':
      return condition.all.flatMap((one) => usesIn(one, cls, isInner));
    case 'or':
      return condition.any.flatMap((one) => usesIn(one, cls, isInner));
    case 'field': {
      const use = { ...named(condition.field.name, cls), ...useOf(condition.test), isInner };
      return [use, ...usesInTest(condition.test)];
    }
    case 'members':
      return usesInTest(condition.test);
    case 'related':
      return [];
  }
}

const named = (name: string, cls: ClassSchema) => ({
  className: cls.name,
  member: name.split('.', 1)[0] ?? name,
});

const usesInTest = (test: Test): MemberUse[] => (test.op === 'subquery' ? usesInQuery(test) : []);

function usesInQuery({ query, key }: SubqueryTest): MemberUse[] {
  const { cls, where, sortOrder } = query;
  const keys = key ? [{ ...named(key.name, cls), use: 'other', isInner: true } as const] : [];
  const orders = sortOrder.map(
    ({ field }) => ({ ...named(field.name, cls), use: 'spelling', isInner: true }) as const,
  );
  return [...keys, ...orders, ...usesIn(where, cls, true)];
}

function useOf(test: Test): Pick<MemberUse, 'use' | 'value'> {
  if (test.op === 'equal' && typeof test.value === 'string')
    return { use: 'whole', value: test.value };
  const isSpelling = test.op === 'regex' || (test.op === 'compare' && test.value.type === 'string');
  return { use: isSpelling ? 'spelling' : 'other' };
}
