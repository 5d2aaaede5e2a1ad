import type { Json } from '../domain/json.ts';
import type { Point } from './parse/geo.ts';
import type { Pattern } from './parse/regex/regex.ts';
import type { RelatedOperand } from './parse/related.ts';
import type { ClassSchema, RelationColumn, ValueField } from './schema/fields.ts';
import type { Viewer } from './viewer.ts';

/** A condition after all checks: names resolved, values canonical, sizes limited. */
export type Condition =
  | { kind: 'and'; all: Condition[] }
  | { kind: 'or'; any: Condition[] }
  | { kind: 'field'; field: ValueField; test: Test }
  | MembersCondition
  | RelatedCondition;

/** A test of a relation, whose members are rows of other tables of the app. */
export interface MembersCondition {
  kind: 'members';
  relation: RelationColumn;
  test: Test;
  appId: string;
}

/** The members of one object's relation; none where the reader may not see that object. */
export interface RelatedCondition extends RelatedOperand {
  kind: 'related';
  viewer: Viewer;
}

export type ComparisonOperator = '<' | '<=' | '>' | '>=';

/** What is asked of one field; semantics in README.md. */
export type Test = PlainTest | SubqueryTest;

/** What the value of the field answers by itself. */
export type PlainTest =
  | { op: 'equal'; value: Json }
  | { op: 'notEqual'; value: Json }
  | ({ op: 'compare' } & Comparison)
  | { op: 'in'; values: Json[] }
  | { op: 'notIn'; values: Json[] }
  | { op: 'all'; values: Json[] }
  | { op: 'size'; size: number }
  | { op: 'exists'; isThere: boolean }
  | { op: 'regex'; pattern: Pattern }
  | NearTest
  | { op: 'within'; southwest: Point; northeast: Point };

/** A geo point at a distance, in radians, of at least `least` and at most `most`. */
export interface NearTest {
  op: 'near';
  point: Point;
  minDistance: number | undefined;
  maxDistance: number | undefined;
}

/** `$inQuery`: a pointer to one of the rows; `$select`: equal to what one of them has under `key`. */
export interface SubqueryTest {
  op: 'subquery';
  query: Subquery;
  /** Undefined for `$inQuery`. */
  key: ValueField | undefined;
  isNegated: boolean;
}

/** Rows of a class, chosen as a list call chooses them. */
export interface Subquery {
  cls: ClassSchema;
  where: Condition;
  sortOrder: SortKey[];
  limit: number;
  skip: number;
  /** No row is looked at that this one could not list. */
  viewer: Viewer;
}

export interface SortKey {
  field: ValueField;
  isDescending: boolean;
}

export interface Comparison {
  operator: ComparisonOperator;
  value: Comparable;
}

/** What has an order; `time` is the canonical ISO text of a Date. */
export type Comparable =
  | { type: 'number'; value: number }
  | { type: 'string'; value: string }
  | { type: 'boolean'; value: boolean }
  | { type: 'time'; value: string };
