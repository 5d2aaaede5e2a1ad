import type { Json } from '../domain/json.ts';
import type { Point } from './parse/geo.ts';
import type { Pattern } from './parse/regex/regex.ts';
import type { Related } from './parse/related.ts';
import type { ClassSchema, RelationColumn, ValueField } from './schema/fields.ts';
import type { Reader } from './viewer.ts';

/** A condition after all checks: names resolved, values canonical, sizes limited. */
export type Condition =
  | { kind: 'and'; all: Condition[] }
  | { kind: 'or'; any: Condition[] }
  | { kind: 'field'; field: ValueField; test: Test }
  | MembersTest
  | RelatedTo;

/** A test of a relation, whose members are rows of other tables of the app. */
export interface MembersTest {
  kind: 'members';
  relation: RelationColumn;
  test: Test;
  appId: string;
}

/** The members of one object's relation; none where the reader may not see that object. */
export interface RelatedTo extends Related {
  kind: 'related';
  reader: Reader;
}

export type Relation = '<' | '<=' | '>' | '>=';

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
  least: number | undefined;
  most: number | undefined;
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
  order: OrderKey[];
  limit: number;
  skip: number;
  /** No row is looked at that this one could not list. */
  reader: Reader;
}

export interface OrderKey {
  field: ValueField;
  isDescending: boolean;
}

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
