import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Refusal } from '../../../shared/domain/errors/errors.ts';
import { parseKeys, project } from '../../../shared/query/list/keys.ts';
import { compileList, parseListQuery } from '../../../shared/query/list/list.ts';
import { parseWhere } from '../../../shared/query/parse/where.ts';
import { installationClass } from '../../../shared/query/schema.ts';
import { Params } from '../../../shared/query/sql/params.ts';
import { compileWhere } from '../../../shared/query/sql/where.ts';
import { masterViewer } from '../../../shared/query/viewer.ts';

const reader = masterViewer('app');
const parse = (where: unknown) => parseWhere(where, installationClass, reader);

function codeOf(work: () => unknown): number | undefined {
  try {
    work();
    return undefined;
  } catch (error) {
    if (error instanceof Refusal) return error.code;
    throw error;
  }
}

const nested = (depth: number, key: '$or' | '$and'): object =>
  depth === 0 ? { a: 1 } : { [key]: [nested(depth - 1, key)] };
const deep = (depth: number): unknown => (depth === 0 ? 1 : { a: deep(depth - 1) });

const inQuery = (a: unknown, where: object = { a }): object => ({ $inQuery: { where } });
const patterns = (count: number): object => ({
  $or: Array.from({ length: count }, (_, i) => ({ [`a${i}`]: { $regex: 'a' } })),
});
const geo = (latitude: number, longitude: number) => ({ __type: 'GeoPoint', latitude, longitude });

test('parseWhere accepts ten patterns at any place', () => {
  expect(codeOf(() => parse(patterns(10)))).toBeUndefined();
  expect(
    codeOf(() => parse({ $and: [patterns(5), { a: inQuery(0, patterns(5)) }] })),
  ).toBeUndefined();
});

const role = { __type: 'Pointer', className: '_Role', objectId: 'r' };
const user = { __type: 'Pointer', className: '_User', objectId: 'u' };

