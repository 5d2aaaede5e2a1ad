import { isAscii, isUtf8 } from 'node:buffer';
import { canonicalTime, timeOfDate } from '../../shared/domain/client-values.ts';
import { operatorMessage, Refusal, refuse } from '../../shared/domain/errors/errors.ts';
import { isPublicId } from '../../shared/domain/installations/identity.ts';
import {
  isJsonObject,
  type Json,
  type JsonObject,
  parseExactly,
} from '../../shared/domain/json.ts';
import { type Acl, readAcl } from '../../shared/domain/objects/acl.ts';
import type { Members } from '../../shared/domain/objects/operations.ts';
import { canonicalValue, isMemberName } from '../../shared/domain/objects/typed-values.ts';
import { language, say } from '../cli/language.ts';

const byteOrderMark = 0xfeff;

/**
 * Parses a record as a JSON object. Refusals do not contain the parser's message, because it would
 * quote the record.
 */
export function parseRecord(bytes: Buffer): JsonObject {
  const text = textOf(bytes);
  if (text === undefined) throw refuse('malformedJson', say('This record is not UTF-8.'));
  let value: unknown;
  try {
    value = parseExactly(text);
  } catch (error) {
    if (error instanceof Refusal) throw error;
    throw refuse('malformedJson', say('This record is not JSON.'));
  }
  if (!isJsonObject(value))
    throw refuse('malformedJson', say('This record is no JSON dictionary.'));
  return value;
}

/**
 * Decodes UTF-8 without a byte order mark. Returns undefined if the bytes are not UTF-8. Faster
 * than `TextDecoder`.
 */
function textOf(bytes: Buffer): string | undefined {
  if (isAscii(bytes)) return bytes.toString('latin1');
  if (!isUtf8(bytes)) return undefined;
  const text = bytes.toString('utf8');
  return text.charCodeAt(0) === byteOrderMark ? text.slice(1) : text;
}

/** Members that every object of LeanCloud has. Times are ISO 8601. */
interface Head {
  objectId: string;
  createdAt: string;
  updatedAt: string;
}

/**
 * Reads the id and the times of a record. `now` replaces missing times. Throws error 104, or error
 * 111 for malformed times.
 */
export function headOf(record: JsonObject, now: string): Head {
  const objectId = idOf(record);
  if (objectId === undefined)
    throw refuse('missingObjectId', say('objectId is missing or is no id.'));
  const [created, updated] = [timeIn(record, 'createdAt'), timeIn(record, 'updatedAt')];
  const createdAt = created ?? updated ?? now;
  return { objectId, createdAt, updatedAt: updated ?? createdAt };
}

/** Returns the id of a record, even if the rest of the record is invalid. */
export function idOf({ objectId }: JsonObject): string | undefined {
  return typeof objectId === 'string' && isPublicId(objectId) ? objectId : undefined;
}

function timeIn(record: JsonObject, name: string): string | undefined {
  const value = record[name];
  if (value === undefined || value === null) return undefined;
  const time = typeof value === 'string' ? canonicalTime(value) : timeOfDate(value);
  if (time === undefined)
    throw refuse('incorrectType', say('{name} is no time (ISO 8601).', { name }));
  return time;
}

/**
 * Returns the members of a record for which `isKnown` is false, in stored form. `storedName`
 * converts their names. Throws errors 105, 106 and 111 with the member's name, never with its
 * value.
 */
export function membersOf(
  record: JsonObject,
  isKnown: (name: string, value: Json) => boolean,
  storedName = (name: string): string => name,
): Members {
  const members: Members = new Map();
  for (const name of Object.keys(record)) {
    const value = record[name] ?? null;
    if (isKnown(name, value)) continue;
    if (!isMemberName(name))
      throw refuse(
        'invalidKeyName',
        say('A member has a name that cannot be stored: {name}.', { name: printable(name) }),
      );
    try {
      members.set(storedName(name), canonicalValue(value));
    } catch (error) {
      throw nameMember(name, error);
    }
  }
  return members;
}

/**
 * Runs `work`. If `work` throws a refusal, prefixes its message with the member's name. The name
 * must have been validated.
 */
export function within<T>(name: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw nameMember(name, error);
  }
}

const nameMember = (name: string, error: unknown): unknown =>
  error instanceof Refusal
    ? refuse(error.kind, `${name}: ${operatorMessage(language(), error)}`)
    : error;

/** Returns a member's name in a form that is safe to print on a terminal. */
const printable = (name: string): string =>
  isMemberName(name) ? name : JSON.stringify(name.slice(0, 64).replace(/[^\x20-\x7E]/g, '?'));

/** Reads a string. Returns null if it is missing, null or empty. */
export function textOrNull(record: JsonObject, name: string): string | null {
  const value = record[name];
  if (value === undefined || value === null || value === '') return null;
  if (typeof value !== 'string')
    throw refuse('incorrectType', say('{name} must be a text.', { name }));
  return value;
}

/** Reads a boolean. Returns null if it is missing or null. */
export function booleanOrNull(record: JsonObject, name: string): boolean | null {
  const value = record[name];
  if (value === undefined || value === null) return null;
  if (typeof value !== 'boolean')
    throw refuse('incorrectType', say('{name} must be true or false.', { name }));
  return value;
}

/** Reads the ACL of a record. Ignores permissions with the value false. Throws error 123. */
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
