import type { Json } from '../domain/json.ts';
import type { Point } from './parse/geo.ts';
import type { Pattern } from './parse/regex.ts';
import type { RelatedOperand } from './parse/related.ts';
import type { ClassSchema, RelationColumn, ValueField } from './schema.ts';
import type { Viewer } from './viewer.ts';

/**
 * A condition that passed all checks: names are resolved, values are canonical, sizes are limited.
 */
export type Condition =
  | { kind: 'and'; all: Condition[] }
  | { kind: 'or'; any: Condition[] }
  | { kind: 'field'; field: ValueField; test: Test }
  | MembersCondition
  | RelatedCondition;

/** Test of a relation. The members of the relation are rows of other tables of the app. */
export interface MembersCondition {
  kind: 'members';
  relation: RelationColumn;
  test: Test;
  appId: string;
}

/**
 * `$relatedTo`: the members of one object's relation. Matches no row if the viewer may not see the
 * object.
 */
export interface RelatedCondition extends RelatedOperand {
  kind: 'related';
  viewer: Viewer;
}

export type ComparisonOperator = '<' | '<=' | '>' | '>=';

/** Test of one field. develop/queries.md describes the semantics. */
export type Test = PlainTest | SubqueryTest;

/** Test that needs only the value of the field. */
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

/** Test for a geo point within a range of distances, in radians. */
export interface NearTest {
  op: 'near';
  point: Point;
  minDistance: number | undefined;
  maxDistance: number | undefined;
}

/**
 * Test by a subquery. `$inQuery` matches a pointer to one of the selected rows. `$select` matches a
 * value that `key` has in one of the selected rows.
 */
export interface SubqueryTest {
  op: 'subquery';
  query: Subquery;
  /** Undefined for `$inQuery`. */
  key: ValueField | undefined;
  isNegated: boolean;
}

/** Rows of a class, selected in the same way as by a list call. */
export interface Subquery {
  cls: ClassSchema;
  where: Condition;
  sortOrder: SortKey[];
  limit: number;
  skip: number;
  /** The subquery reads only rows that this viewer may list. */
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

/** Value of an ordered type. `time` is the canonical ISO text of a Date. */
export type Comparable =
  | { type: 'number'; value: number | bigint }
  | { type: 'string'; value: string }
  | { type: 'boolean'; value: boolean }
  | { type: 'time'; value: string };
