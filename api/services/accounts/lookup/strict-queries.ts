import { refuse } from '../../../../shared/domain/errors/errors.ts';
import type { Condition } from '../../../../shared/query/condition.ts';
import type { ListQuery } from '../../../../shared/query/list/list.ts';
import { userClass } from '../../../../shared/query/schema.ts';

/** Members with contact data. */
const contacts = new Set(['email', 'mobilePhoneNumber']);

/** Rows of one answer. */
const maxRows = 100;

/**
 * Checks the rules of `strictlyQuery` (protocol/users.md#strict-queries) and returns the list that
 * it reads: no `skip`, no subquery, no pattern, no member that clients may not read, and at most
 * 100 rows. Contacts are named where the caller may list users, and only compared as a whole.
 * Throws 102 with the member and the cause.
 */
export function strictQuery(list: ListQuery, { mayListUsers }: { mayListUsers: boolean }): ListQuery {
  const { where, sortOrder, skip, limit } = list;
  if (skip > 0) throw refuse('invalidQuery', 'skip: a strict query starts at the first row.');
  for (const { field } of sortOrder) {
    requireReadable(field.name);
    if (contacts.has(field.name)) throw notWhole(field.name);
  }
  requireStrict(where, mayListUsers);
  return { ...list, limit: Math.min(limit, maxRows) };
}

function requireStrict(condition: Condition, mayListUsers: boolean): void {
  switch (condition.kind) {
    case 'and':
      for (const one of condition.all) requireStrict(one, mayListUsers);
      return;
    case 'or':
      for (const one of condition.any) requireStrict(one, mayListUsers);
      return;
    case 'related':
      return;
    case 'members':
      throw refuse('invalidQuery', 'where: a strict query has no relations.');
    case 'field': {
      const { field, test } = condition;
      const { name } = field;
      requireReadable(name);
      if (test.op === 'subquery') throw refuse('invalidQuery', `${name}: a strict query has no subqueries.`);
      if (test.op === 'regex') throw refuse('invalidQuery', `${name}: a strict query has no patterns.`);
      if (!contacts.has(name)) return;
      if (!mayListUsers)
        throw refuse('invalidQuery', `${name}: a strict query names it only with the option allowUserQuery.`);
      if (test.op !== 'equal' || test.value === null) throw notWhole(name);
    }
  }
}

/** Throws 102 for a member that clients may not read, also for the master key. */
function requireReadable(name: string): void {
  const [member = ''] = name.split('.');
  if (userClass.hidden?.has(member) || member.startsWith('_'))
    throw refuse('invalidQuery', `${member}: clients may not read this member.`);
}

const notWhole = (name: string) =>
  refuse('invalidQuery', `${name}: a strict query compares it with one whole text only.`);
