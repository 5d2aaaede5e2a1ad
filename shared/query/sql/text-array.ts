import type { Json } from '../../domain/json.ts';
import type { Comparison, PlainTest } from '../condition.ts';
import { sqlPattern } from '../parse/regex/regex.ts';
import type { Params } from './params.ts';

/** Compiles a test of a `text[]` column such as `channels`: a value means "contains" (protocol/queries.md#arrays). */
export function compileTextArrayTest(sql: string, test: PlainTest, params: Params): string {
  switch (test.op) {
    case 'equal':
      return compileOverlap(sql, [test.value], params);
    case 'in':
      return compileOverlap(sql, test.values, params);
    case 'all':
      return compileContainsAll(sql, test.values, params);
    case 'size':
      return `cardinality(${sql}) = ${params.add(test.size)}::int`;
    case 'compare':
      return compileComparison(sql, test, params);
    case 'regex':
      return `EXISTS (SELECT FROM unnest(${sql}) AS item WHERE item ~ ${params.add(sqlPattern(test.pattern))})`;
    default:
      return 'false';
  }
}

const isText = (value: Json): value is string => typeof value === 'string';
const isTextList = (value: Json): value is string[] => Array.isArray(value) && value.every(isText);

/** Uses `@>` and `&&`, which the GIN index on the column serves. */
function compileOverlap(sql: string, values: Json[], params: Params): string {
  const texts = values.filter(isText);
  const parts: string[] = [];
  if (texts.length === 1) parts.push(`${sql} @> ${params.add(texts)}::text[]`);
  if (texts.length > 1) parts.push(`${sql} && ${params.add(texts)}::text[]`);
  for (const whole of values.filter(isTextList)) parts.push(`${sql} = ${params.add(whole)}::text[]`);
  if (values.includes(null)) parts.push(`${sql} IS NULL`);
  return parts.length === 0 ? 'false' : `(${parts.join(' OR ')})`;
}

function compileContainsAll(sql: string, values: Json[], params: Params): string {
  if (values.length === 0) return 'false';
  if (values.every(isText)) return `${sql} @> ${params.add(values)}::text[]`;
  return `(${values.map((value) => compileOverlap(sql, [value], params)).join(' AND ')})`;
}

function compileComparison(sql: string, { operator: relation, value }: Comparison, params: Params): string {
  if (value.type !== 'string') return 'false';
  return `EXISTS (SELECT FROM unnest(${sql}) AS item WHERE item COLLATE "C" ${relation} ${params.add(value.value)}::text)`;
}