describe('parseWhere refuses', () => {
  const cases: [string, unknown, number][] = [
    ['a number', 5, 102],
    ['text that is no JSON', '{"a":', 102],
    ['text over 64 KB', `${' '.repeat(70_000)}{}`, 102],
    ['a list of numbers', [1], 102],
    ['eleven patterns', patterns(11), 102],
    [
      'eleven patterns, some in a sub-query',
      { $and: [patterns(6), { a: inQuery(0, patterns(5)) }] },
      102,
    ],
    ['an unknown operator at the top', { $nor: [] }, 102],
    ['an unknown operator', { a: { $mod: [2, 0] } }, 102],
    ['$select without a key', { a: { $select: { query: { className: '_User' } } } }, 102],
    [
      '$select of a hidden key',
      { a: { $select: { key: 'authData', query: { className: '_User' } } } },
      105,
    ],
    ['$select of no class', { a: { $select: { key: 'a', query: {} } } }, 101],
    ['$inQuery of an unknown class', { a: { $inQuery: { className: 'Team' } } }, 101],
    [
      '$inQuery of a class named like a member of Object',
      { a: { $inQuery: { className: 'constructor' } } },
      101,
    ],
    ['$inQuery that is no query', { a: { $inQuery: [] } }, 102],
    ['$inQuery with a condition as text', { a: { $inQuery: { where: '{}' } } }, 102],
    ['a hidden name within $inQuery', { a: { $inQuery: { where: { password: 'x' } } } }, 105],
    ['a hidden order within $inQuery', { a: { $inQuery: { order: 'sessionToken' } } }, 105],
    ['3 nested queries', { a: inQuery(inQuery(inQuery(1))) }, 102],
    ['6 queries', Array.from({ length: 6 }, () => ({ a: inQuery(1) })), 102],
    ['a sub-query for deviceProfile', { deviceProfile: inQuery(1) }, 102],
    ['$nearSphere of a text', { a: { $nearSphere: 'here' } }, 111],
    ['$nearSphere beyond the pole', { a: { $nearSphere: geo(91, 0) } }, 111],
    ['a distance below zero', { a: { $nearSphere: geo(1, 1), $maxDistance: -1 } }, 102],
    ['a distance that is a text', { a: { $nearSphere: geo(1, 1), $maxDistanceInMiles: '1' } }, 102],
    ['a distance alone', { a: { $maxDistanceInKilometers: 1 } }, 102],
    ['$within without a box', { a: { $within: [geo(1, 1), geo(2, 2)] } }, 102],
    [
      'a box of three corners',
      { a: { $within: { $box: [geo(1, 1), geo(2, 2), geo(3, 3)] } } },
      102,
    ],
    ['a box of numbers', { a: { $within: { $box: [1, 2] } } }, 111],
    [
      'a pair of texts',
      {
        a: {
          $within: {
            $box: [
              ['1', '2'],
              ['3', '4'],
            ],
          },
        },
      },
      111,
    ],
    ['a pair with one number', { a: { $within: { $box: [[1], [3, 4]] } } }, 111],
    [
      'a pair with three numbers',
      {
        a: {
          $within: {
            $box: [
              [1, 2, 3],
              [3, 4],
            ],
          },
        },
      },
      111,
    ],
    [
      'a pair that is no place',
      {
        a: {
          $within: {
            $box: [
              [1, 91],
              [3, 4],
            ],
          },
        },
      },
      111,
    ],
    ['no operator beside a pointer', { a: { ...user, $nothing: 1 } }, 102],
    [
      'a malformed pointer beside an operator',
      { a: { __type: 'Pointer', className: '_User', $ne: 1 } },
      106,
    ],
    ['$relatedTo of no pointer', { $relatedTo: { object: {}, key: 'users' } }, 102],
    ['$relatedTo without a key', { $relatedTo: { object: role } }, 102],
    ['$relatedTo of what is no relation', { $relatedTo: { object: role, key: 'name' } }, 102],
    [
      '$relatedTo of a class without relations',
      { $relatedTo: { object: user, key: 'users' } },
      102,
    ],
    ['$relatedTo of members of another class', { $relatedTo: { object: role, key: 'users' } }, 102],
    [
      '$relatedTo of a malformed pointer',
      { $relatedTo: { object: { ...role, objectId: 1 }, key: 'users' } },
      106,
    ],
    ['the order by a relation', { a: { $inQuery: { className: '_Role', order: 'users' } } }, 102],
    [
      '$select of a relation',
      { a: { $select: { key: 'users', query: { className: '_Role' } } } },
      102,
    ],
    ['operators mixed with members', { a: { $gt: 1, b: 2 } }, 102],
    ['an operator inside a value', { a: { b: { $gt: 1 } } }, 121],
    ['an operator in a list', { a: { $in: [{ $gt: 1 }] } }, 121],
    ['$or that is no list', { $or: { a: 1 } }, 102],
    ['$or of nothing', { $or: [] }, 102],
    ['11 levels of $or', nested(11, '$or'), 102],
    ['50 levels of $and', nested(50, '$and'), 102],
    ['a value 50 levels deep', { a: deep(50) }, 102],
    ['5000 conditions', Array.from({ length: 5000 }, () => ({ a: 1 })), 102],
    ['$in of 1001', { a: { $in: Array.from({ length: 1001 }, (_, i) => i) } }, 102],
    ['$in that is no list', { a: { $in: 'x' } }, 102],
    ['$all that is no list', { a: { $all: 1 } }, 102],
    ['$size of a fraction', { a: { $size: 0.5 } }, 102],
    ['$size below zero', { a: { $size: -1 } }, 102],
    ['$exists of a number', { a: { $exists: 1 } }, 102],
    ['$lt of null', { a: { $lt: null } }, 102],
    ['$lt of an array', { a: { $lt: [1] } }, 102],
    ['$options alone', { a: { $options: 'i' } }, 102],
    ['an empty name', { '': 1 }, 105],
    ['a name that begins with a digit', { '1a': 1 }, 105],
    ['a hidden name', { _id: 1 }, 105],
    ['a hidden name behind an operator', { $or: [{ _id: { $gt: 1 } }] }, 105],
    ['__proto__', JSON.parse('{"__proto__":1}'), 105],
    ['a name with a quote', { 'a"': 1 }, 105],
    ['a name with a backslash', { 'a\\': 1 }, 105],
    ['a name with ::', { 'a::text': 1 }, 105],
    ['a name with ->>', { 'a->>b': 1 }, 105],
    ['a name with NUL', { 'a\0': 1 }, 105],
    ['a path with an empty part', { 'a..b': 1 }, 105],
    ['a path into a column', { 'deviceType.x': 1 }, 105],
    ['a name of 300 characters', { ['a'.repeat(300)]: 1 }, 105],
    ['a pointer without id', { a: { __type: 'Pointer', className: 'X' } }, 106],
    ['a bad date', { a: { $gt: { __type: 'Date', iso: '2020-13-45' } } }, 111],
  ];
  test.each(cases)('%s', (_name, where, code) => {
    expect(codeOf(() => parse(where))).toBe(code);
  });

  test('rows that the caller may not list (403), with every operator at any depth', () => {
    const client = { appId: 'app', classes: new Set(['_Installation']), subjects: ['*'] };
    const codeFor = (where: unknown) => codeOf(() => parseWhere(where, installationClass, client));
    const query = { className: '_User', where: {} };
    for (const one of [{ $inQuery: query }, { $notInQuery: query }, { $inQuery: { where: {} } }])
      expect(codeFor({ $or: [{ a: 1 }, { a: one }] })).toBe(403);
    for (const name of ['$select', '$dontSelect'])
      expect(codeFor({ a: { [name]: { key: 'username', query } } })).toBe(403);
    const own = { className: '_Installation', where: { b: { $inQuery: query } } };
    expect(codeFor({ a: { $inQuery: own } })).toBe(403);
    expect(codeFor({ a: { $inQuery: { ...own, where: {} } } })).toBeUndefined();
  });

  test('any invalid JSON with a code', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6 }), (value) => {
        codeOf(() => compileWhere(parse(value), installationClass, new Params()));
      }),
      { numRuns: 2000 },
    );
  });
});

