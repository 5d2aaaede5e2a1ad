import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Refusal } from '../../../shared/domain/errors/errors.ts';
import type { Json } from '../../../shared/domain/json.ts';
import { parseCql, withoutCql } from '../../../shared/query/cql/select.ts';

const where = (condition: string, given: Json[] = []): Json =>
  parseCql(`select * from C where ${condition}`, given).where;
const point = (latitude: number, longitude: number) => ({
  __type: 'GeoPoint',
  latitude,
  longitude,
});

describe('a condition of CQL is translated to where', () => {
  const cases: [string, Json][] = [
    ["name = 'x'", { name: 'x' }],
    ['a.b = -1.5e3', { 'a.b': -1500 }],
    ['`order` = true', { order: true }],
    ['a != null', { a: { $ne: null } }],
    ['a <> 1', { a: { $ne: 1 } }],
    ['a > 1 AND a<=2', { $and: [{ a: { $gt: 1 } }, { a: { $lte: 2 } }] }],
    [
      'a < 1 or b >= 2 and c = 3',
      { $or: [{ a: { $lt: 1 } }, { $and: [{ b: { $gte: 2 } }, { c: 3 }] }] },
    ],
    ['(a = 1 or b = 2) and c = 3', { $and: [{ $or: [{ a: 1 }, { b: 2 }] }, { c: 3 }] }],
    ['a in (\'x\', "y")', { a: { $in: ['x', 'y'] } }],
    ['a not in (1)', { a: { $nin: [1] } }],
    ['a all (1, 2)', { a: { $all: [1, 2] } }],
    ['a = [1, 2]', { a: [1, 2] }],
    ['size(tags) = 2', { tags: { $size: 2 } }],
    ['size = 2', { size: 2 }],
    ['a is exists', { a: { $exists: true } }],
    ['a is not exists', { a: { $exists: false } }],
    ['a is null', { a: null }],
    ['a is not null', { a: { $ne: null } }],
    ["a like 'x.y%'", { a: { $regex: '^x\\.y.*$', $options: 's' } }],
    ["a regexp '^\\\\d+\\w'", { a: { $regex: '^\\d+\\w' } }],
    ["a = 'it\\'s'", { a: "it's" }],
    [
      "a > date('2020-01-02T03:04:05Z')",
      { a: { $gt: { __type: 'Date', iso: '2020-01-02T03:04:05.000Z' } } },
    ],
    [
      "a = pointer('_User', 'u')",
      { a: { $eq: { __type: 'Pointer', className: '_User', objectId: 'u' } } },
    ],
    ['a near geopoint(1, 2)', { a: { $nearSphere: point(1, 2) } }],
    ['a near [1, 2] max 5 km', { a: { $nearSphere: point(1, 2), $maxDistanceInKilometers: 5 } }],
    ['a near [1, 2] max 5 miles', { a: { $nearSphere: point(1, 2), $maxDistanceInMiles: 5 } }],
    [
      'a near [1, 2] max 0.5 radians',
      { a: { $nearSphere: point(1, 2), $maxDistanceInRadians: 0.5 } },
    ],
    [
      'a within [1, 2] and [3, 4] and b = 1',
      { $and: [{ a: { $within: { $box: [point(1, 2), point(3, 4)] } } }, { b: 1 }] },
    ],
    [
      "related to users from pointer('_Role', 'r')",
      {
        $relatedTo: {
          object: { __type: 'Pointer', className: '_Role', objectId: 'r' },
          key: 'users',
        },
      },
    ],
  ];
  test.each(cases)('%s', (text, expected) => {
    expect(where(text)).toEqual(expected);
  });

  test('with sub-queries', () => {
    const inner = { className: 'D', where: { n: 1 }, limit: 1000, skip: 0, order: '' };
    const operand = { key: 'k', query: inner };
    expect(where('a in (select k from D where n = 1)')).toEqual({ a: { $select: operand } });
    expect(where('a = (select k from D where n = 1)')).toEqual({ a: { $select: operand } });
    expect(where('a not in (select k from D where n = 1)')).toEqual({
      a: { $dontSelect: operand },
    });
    expect(where('a != (select k from D where n = 1)')).toEqual({ a: { $dontSelect: operand } });
  });

  test('with placeholders, in order', () => {
    expect(where('a = ? and b in (?, ?) and c in ?', [1, 2, 3, [4]])).toEqual({
      $and: [{ a: 1 }, { b: { $in: [2, 3] } }, { c: { $in: [4] } }],
    });
    expect(where('a near ? max ? km', [point(1, 2), 5])).toEqual({
      a: { $nearSphere: point(1, 2), $maxDistanceInKilometers: 5 },
    });
    expect(where('a = ?', [{ $gt: 1 }])).toEqual({ a: { $eq: { $gt: 1 } } });
  });
});

