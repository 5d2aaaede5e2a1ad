import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import type { App } from '../../../shared/domain/apps/app.ts';
import { Refusal } from '../../../shared/domain/errors/errors.ts';
import type { Json } from '../../../shared/domain/json.ts';
import { applyWrites } from '../../../shared/domain/objects/operations.ts';
import type { TestResponse } from '../../support/api.ts';
import { useTestApi } from '../../support/test-api.ts';
import { signUp } from '../../support/users.ts';

let app: App;
const api = useTestApi();
beforeAll(async () => {
  app = await api.createApp();
});
/** One value of each type of a member. */
const start: Record<string, Json> = {
  nothing: null,
  number: 6,
  text: 'x',
  flag: true,
  list: [1, 'x', { a: 1, b: 2 }],
  object: { n: 1 },
  date: { __type: 'Date', iso: '2020-01-01T00:00:00.000Z' },
  point: { __type: 'GeoPoint', latitude: 1, longitude: 2 },
  pointer: { __type: 'Pointer', className: '_User', objectId: 'u' },
  bytes: { __type: 'Bytes', base64: 'AAE=' },
};
const typed = ['text', 'flag', 'object', 'date', 'point', 'pointer', 'bytes'];
const refused = (names: string[]) => Object.fromEntries(names.map((name) => [name, 111]));
const countsAs = (missing: Json, number: Json) => ({
  missing,
  nothing: missing,
  number,
  ...refused([...typed, 'list']),
});
const listsAs = (missing: Json, list: Json) => ({
  missing,
  nothing: missing,
  list,
  ...refused([...typed, 'number']),
});
const everything = (value: Json | undefined) =>
  Object.fromEntries(['missing', ...Object.keys(start)].map((name) => [name, value]));

/**
 * Result of each operation on each type: a value, `undefined` for no member, or 111 for a refusal.
 */
const table: [Json & object, Record<string, Json | undefined>][] = [
  [{ __op: 'Increment', amount: 2 }, countsAs(2, 8)],
  [{ __op: 'Increment' }, countsAs(1, 7)],
  [{ __op: 'Decrement', amount: 2.5 }, countsAs(-2.5, 3.5)],
  [{ __op: 'BitAnd', value: 3 }, countsAs(0, 2)],
  [{ __op: 'BitOr', value: 9 }, countsAs(9, 15)],
  [{ __op: 'BitXor', value: 3 }, countsAs(3, 5)],
  [{ __op: 'Add', objects: [1, 1] }, listsAs([1, 1], [1, 'x', { a: 1, b: 2 }, 1, 1])],
  [
    { __op: 'AddUnique', objects: [1, { b: 2, a: 1 }, 2, 2] },
    listsAs([1, { b: 2, a: 1 }, 2], [1, 'x', { a: 1, b: 2 }, 2]),
  ],
  [{ __op: 'Remove', objects: [1, { b: 2, a: 1 }] }, listsAs([], ['x'])],
  [{ __op: 'Delete' }, everything(undefined)],
  [{ __op: 'AddRelation', objects: [start.pointer ?? null] }, everything(111)],
  [{ __op: 'RemoveRelation', objects: [start.pointer ?? null] }, everything(111)],
  [
    {
      __op: 'Batch',
      ops: [
        { __op: 'Delete' },
        { __op: 'Add', objects: [7] },
        { __op: 'AddUnique', objects: [7, 8] },
      ],
    },
    everything([7, 8]),
  ],
  [
    {
      __op: 'Batch',
      ops: [
        { __op: 'Increment', amount: 1 },
        { __op: 'Increment', amount: 1 },
      ],
    },
    countsAs(2, 8),
  ],
];

/** For each class: how to create an object and change it as its owner. */
const classes: [
  string,
  (members: object) => Promise<{ put: (body: unknown, query?: string) => Promise<TestResponse> }>,
][] = [
  [
    '_Installation',
    async (members) => {
      const body = { deviceType: 'web', installationId: `ops-${++serial}`, ...members };
      const { objectId } = (await api.request('POST', '/1.1/installations', { app, body })).body;
      const path = `/1.1/installations/${objectId}`;
      return {
        put: (change, query = '') => api.request('PUT', path + query, { app, body: change }),
      };
    },
  ],
  ['_User', (members) => signUp(api, app, members)],
];
let serial = 0;

