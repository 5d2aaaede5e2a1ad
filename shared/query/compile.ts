import type { ClassSchema } from './fields.ts';
import type { Params } from './params.ts';
import { testColumn } from './sql/column.ts';
import { testPath } from './sql/path.ts';
import type { Condition } from './tree.ts';

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
    case 'field': {
      const { field, test } = condition;
      return 'column' in field
        ? testColumn(field.column, test, params)
        : testPath({ json: cls.json, path: field.path }, test, params);
    }
  }
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
