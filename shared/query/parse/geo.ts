import { refuse } from '../../domain/errors/errors.ts';
import { isJsonObject, type Json, type JsonObject } from '../../domain/json.ts';
import { canonicalValue } from '../../domain/objects/typed-values.ts';

/** Geo point in degrees. */
export interface Point {
  latitude: number;
  longitude: number;
}

/** Radius of the earth. The SDKs use the same value, so that distances agree. */
const kilometersPerRadian = 6371;
const milesPerRadian = 3958.8;

/**
 * Suffixes of `$maxDistance…` and `$minDistance…`, and the length of one radian in their unit. No
 * suffix means radians (protocol/queries.md#places).
 */
const units = new Map([
  ['', 1],
  ['InRadians', 1],
  ['InKilometers', kilometersPerRadian],
  ['InMiles', milesPerRadian],
]);

/** Operators that limit the distance of `$nearSphere`. */
export const distanceOperators: ReadonlySet<string> = new Set(
  ['$maxDistance', '$minDistance'].flatMap((name) => [...units.keys()].map((unit) => name + unit)),
);

/**
 * Parses a `{"__type":"GeoPoint"}`. Throws error 111 if the value is not a GeoPoint or is out of
 * range.
 */
export function parsePoint(operand: Json | undefined): Point {
  const value = operand === undefined ? null : canonicalValue(operand);
  if (!isJsonObject(value) || value.__type !== 'GeoPoint')
    throw refuse('incorrectType', 'A GeoPoint is expected.');
  return { latitude: Number(value.latitude), longitude: Number(value.longitude) };
}

/**
 * Parses the limit of `$maxDistance…` or `$minDistance…`, in radians. If several units are present,
 * the first unit counts. Throws error 102 if the limit is not a number or is negative.
 */
export function parseDistance(
  name: '$maxDistance' | '$minDistance',
  operators: JsonObject,
): number | undefined {
  for (const [unit, perRadian] of units) {
    const distance = Object.hasOwn(operators, name + unit) ? operators[name + unit] : undefined;
    if (distance === undefined) continue;
    if (typeof distance !== 'number' || !Number.isFinite(distance) || distance < 0)
      throw refuse('invalidQuery', `${name}${unit} takes a number that is not negative.`);
    return distance / perRadian;
  }
  return undefined;
}

/**
 * Parses a corner of a box: a GeoPoint, or a pair `[longitude, latitude]`, which the Python SDK
 * sends. Throws error 111 for other values.
 */
function parseCorner(operand: Json | undefined): Point {
  if (!Array.isArray(operand)) return parsePoint(operand);
  const [longitude = null, latitude = null, ...more] = operand;
  if (more.length > 0)
    throw refuse('incorrectType', 'A pair of longitude and latitude is expected.');
  return parsePoint({ __type: 'GeoPoint', latitude, longitude });
}

/**
 * Parses `{"$box":[southwest, northeast]}`. Throws error 102 if the shape is wrong, error 111 if a
 * corner is invalid.
 */
export function parseBox(operand: Json): { southwest: Point; northeast: Point } {
  const corners =
    isJsonObject(operand) && Object.keys(operand).length === 1 ? operand.$box : undefined;
  if (!Array.isArray(corners) || corners.length !== 2)
    throw refuse('invalidQuery', '$within takes a $box of two corners.');
  return { southwest: parseCorner(corners[0]), northeast: parseCorner(corners[1]) };
}