describe('a statement', () => {
  test('has keys, limits and sort order', () => {
    expect(
      parseCql(
        'SELECT name, -a.b, include owner.twin FROM _User LIMIT 10, 5 ORDER BY score, +name DESC, -x',
      ),
    ).toEqual({
      className: '_User',
      where: {},
      keys: ['name', '-a.b', 'owner'],
      include: ['owner.twin'],
      hasCount: false,
      isCountOnly: false,
      limit: 5,
      skip: 10,
      order: 'score,-name,-x',
    });
    expect(parseCql('select count(*) from C order by a asc')).toMatchObject({
      hasCount: true,
      limit: 0,
      order: 'a',
    });
    expect(parseCql('select include a, b.c, include d, * from C')).toMatchObject({
      keys: [],
      include: ['a', 'd'],
    });
    expect(parseCql('select *, count(*) from C limit ?', [7])).toMatchObject({
      hasCount: true,
      keys: [],
      limit: 7,
    });
  });

  test.each([
    '',
    'select',
    'select * C',
    'select * from',
    'insert into C (a) values (1)',
    'select * from C where a',
    'select * from C where a = ',
    'select * from C where a =',
    "select * from C where a = 'open",
    'select * from C where (a = 1',
    'select * from C where a = 1)',
    'select * from C where a = 1; drop table app_user',
    'select * from C where a in (select * from D)',
    'select * from C where a in (select b, c from D)',
    'select * from C where a in (select b, include c from D)',
    'select * from C where a = date(5)',
    "select * from C where a = date('yesterday')",
    'select * from C where a near [1] max 5 km',
    'select * from C where a near [1, 2] max 5 feet',
    "select * from C where related to likes pointer('D', 'x')",
    'select * from C where related to likes from',
    'select * from C limit -1',
    'select * from C limit 1.5',
    'select * from C order a',
    `select * from C where ${'('.repeat(17)}a = 1${')'.repeat(17)}`,
    `select * from C where a = '${'x'.repeat(17_000)}'`,
    'select * from C where a = ?',
  ])('is refused with 300: %j', (cql) => {
    expect(() => parseCql(cql)).toThrow(expect.objectContaining({ code: 300 }));
  });

  test.each(['[', 'date(', '(', 'x in (select x from C where '])(
    'is refused with 300 if it is nested too deeply: %s',
    (opening) => {
      const value = /^[[d]/.test(opening) ? 'a = ' : '';
      const cql = `select * from C where ${value}${opening.repeat(16_000 / opening.length)}`;
      expect(() => parseCql(cql)).toThrow(expect.objectContaining({ code: 300 }));
    },
  );

  test('ignores values beyond its placeholders', () => {
    expect(parseCql('select * from C where a = ?', [1, 2]).where).toEqual({ a: 1 });
  });

  test('with any text results in a query or a refusal', () => {
    const word = fc.constantFrom(
      'select',
      '*',
      'from',
      'C',
      'where',
      'a',
      '=',
      '(',
      ')',
      'and',
      'or',
      'in',
      'not',
      "'x'",
      '1',
      '?',
      'limit',
      ',',
      'order',
      'by',
      'near',
      '[',
      ']',
      'size',
      'is',
      'null',
      '\\',
    );
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc
            .array(word, { maxLength: 20 })
            .map((words) => `select * from C where ${words.join(' ')}`),
        ),
        (cql) => {
          try {
            parseCql(cql, [1]);
          } catch (error) {
            expect(error).toBeInstanceOf(Refusal);
          }
        },
      ),
      { numRuns: 3000 },
    );
  });
});

describe('withoutCql', () => {
  test('returns a body without CQL unchanged, and converts the condition otherwise', () => {
    expect(withoutCql({ where: { a: 1 }, data: {} })).toEqual({ where: { a: 1 }, data: {} });
    expect(withoutCql({ cql: null, data: {} })).toEqual({ data: {} });
    expect(withoutCql({ cql: 'select * from _Installation where a = 1', data: {} })).toEqual({
      where: { a: 1 },
      data: {},
    });
  });
});
