import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  canonicalText,
  isSameJson,
  parseJsonText,
  printJson,
} from '../../../ops/console/src/draft/json-text.ts';
import { visibleMessage } from '../../../ops/console/src/draft/previews.ts';
import {
  conditionOf,
  hasIncomplete,
  newRow,
  partOf,
  rowsOf,
} from '../../../ops/console/src/draft/rows.ts';
import {
  type Clause,
  comparisons,
  readCondition,
  takesList,
  withoutClauses,
  writeCondition,
} from '../../../ops/console/src/draft/where.ts';
import { connectorIds } from '../../../shared/domain/labels.ts';

const scalar = fc.oneof(
  fc.string(),
  fc.integer(),
  fc.boolean(),
  fc.constant({ __type: 'Date', iso: '2026-01-02T03:04:05.000Z' }),
);
const clause: fc.Arbitrary<Clause> = fc
  .tuple(fc.constantFrom('deviceType', 'channels', 'score', 'vip'), fc.constantFrom(...comparisons))
  .chain(([member, comparison]) => {
    const list = fc.array(scalar, { maxLength: 3 });
    const value = takesList(comparison)
      ? list
      : comparison === 'exists'
        ? fc.boolean()
        : comparison === 'matches'
          ? fc.string()
          : scalar;
    return value.map((wanted): Clause => ({ member, comparison, value: wanted }));
  });
const condition = fc.record({
  all: fc.array(clause, { maxLength: 5 }),
  any: fc.array(fc.array(clause, { maxLength: 3 }), { maxLength: 3 }),
});
const none = { all: [], any: [] };
const rounds = { numRuns: 200 };

test('rows become a condition, and the condition becomes the same rows', () => {
  fc.assert(
    fc.property(condition, (rows) => {
      const where = writeCondition(rows);
      const read = readCondition(where);
      // Afterwards, rows about the same member are adjacent.
      expect(read && isSameJson(writeCondition(read), where)).toBe(true);
      expect(read?.all.length).toBe(rows.all.length);
      expect(read?.any.map((group) => group.length)).toEqual(rows.any.map((group) => group.length));
    }),
    rounds,
  );
});

test('a condition that rows can show is written unchanged', () => {
  fc.assert(
    fc.property(
      fc.dictionary(fc.constantFrom('a', 'b', '$or', '$and', '$nor'), fc.jsonValue()),
      (value) => {
        const where = parseJsonText(JSON.stringify(value));
        const rows = readCondition(where);
        if (rows) expect(isSameJson(writeCondition(rows), where)).toBe(true);
      },
    ),
    rounds,
  );
});

test.for([
  '{"city":{"$nearSphere":{"__type":"GeoPoint","latitude":1,"longitude":2}}}',
  '{"user":{"$inQuery":{"className":"_User","where":{}}}}',
  '{"a":{"$regex":"^x","$options":"i"}}',
  '{"a":null}',
  '{"$or":[{"$or":[{"a":1}]}]}',
  '{"$and":{"a":1}}',
  '[{"a":1}]',
  '"{}"',
])('leaves %s as JSON', (text) => {
  expect(readCondition(parseJsonText(text))).toBeUndefined();
});

test('keeps ids that a double cannot represent', () => {
  const where = parseJsonText('{"account":{"$in":[9007199254740993]}}');
  const rows = readCondition(where);
  expect(rows && printJson(writeCondition(rows))).toBe('{"account":{"$in":[9007199254740993]}}');
});

test('each row has the number of devices without it', () => {
  const rows = rowsOf(
    readCondition(parseJsonText('{"score":{"$gt":1,"$lt":5},"city":"Rome"}')) ?? none,
  );
  const counts = withoutClauses([
    { kind: 'where', text: '{"score":{"$gt":1}}', without: 7 },
    { kind: 'where', text: '{"score":{"$lt":5}}', without: null },
    { kind: 'where', text: '{"city":"Rome"}', without: 9 },
    { kind: 'fresh', text: 'updatedAt', without: 8 },
  ]);
  expect(rows.all.map((row) => counts.get(canonicalText(partOf(row) ?? {})))).toEqual([
    7,
    undefined,
    9,
  ]);
});

test('a row without a value adds no condition, and is reported as incomplete', () => {
  const rows = { all: [newRow('city')], any: [] };
  expect(conditionOf(rows)).toEqual(none);
  expect(hasIncomplete(rows)).toBe(true);
  const typed = { ...newRow('account'), comparison: 'anyOf' as const, kind: 'number' as const };
  expect(hasIncomplete({ all: [{ ...typed, text: '1, x' }], any: [] })).toBe(true);
  const part = partOf({ ...typed, text: '9007199254740993, 2' });
  expect(part && printJson(part)).toBe('{"account":{"$in":[9007199254740993,2]}}');
});

test('rows show the clauses of every condition, and return the same clauses', () => {
  fc.assert(
    fc.property(condition, (clauses) => {
      const groups = clauses.any.filter((group) => group.length > 0);
      const given = { all: clauses.all, any: groups };
      expect(isSameJson(writeCondition(conditionOf(rowsOf(given))), writeCondition(given))).toBe(
        true,
      );
    }),
    rounds,
  );
});

test('previews read the texts of every gateway from its request', () => {
  const text = { title: 'T', text: 'B' };
  const payloads: [string, string][] = [
    ['apns', '{"aps":{"alert":{"title":"T","body":"B"},"badge":3}}'],
    ['fcm', '{"message":{"notification":{"title":"T","body":"B"}}}'],
    [
      'vendor_g',
      '{"message":{"notification":{"title":"T"},"android":{"notification":{"body":"B"}}}}',
    ],
    ['vendor_a', '{"message":{"android":{"notification":{"title":"T","body":"B"}}}}'],
    ['vendor_b', '{"title":"T","description":"B","extra.jobkey":"x"}'],
    ['vendor_c', '{"noticeBarInfo":{"title":"T","content":"B"}}'],
    ['vendor_d', '{"title":"T","content":"B"}'],
    ['vendor_e', '{"title":"T","content":"B"}'],
    ['vendor_f', '{"android":{"notification":{"title":"T","body":"B"}}}'],
    ['channel', '{"title":"T","alert":"B"}'],
    ['webpush', '{"notification":{"title":"T","body":"B"},"title":"T","alert":"B"}'],
  ];
  // `fcm` and `vendor_g` are one gateway.
  expect(connectorIds.filter((id) => visibleMessage(id, {}) === undefined)).toEqual([]);
  for (const [connector, payload] of payloads)
    expect(visibleMessage(connector, parseJsonText(payload)), connector).toMatchObject(text);
  expect(visibleMessage('apns', parseJsonText('{"aps":{"content-available":1}}'))).toMatchObject({
    isSilent: true,
  });
  expect(visibleMessage('apns', parseJsonText('{"aps":{"alert":"B"}}'))).toMatchObject({
    title: '',
    text: 'B',
  });
});
