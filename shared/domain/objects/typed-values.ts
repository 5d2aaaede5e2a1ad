import { timeOfDate } from '../client-values.ts';
import { refuse } from '../errors/errors.ts';
import { isJsonObject, type Json, type JsonObject } from '../json.ts';

/**
 * Checks values that clients send and converts them to a canonical form
 * (protocol/objects.md#typed-values). Equal values are then stored and compared as the same JSON.
 */

/** Maximum nesting, which limits recursion (protocol/known-problems.md#dos-by-query). */
const maxValueDepth = 32;

const memberName = /^[A-Za-z][A-Za-z0-9_]{0,127}$/;
const forbiddenInName = /[$.\0]/;
const pointerClass = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;
const pointerId = /^[A-Za-z0-9_-]{1,64}$/;
/**
 * Base64 with blanks. No blank can match two parts of the pattern, so that a long text takes linear
 * time.
 */
const base64Text = /^[A-Za-z0-9+/_\-\s]*(?:={1,2}\s*)?$/;

/** True if a stored object may have a member with this name (protocol/objects.md#member-names). */
export const isMemberName = (name: string): boolean => memberName.test(name);

/**
 * Returns a value in canonical form. Throws error 111 if the value cannot be stored (NUL, lone
 * surrogates, numbers beyond a double, nesting over 32) or is a malformed typed value. Throws error
 * 106 for a malformed pointer and 121 for a member name with `$` or `.`. Names such as `__proto__`
 * become ordinary own members.
 */
export function canonicalValue(value: unknown, depth = 0): Json {
  if (depth > maxValueDepth) throw refuse('incorrectType', 'A value is nested too deeply.');
  if (value === null || typeof value === 'boolean' || typeof value === 'bigint') return value;
  if (typeof value === 'string') return checkedText(value);
  if (typeof value === 'number') return checkedNumber(value);
  if (Array.isArray(value)) return value.map((item) => canonicalValue(item, depth + 1));
  if (!isJsonObject(value)) throw refuse('incorrectType');
  return Object.hasOwn(value, '__type') ? typedValue(value, depth) : members(value, depth);
}

function checkedText(text: string): string {
  if (text.includes('\0') || !text.isWellFormed())
    throw refuse('incorrectType', 'A text holds a character that cannot be stored.');
  return text;
}

function checkedNumber(number: number): number {
  if (!Number.isFinite(number)) throw refuse('incorrectType', 'A number is out of range.');
  // JSON cannot represent a negative zero.
  return number === 0 ? 0 : number;
}

function members(object: JsonObject, depth: number): JsonObject {
  return Object.fromEntries(
    Object.entries(object).map(([name, value]) => [
      checkedName(name),
      canonicalValue(value, depth + 1),
    ]),
  );
}

function checkedName(name: string): string {
  if (forbiddenInName.test(name) || !name.isWellFormed()) throw refuse('forbiddenName');
  if (name === '__op') throw refuse('incorrectType', 'An operation stands inside a value.');
  return name;
}

function typedValue(object: JsonObject, depth: number): Json {
  switch (object.__type) {
    case 'Date':
      return { __type: 'Date', iso: timeOfDate(object) ?? malformed('Date') };
    case 'Pointer':
      return pointer(object);
    case 'GeoPoint':
      return geoPoint(object);
    case 'Bytes':
      if (typeof object.base64 !== 'string' || !base64Text.test(object.base64))
        return malformed('Bytes');
      return { __type: 'Bytes', base64: Buffer.from(object.base64, 'base64').toString('base64') };
    case 'File':
      return file(members(object, depth));
    case 'Object':
    case 'Relation':
      return members(object, depth);
    default:
      throw refuse('incorrectType', 'Unknown __type.');
  }
}

/**
 * SDKs send the id of a file as `id`. The JavaScript SDK reads only `objectId` and cannot save a
 * file without it.
 */
function file(object: JsonObject): Json {
  const { id = object.objectId, objectId = id } = object;
  return typeof id === 'string' ? { ...object, id, objectId: objectId ?? id } : object;
}

function malformed(type: string): never {
  throw refuse('incorrectType', `Malformed ${type}.`);
}

/** Returns a pointer without the additional members that SDKs send in included pointers. */
function pointer(object: JsonObject): Json {
  const { className, objectId } = object;
  const isSound =
    typeof className === 'string' &&
    pointerClass.test(className) &&
    typeof objectId === 'string' &&
    pointerId.test(objectId);
  if (!isSound) throw refuse('malformedPointer');
  return { __type: 'Pointer', className, objectId };
}

function geoPoint(object: JsonObject): Json {
  const { latitude, longitude } = object;
  if (typeof latitude !== 'number' || typeof longitude !== 'number') return malformed('GeoPoint');
  if (Math.abs(latitude) > 90 || Math.abs(longitude) > 180) return malformed('GeoPoint');
  return {
    __type: 'GeoPoint',
    latitude: checkedNumber(latitude),
    longitude: checkedNumber(longitude),
  };
}
