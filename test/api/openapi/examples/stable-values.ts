import { createHash } from 'node:crypto';
import type { Examples } from '../../../../api/openapi/operation.ts';
import { isJsonObject, type Json } from '../../../../shared/domain/json.ts';

/**
 * Replaces the values of examples that differ between runs: keys, ids, times, addresses and numbers
 * that depend on the speed of the machine. A replacement has the same form as the value, and equal
 * values have the same replacement. So no secret of a run gets into the file.
 */
export interface Run {
  /** Start of the run. */
  startedAtMs: number;
  /** Replacements of texts, such as the addresses of servers. */
  texts: Readonly<Record<string, string>>;
}

const base = Date.parse('2027-03-01T08:00:00.000Z');
const stepMs = 300_000;
/**
 * Maximum age of a time that is shifted: the validity of the sandbox's certificates. Fixed times of
 * examples are later.
 */
const maxMs = 20 * 366 * 86_400_000;

/** Members whose long values are random. */
const randomNames =
  /^(id|value|digest|secret|lastPush|push|_push|app-id|captcha_token|validate_token|(?!device|private).*([kK]ey|[tT]oken|[iI]d))$/;
const long = /^(carillon_|\d+\.)?[\w-]{16,}$/;
const hex = /^([0-9a-f]{8}|[0-9a-f]{24}|[0-9a-f]{64})$/;
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Alphabet of a value, by its form and, if the form is ambiguous, by its member. */
const alphabets: [names: RegExp, form: RegExp, alphabet: string][] = [
  [/^(id|sha256|objectId|installation)$/, hex, '0123456789abcdef'],
  [/^id$/, /^msg_\d+_[0-9a-z]+$/, '0123456789'],
  [/^secret$/, /^whsec_/, 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'],
  [/^id$/, uuid, '0123456789abcdef'],
  [/^(code|smsCode)$/, /^\d{6}$/, '0123456789'],
  [/^(code|captcha_code)$/, /^[A-Z0-9]{4}$/, 'ABCDEFGHJKLMNPQRSTUVWXYZ'],
  [/^(keyId|teamId)$/, /^[A-Z0-9]{10}$/, 'ABCDEFGHJKLMNPQRSTUVWXYZ0123456789'],
  [
    /^channel$/,
    /^[A-Za-z0-9+/]{22}==$/,
    'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789',
  ],
  [/^sessionToken$/, long, 'abcdefghijklmnopqrstuvwxyz0123456789'],
  [/^code$/, /^[\w-]{43}$/, 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'],
  [randomNames, long, 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'],
];

/**
 * Values for members that depend on the machine, its speed, or the time when counts are written.
 */
const unstable: Readonly<Record<string, Json>> = {
  tookMs: 8,
  perSecond: 250,
  oldestSeconds: 3,
  connections: 0,
  pid: 4711,
  host: 'push-1',
  version: '1.0.0',
  calls: 42,
  'fees.calls': 0,
  'aps.timestamp': 1803888000,
  peakCallsPerMinute: 12,
  'results.used': 5,
  'results.requests': 5,
  plan: ['Index Scan using installation_pkey on installation (rows=1 cost=2.3)'],
  // The sandbox created its certificates before the run.
  notAfter: '2037-02-26T08:00:00.000Z',
  cursor: 'eyJpZCI6MTIzNDV9',
  address: '203.0.113.10',
};

/** Replaces the unstable values of all examples and shortens long lists in replies. */
export function stableExamples(examples: Examples, run: Run): Examples {
  const texts = new Map(Object.entries(run.texts));
  const shortened = Object.fromEntries(
    Object.entries(examples).map(([name, { reply, ...request }]) => [
      name,
      { ...request, ...(reply === undefined ? {} : { reply: shorten(reply) }) },
    ]),
  );
  walk(shortened, [], (name, value, path) => {
    if (typeof value !== 'string' || texts.has(value)) return;
    const found = alphabets.find(([names, form]) => names.test(name) && form.test(value));
    if (found) texts.set(value, randomText(value, path.join('.'), found[2]));
  });
  // Longest texts first, because one text may contain another.
  const replacements = [...texts].sort(([a], [b]) => b.length - a.length);
  return replaceIn(shortened, ['', ''], ([parent, name], value) => {
    const fixed = unstable[`${parent}.${name}`] ?? unstable[name];
    if (fixed !== undefined && typeOf(fixed) === typeOf(value)) return fixed;
    if (typeof value === 'number') return isNear(value, run) ? shift(value, run) : value;
    if (typeof value !== 'string') return value;
    const text = replacements.reduce((all, [from, to]) => all.replaceAll(from, to), value);
    return withStableTimes(text, run);
  }) as Examples;
}

const typeOf = (value: unknown): string => (Array.isArray(value) ? 'list' : typeof value);

/** Cuts lists to two entries. */
function shorten(value: Json): Json {
  if (Array.isArray(value)) return value.slice(0, 2).map(shorten);
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, shorten(member)]));
}

function walk(
  value: unknown,
  path: string[],
  visit: (name: string, value: unknown, path: string[]) => void,
) {
  visit(path.findLast((part) => !/^\d+$/.test(part)) ?? '', value, path);
  if (typeof value !== 'object' || value === null) return;
  for (const [name, member] of Object.entries(value)) walk(member, [...path, name], visit);
}

/** Names of a member and of the object that contains it. */
type Place = [parent: string, name: string];

function replaceIn(
  value: unknown,
  place: Place,
  replace: (place: Place, value: unknown) => unknown,
): unknown {
  const replaced = replace(place, value);
  if (replaced !== value || typeof value !== 'object' || value === null) return replaced;
  if (Array.isArray(value)) return value.map((one) => replaceIn(one, place, replace));
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [name, replaceIn(one, [place[1], name], replace)]),
  );
}

/** Returns a text of the same form, derived from the place where the value first appears. */
function randomText(value: string, place: string, alphabet: string): string {
  const [prefix = ''] = /^(carillon_|whsec_|msg_|\d+\.)/.exec(value) ?? [];
  const bytes = Buffer.concat(
    [0, 1].map((n) => createHash('sha256').update(`${n} ${place}`).digest()),
  );
  const rest = [...value.slice(prefix.length)].map((unit, i) =>
    unit === '-' && uuid.test(value) ? unit : alphabet[(bytes[i] ?? 0) % alphabet.length],
  );
  return prefix + rest.join('');
}

const isNear = (atMs: number, { startedAtMs }: Run): boolean =>
  Math.abs(atMs - startedAtMs) < maxMs;

/** Moves a time of the run to the base time and rounds it. A run takes less than a minute. */
const shift = (atMs: number, { startedAtMs }: Run): number =>
  base + Math.round((atMs - startedAtMs) / stepMs) * stepMs;

const times = /\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d(?:\.\d+)?Z)?/g;

function withStableTimes(text: string, run: Run): string {
  return text.replace(times, (time) => {
    const atMs = Date.parse(time);
    if (Number.isNaN(atMs) || !isNear(atMs, run)) return time;
    return time.length > 10 ? new Date(shift(atMs, run)).toISOString() : '2027-03-01';
  });
}