describe.each(classes)('operations on members of %s', (_name, create) => {
  test.each(table)('%j', async (operation, expected) => {
    const object = await create(start);
    const found = await Promise.all(
      Object.keys(expected).map(async (name): Promise<[string, Json | undefined]> => {
        const { status, body } = await object.put({ [name]: operation }, '?fetchWhenSave=true');
        return [name, status === 200 ? body[name] : body.code];
      }),
    );
    expect(Object.fromEntries(found)).toEqual(expected);
  });

  test('change members of objects by dotted keys, but not of other types', async () => {
    const object = await create(start);
    const change = {
      'object.n': { __op: 'Increment', amount: 4 },
      'object.made.deep': { __op: 'Add', objects: [1] },
      'missing.a': { __op: 'BitOr', value: 1 },
      'nothing.a': 1,
    };
    const { status, body } = await object.put(change, '?new=true');
    expect(status).toBe(200);
    expect(body).toMatchObject({
      object: { n: 5, made: { deep: [1] } },
      missing: { a: 1 },
      nothing: { a: 1 },
    });
    for (const name of ['number', 'text', 'flag', 'list', 'date', 'point', 'pointer', 'bytes'])
      expect((await object.put({ [`${name}.a`]: 1 })).body.code).toBe(111);
  });

  test('set members of a new object', async () => {
    const object = await create({
      n: { __op: 'Increment', amount: 3 },
      list: { __op: 'AddUnique', objects: [1, 1] },
      none: { __op: 'Delete' },
      'deep.n': { __op: 'Decrement', amount: 1 },
    });
    const { body } = await object.put(
      {
        n: { __op: 'Increment', amount: 0 },
        list: { __op: 'Add', objects: [] },
        none: 1,
        'deep.m': 1,
      },
      '?new=1',
    );
    expect(body).toMatchObject({ n: 3, list: [1], none: 1, deep: { n: -1, m: 1 } });
  });

  test('are not lost in concurrent calls: 100 increments add 100', async () => {
    const object = await create({});
    const replies = await Promise.all(
      Array.from({ length: 100 }, (_, i) =>
        object.put({
          n: { __op: 'Increment', amount: 1 },
          seen: { __op: 'AddUnique', objects: [i % 10] },
          'a.b': { __op: 'BitXor', value: 1 << (i % 7) },
        }),
      ),
    );
    expect(replies.map(({ status }) => status)).toEqual(Array(100).fill(200));
    const { body } = await object.put(
      {
        n: { __op: 'Increment', amount: 0 },
        seen: { __op: 'Remove', objects: [] },
        'a.b': { __op: 'BitOr', value: 0 },
      },
      '?new=true',
    );
    expect({ n: body.n, seen: body.seen.length, b: body.a.b }).toEqual({
      n: 100,
      seen: 10,
      b: 0b11,
    });
  });

  test('run only if the condition is met, and then once', async () => {
    const object = await create({ turn: 0, at: start.point });
    const query = `?where=${encodeURIComponent(JSON.stringify({ turn: 0, at: { $nearSphere: start.point, $maxDistance: 1 } }))}`;
    const replies = await Promise.all(
      Array.from({ length: 20 }, () =>
        object.put({ turn: { __op: 'Increment', amount: 1 } }, query),
      ),
    );
    const codes = replies.map(({ status, body }) => (status === 200 ? 200 : body.code)).sort();
    expect(codes).toEqual([200, ...Array(19).fill(305)]);
  });
});

test('are applied completely or refused, and the result can be stored', () => {
  const value = fc.jsonValue({ maxDepth: 2 });
  const operation: fc.Arbitrary<Json> = fc
    .record({
      __op: fc.constantFrom(
        'Increment',
        'Add',
        'AddUnique',
        'Remove',
        'Delete',
        'BitAnd',
        'Batch',
        'toString',
      ),
      amount: fc.oneof(fc.double(), value),
      objects: fc.oneof(fc.array(value), value),
      value: fc.oneof(fc.integer(), value),
      ops: fc.array(
        fc.record({ __op: fc.constantFrom('Add', 'Delete', 'Remove'), objects: fc.array(value) }),
      ),
    })
    .map((one) => JSON.parse(JSON.stringify(one)));
  fc.assert(
    fc.property(
      value,
      operation,
      fc.constantFrom([], ['a'], ['__proto__'], ['constructor', 'b']),
      (current, write, inner) => {
        const members = new Map([['m', JSON.parse(JSON.stringify(current))]]);
        const before = JSON.stringify(members.get('m'));
        try {
          applyWrites(members, [{ path: ['m', ...inner], value: write }]);
          expect(JSON.stringify([...members])).not.toContain('__op');
        } catch (error) {
          expect(error).toBeInstanceOf(Refusal);
          expect(JSON.stringify(members.get('m'))).toBe(before);
        }
        expect(Object.hasOwn(Object.prototype, 'b')).toBe(false);
      },
    ),
    { numRuns: 2000 },
  );
});
