import type { NearTest } from '../condition.ts';
import type { Point } from '../parse/geo.ts';
import { itemsAt, type JsonMember } from './json-path.ts';
import type { Params } from './params.ts';

/** Tests of geo points in a jsonb column; values of other types never match. */

/** Recognises a stored geo point; its numbers were checked when it was written. */
const isPoint = `item @> '{"__type":"GeoPoint"}' AND jsonb_typeof(item -> 'latitude') = 'number' AND jsonb_typeof(item -> 'longitude') = 'number'`;

const latitude = `(item ->> 'latitude')::float8`;
const longitude = `(item ->> 'longitude')::float8`;

/** Compiles the great-circle distance of `item` to a point, in radians (haversine); NULL for other values. */
function compileDistance(point: Point, params: Params): string {
  const [lat, lng] = [point.latitude, point.longitude].map(
    (degrees) => `radians(${params.add(degrees)}::float8)`,
  );
  const half = (a: string, b: string | undefined) => `power(sin((radians(${a}) - ${b}) / 2), 2)`;
  const sum = `${half(latitude, lat)} + cos(radians(${latitude})) * cos(${lat}) * ${half(longitude, lng)}`;
  return `CASE WHEN ${isPoint} THEN 2 * asin(least(1, sqrt(${sum}))) END`;
}

export function compileNear(
  member: JsonMember,
  { point, minDistance: least, maxDistance: most }: NearTest,
  params: Params,
): string {
  const length = compileDistance(point, params);
  const bounds = [
    ...(least === undefined ? [] : [`length >= ${params.add(least)}::float8`]),
    ...(most === undefined ? [] : [`length <= ${params.add(most)}::float8`]),
  ];
  return `EXISTS (SELECT FROM (SELECT ${length} AS length FROM ${itemsAt(member, params)} AS item) AS lengths
    WHERE ${['length IS NOT NULL', ...bounds].join(' AND ')})`;
}

/** Compiles the distance to sort by: that of the nearest point, if there are several. */
export function compileSortDistance(member: JsonMember, point: Point, params: Params): string {
  return `(SELECT min(${compileDistance(point, params)}) FROM ${itemsAt(member, params)} AS item)`;
}

/** Compiles a box; it crosses the date line if its west edge is east of its east edge. */
export function compileWithin(
  member: JsonMember,
  { southwest, northeast }: { southwest: Point; northeast: Point },
  params: Params,
): string {
  const number = (value: number) => `${params.add(value)}::float8`;
  const west = `${longitude} >= ${number(southwest.longitude)}`;
  const east = `${longitude} <= ${number(northeast.longitude)}`;
  const connective = southwest.longitude <= northeast.longitude ? 'AND' : 'OR';
  const box = `${latitude} BETWEEN ${number(southwest.latitude)} AND ${number(northeast.latitude)} AND (${west} ${connective} ${east})`;
  return `EXISTS (SELECT FROM ${itemsAt(member, params)} AS item WHERE CASE WHEN ${isPoint} THEN ${box} ELSE false END)`;
}
