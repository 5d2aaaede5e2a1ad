import type { Json } from '../domain/json.ts';
import type { Field } from './fields.ts';
import type { Pattern } from './regex/regex.ts';

/** A condition after all checks: names resolved, values canonical, sizes limited. */
export type Condition =
  | { kind: 'and'; all: Condition[] }
  | { kind: 'or'; any: Condition[] }
  | { kind: 'field'; field: Field; test: Test };

export type Relation = '<' | '<=' | '>' | '>=';

/** What is asked of one field; semantics in README.md. */
export type Test =
  | { op: 'equal'; value: Json }
  | { op: 'notEqual'; value: Json }
  | ({ op: 'compare' } & Comparison)
  | { op: 'in'; values: Json[] }
  | { op: 'notIn'; values: Json[] }
  | { op: 'all'; values: Json[] }
  | { op: 'size'; size: number }
  | { op: 'exists'; isThere: boolean }
  | { op: 'regex'; pattern: Pattern };

export interface Comparison {
  relation: Relation;
  value: Comparable;
}

/** What has an order; `time` is the canonical ISO text of a Date. */
export type Comparable =
  | { type: 'number'; value: number }
  | { type: 'string'; value: string }
  | { type: 'boolean'; value: boolean }
  | { type: 'time'; value: string };
