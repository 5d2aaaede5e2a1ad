import { parseExactly } from '../../../../../shared/domain/exact-numbers.ts';
import type { SchemaField } from './schema.ts';

/** Texts of the controls of a form by the name of the member. */
export type Draft = Record<string, string>;

/** Why a text is not a value: a key of the texts. */
export type Fault = 'required' | 'number' | 'json';

/** Returns a value as the text of its control. */
export function textOf({ kind }: SchemaField, value: unknown): string {
  if (value === undefined || value === null) return '';
  if (kind === 'list' && Array.isArray(value)) return value.join('\n');
  if (kind === 'json') return JSON.stringify(value, null, 2);
  return String(value);
}

/** Returns the value that the text of a control means; undefined where the member is left out. */
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

/** Returns the object that a form means, or the faults by member. */
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

/** Members that the server writes. */
const readOnly = new Set(['objectId', 'createdAt', 'updatedAt', 'installationId', 'sessionToken']);

/** Returns the members of a document that a person may change. */
export const editableOf = (document: Members): Members =>
  Object.fromEntries(Object.entries(document).filter(([name]) => !readOnly.has(name)));

/**
 * Returns the body that makes one state of a document the other: changed members, and a deletion of
 * those that are gone.
 */
export function changesOf(before: Members, after: Members): Members {
  const changed = Object.entries(after).filter(
    ([name, value]) =>
      !readOnly.has(name) && JSON.stringify(value) !== JSON.stringify(before[name]),
  );
  const gone = Object.keys(before).filter((name) => !(name in after));
  return Object.fromEntries([...changed, ...gone.map((name) => [name, { __op: 'Delete' }])]);
}

/** Returns the time of a field `datetime-local`, in ISO 8601; undefined for an empty field. */
export const isoTime = (local: string): string | undefined =>
  local === '' ? undefined : new Date(local).toISOString();

/** Returns a time as such a field has it: in the zone of the reader, without a zone. */
export function localTime(iso: string | undefined): string {
  if (iso === undefined || Number.isNaN(Date.parse(iso))) return '';
  const time = new Date(iso);
  return new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
