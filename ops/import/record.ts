import { Refusal, refuse } from '../../shared/domain/errors/errors.ts';
import { isPublicId } from '../../shared/domain/installations/identity.ts';
import { isJsonObject, type Json, type JsonObject } from '../../shared/domain/json.ts';
import { type Acl, readAcl } from '../../shared/domain/objects/acl.ts';
import type { Members } from '../../shared/domain/objects/operations.ts';
import {
  canonicalTime,
  canonicalValue,
  isMemberName,
  timeOfDate,
} from '../../shared/domain/objects/typed-values.ts';

const decoder = new TextDecoder('utf-8', { fatal: true });

/** The dictionary that a record holds. Throws a refusal; the parser's own words would quote the record. */
export function parseRecord(bytes: Buffer): JsonObject {
  let text: string;
  try {
    text = decoder.decode(bytes);
  } catch {
    throw refuse('malformedJson', 'This record is not UTF-8.');
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw refuse('malformedJson', 'This record is not JSON.');
  }
  if (!isJsonObject(value)) throw refuse('malformedJson', 'This record is no JSON dictionary.');
  return value;
}

/** What every object of the public service has. Times are ISO 8601. */
export interface Head {
  objectId: string;
  createdAt: string;
  updatedAt: string;
}

/** A record without times was made now. Throws 104, and 111 for malformed times. */
export function headOf(record: JsonObject, now: Date): Head {
  const objectId = idOf(record);
  if (objectId === undefined) throw refuse('missingObjectId', 'objectId is missing or is no id.');
  const [created, updated] = [timeIn(record, 'createdAt'), timeIn(record, 'updatedAt')];
  const createdAt = created ?? updated ?? now.toISOString();
  return { objectId, createdAt, updatedAt: updated ?? createdAt };
}

/** The id of a record, however wrong the rest of it is. */
export function idOf({ objectId }: JsonObject): string | undefined {
  return typeof objectId === 'string' && isPublicId(objectId) ? objectId : undefined;
}

function timeIn(record: JsonObject, name: string): string | undefined {
  const value = record[name];
  if (value === undefined || value === null) return undefined;
  const time = typeof value === 'string' ? canonicalTime(value) : timeOfDate(value);
  if (time === undefined) throw refuse('incorrectType', `${name} is no time (ISO 8601).`);
  return time;
}

/**
 * The members of a record that `isOwn` leaves, in the form in which they are stored. Throws 105, 106 and 111 with the
 * member's name, never its value.
 */
export function membersOf(record: JsonObject, isOwn: (name: string, value: Json) => boolean): Members {
  const members: Members = new Map();
  for (const [name, value] of Object.entries(record)) {
    if (isOwn(name, value)) continue;
    if (!isMemberName(name))
      throw refuse('invalidKeyName', `A member has a name that cannot be stored: ${shown(name)}.`);
    members.set(
      name,
      within(name, () => canonicalValue(value)),
    );
  }
  return members;
}

/** Runs `work`; its refusal says of which member it speaks, whose name was checked. */
export function within<T>(name: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    throw refuse(error.kind, `${name}: ${error.message}`);
  }
}

/** A member's name as it may stand on a terminal. */
const shown = (name: string): string =>
  isMemberName(name) ? name : JSON.stringify(name.slice(0, 64).replace(/[^\x20-\x7E]/g, '?'));

/** A member that may be absent, null or empty; else a text. */
export function textOrNull(record: JsonObject, name: string): string | null {
  const value = record[name];
  if (value === undefined || value === null || value === '') return null;
  if (typeof value !== 'string') throw refuse('incorrectType', `${name} must be a text.`);
  return value;
}

/** A member that may be absent or null; else true or false. */
export function booleanOrNull(record: JsonObject, name: string): boolean | null {
  const value = record[name];
  if (value === undefined || value === null) return null;
  if (typeof value !== 'boolean') throw refuse('incorrectType', `${name} must be true or false.`);
  return value;
}

/** The ACL of a record. A permission that is false is one that is not given. Throws 123. */
export function aclOf(value: Json | undefined): Acl | null {
  if (value === undefined || value === null) return null;
  if (!isJsonObject(value)) return readAcl(value);
  return readAcl(
    Object.fromEntries(
      Object.entries(value).map(([subject, given]) => [
        subject,
        isJsonObject(given)
          ? Object.fromEntries(Object.entries(given).filter(([, is]) => is !== false))
          : given,
      ]),
    ),
  );
}
