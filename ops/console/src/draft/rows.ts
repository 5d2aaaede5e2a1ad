import { localMoment } from './fields.ts';
import { ExactNumber, type JsonRecord, type JsonValue, printJson } from './json-text.ts';
import {
  type Clause,
  type Comparison,
  type Condition,
  isDate,
  takesList,
  writeCondition,
} from './where.ts';

/** Types of values that a row can compare with. */
export const valueKinds = ['text', 'number', 'flag', 'date'] as const;
export type ValueKind = (typeof valueKinds)[number];

/** Row of the condition builder. It may be incomplete while a person edits it. */
export interface Row {
  id: number;
  member: string;
  comparison: Comparison;
  kind: ValueKind;
  /** Value as text. List values are separated by commas. */
  text: string;
  /**
   * Value that has no text form, such as a list with values of several types. It stays unchanged.
   */
  fixed?: JsonValue;
}

export interface Rows {
  all: Row[];
  any: Row[][];
}

let lastId = 0;

/** Returns a row without a value. */
export function newRow(member = ''): Row {
  lastId += 1;
  return { id: lastId, member, comparison: 'is', kind: 'text', text: '' };
}

export const rowsOf = ({ all, any }: Condition): Rows => ({
  all: all.map(rowOf),
  any: any.map((clauses) => clauses.map(rowOf)),
});

function rowOf({ member, comparison, value }: Clause): Row {
  const values = Array.isArray(value) ? value : [value];
  const kinds = new Set(values.map(kindOf));
  const [kind = 'text'] = kinds;
  const texts = values.map(textOf);
  const row: Row = { ...newRow(member), comparison, kind, text: texts.join(', ') };
  const written = kinds.size > 1 ? undefined : typedValue(row);
  return written !== undefined && printJson(written) === printJson(value)
    ? row
    : { ...row, text: printJson(value), fixed: value };
}

function kindOf(value: JsonValue): ValueKind {
  if (typeof value === 'number' || value instanceof ExactNumber) return 'number';
  if (typeof value === 'boolean') return 'flag';
  return isDate(value) ? 'date' : 'text';
}

function textOf(value: JsonValue): string {
  if (value instanceof ExactNumber) return value.text;
  if (isDate(value)) return localMoment(new Date(String(value.iso)));
  return String(value);
}

/** Returns the condition of all complete rows. */
export function conditionOf({ all, any }: Rows): Condition {
  const groups = any.map((rows) => rows.flatMap(clausesOf));
  return { all: all.flatMap(clausesOf), any: groups.filter((clauses) => clauses.length > 0) };
}

/** Returns the condition of a row, or undefined if the row is incomplete. */
export function partOf(row: Row): JsonRecord | undefined {
  const all = clausesOf(row);
  return all.length === 0 ? undefined : writeCondition({ all, any: [] });
}

/** True if a row is incomplete. Such a push would go to more devices than the rows show. */
export const hasIncomplete = ({ all, any }: Rows): boolean =>
  [...all, ...any.flat()].some((row) => clausesOf(row).length === 0) ||
  any.some((rows) => rows.length === 0);

function clausesOf(row: Row): Clause[] {
  const value = row.fixed ?? typedValue(row);
  const member = row.member.trim();
  return member === '' || member.startsWith('$') || value === undefined
    ? []
    : [{ member, comparison: row.comparison, value }];
}

/** Returns the value of a row, or undefined if the row is incomplete. */
function typedValue({ comparison, kind, text }: Row): JsonValue | undefined {
  if (comparison === 'exists') return text !== 'false';
  if (comparison === 'matches') return text === '' ? undefined : text;
  if (!takesList(comparison)) return text === '' ? undefined : scalarOf(kind, text);
  const parts = text
    .split(/[,，]/)
    .map((part) => part.trim())
    .filter((part) => part !== '');
  const values = parts.map((part) => scalarOf(kind, part));
  const known = values.filter((value) => value !== undefined);
  return known.length === 0 || known.length < values.length ? undefined : known;
}

const numberPattern = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

function scalarOf(kind: ValueKind, text: string): JsonValue | undefined {
  if (kind === 'text') return text;
  if (kind === 'flag') return text === 'true' ? true : text === 'false' ? false : undefined;
  if (kind === 'number') {
    const digits = text.trim();
    if (!numberPattern.test(digits)) return undefined;
    return String(Number(digits)) === digits ? Number(digits) : new ExactNumber(digits);
  }
  const time = new Date(text);
  return Number.isNaN(time.getTime()) ? undefined : { __type: 'Date', iso: time.toISOString() };
}

/** Types of the members that every installation has. */
const knownKinds: Readonly<Record<string, ValueKind>> = {
  badge: 'number',
  valid: 'flag',
  createdAt: 'date',
  updatedAt: 'date',
};

export const kindOfMember = (member: string): ValueKind | undefined => knownKinds[member];

/** Members that every installation has. Used for suggestions. */
export const knownMembers = [
  'deviceType',
  'channels',
  'vendor',
  'timeZone',
  'deviceProfile',
  'apnsTopic',
  'objectId',
  'installationId',
  'badge',
  'createdAt',
  'updatedAt',
] as const;
