import { parseExactly } from '../../../../../shared/domain/exact-numbers.ts';
import type { SchemaField } from './schema.ts';

/** Input texts of a form by member name. */
export type Draft = Record<string, string>;

/** Reason why a text is invalid: a key of the texts. */
export type Fault = 'required' | 'number' | 'json';

/** Returns the input text of a value. */
export function textOf({ kind }: SchemaField, value: unknown): string {
  if (value === undefined || value === null) return '';
  if (kind === 'list' && Array.isArray(value)) return value.join('\n');
  if (kind === 'json') return JSON.stringify(value, null, 2);
  return String(value);
}

/** Returns the value of an input text, or undefined if the member is left out. */
function memberOf(field: SchemaField, text: string): { value: unknown } | { fault: Fault } {
  const trimmed = text.trim();
  if (trimmed === '') {
    if (field.isRequired) return { fault: 'required' };
    return { value: field.isNullable ? null : undefined };
  }
  if (field.kind === 'number') return numberOf(trimmed);
  if (field.kind === 'boolean') return { value: trimmed === 'true' };
  if (field.kind === 'list') return { value: trimmed.split(/[\s,]+/).filter(Boolean) };
  if (field.kind === 'json') return jsonOf(trimmed);
  // A PEM file ends with a line break.
  return { value: field.kind === 'lines' ? `${trimmed}\n` : trimmed };
}

function numberOf(text: string): { value: number } | { fault: Fault } {
  const value = Number(text.replaceAll(/[,\s]/g, ''));
  return Number.isFinite(value) ? { value } : { fault: 'number' };
}

function jsonOf(text: string): { value: unknown } | { fault: Fault } {
  try {
    return { value: parseExactly(text) };
  } catch {
    return { fault: 'json' };
  }
}

/** Returns the object of a form, or the errors by member. */
export function objectOf(
  fields: readonly SchemaField[],
  draft: Draft,
): { object: Record<string, unknown>; faults: Record<string, Fault> } {
  const object: Record<string, unknown> = {};
  const faults: Record<string, Fault> = {};
  for (const field of fields) {
    const read = memberOf(field, draft[field.name] ?? '');
    if ('fault' in read) faults[field.name] = read.fault;
    else if (read.value !== undefined) object[field.name] = read.value;
  }
  return { object, faults };
}

type Members = Record<string, unknown>;

/** Members that only the server writes. */
const readOnly = new Set(['objectId', 'createdAt', 'updatedAt', 'installationId', 'sessionToken']);

/** Returns the members of a document that a person may change. */
export const editableOf = (document: Members): Members =>
  Object.fromEntries(Object.entries(document).filter(([name]) => !readOnly.has(name)));

/**
 * Returns the body that changes a document from one state to another: changed members, and
 * deletions of removed members.
 */
export function changesOf(before: Members, after: Members): Members {
  const changed = Object.entries(after).filter(
    ([name, value]) =>
      !readOnly.has(name) && JSON.stringify(value) !== JSON.stringify(before[name]),
  );
  const gone = Object.keys(before).filter((name) => !(name in after));
  return Object.fromEntries([...changed, ...gone.map((name) => [name, { __op: 'Delete' }])]);
}

/** Converts the value of a `datetime-local` input to ISO 8601. Returns undefined if it is empty. */
export const isoTime = (local: string): string | undefined =>
  local === '' ? undefined : new Date(local).toISOString();

/** Converts a time to the value of a `datetime-local` input, in the reader's time zone. */
export function localTime(iso: string | undefined): string {
  if (iso === undefined || Number.isNaN(Date.parse(iso))) return '';
  const time = new Date(iso);
  return new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