describe('client input', () => {
  const injection = `x'; DROP TABLE installation; --`;

  test('never becomes SQL text, only parameters', () => {
    const words = /^[A-Za-z0-9_ $.,:()<>=@?&|~#*'{}"[\]\n]*$/;
    fc.assert(
      fc.property(
        fc.string({ minLength: 5, maxLength: 20 }),
        fc.string({ maxLength: 5 }),
        (text, inner) => {
          const marked = `mark${text}mark`;
          const where = {
            a: marked,
            deviceType: { $in: [marked, inner] },
            channels: { $all: [marked] },
            b: { $ne: { c: marked } },
            c: { $gt: marked },
            $or: [{ vendor: marked }, { d: [marked] }],
          };
          const params = new Params();
          try {
            const sql = compileWhere(parse(where), installationClass, params);
            expect(sql).not.toContain('mark');
            expect(sql).toMatch(words);
          } catch (error) {
            expect(error).toBeInstanceOf(Refusal);
          }
        },
      ),
    );
  });

  test('in order and keys is a name or is refused', () => {
    const list = (query: object) => () =>
      compileList(
        parseListQuery({ ...query }, installationClass, reader),
        installationClass,
        reader,
      );
    for (const query of [
      { order: injection },
      { order: `a,${injection}` },
      { keys: injection },
      { keys: `-${injection}` },
    ])
      expect(codeOf(list(query))).toBe(105);
    const { orderBy, values } = list({ order: '-a.b,-updatedAt' })();
    expect(orderBy).toBe('(fields #> $2::text[]) DESC NULLS LAST, updated_at DESC NULLS LAST, id');
    expect(values).toEqual(['app', ['a', 'b']]);
  });

  test('is optional: no condition, no keys, limit 100', () => {
    for (const where of [undefined, null, '', {}, [], '{}', '[]'])
      expect(parse(where)).toEqual({ kind: 'and', all: [] });
    expect(parseListQuery({}, installationClass, reader)).toMatchObject({
      limit: 100,
      skip: 0,
      sortOrder: [],
      hasCount: false,
    });
  });
});

describe('a sub-query', () => {
  const sqlFor = (subjects: string[] | undefined) => {
    const params = new Params();
    const limited = { ...reader, subjects };
    const sql = compileWhere(
      parseWhere({ a: inQuery(1) }, installationClass, limited),
      installationClass,
      params,
    );
    return { sql, values: params.values };
  };

  test('finds at most 100 rows of its app by default', () => {
    const { sql, values } = sqlFor(undefined);
    expect(sql).toMatch(/FROM app_user WHERE app_id = \$\d+ AND .* LIMIT \$\d+ OFFSET \$\d+/s);
    expect(values).toEqual(expect.arrayContaining(['app', 100, 0]));
  });

  test('finds only users whose ACL allows the caller', () => {
    expect(sqlFor(undefined).sql).not.toContain('acl');
    const { sql, values } = sqlFor(['me', '*']);
    expect(sql).toContain('acl IS NULL OR acl ->');
    expect(values).toEqual(expect.arrayContaining(['me', '*']));
  });
});

describe('project', () => {
  test('keeps and drops members named like those of Object', () => {
    const document = JSON.parse(
      '{"constructor":1,"a":{"toString":1,"__proto__":2},"objectId":"x"}',
    );
    const keys = parseKeys('constructor,a.toString');
    expect(project(document, keys, installationClass)).toEqual({
      constructor: 1,
      a: { toString: 1 },
      objectId: 'x',
    });
    expect(project(document, parseKeys('-a'), installationClass)).toEqual({
      constructor: 1,
      objectId: 'x',
    });
  });
});
