import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseExactly } from '../../shared/domain/exact-numbers.ts';
import { applyWrites, type Members } from '../../shared/domain/objects/operations.ts';

describe('JSON text keeps', () => {
  test.each([
    ['7091800003790954036'],
    ['-7091800003790954036'],
    ['9007199254740992'],
    ['9007199254740993'],
    ['18446744073709551615'],
    ['12345678901234567000'],
    ['100000000000000000000000'],
    [`1${'0'.repeat(308)}`],
    [`1${'2'.repeat(300)}`],
  ])('the integer %s', (text) => {
    expect(BigInt(digitsOf(JSON.stringify(parseExactly(text))))).toBe(BigInt(text));
  });

  test('integers within lists and objects', () => {
    const text = '{"a":[{"b":7091800003790954036},-7091800003790954037],"c":"7091800003790954036"}';
    expect(JSON.stringify(parseExactly(text))).toBe(text);
  });

  test('every integer with up to 309 digits', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(10n ** 308n), max: 10n ** 308n }), (number) => {
        expect(BigInt(digitsOf(JSON.stringify(parseExactly(String(number)))))).toBe(number);
      }),
    );
  });

  test('every value that JSON.stringify writes', () => {
    fc.assert(
      fc.property(
        fc.jsonValue(),
        fc.double({ noNaN: true, noDefaultInfinity: true }),
        (value, number) => {
          const text = JSON.stringify([value, number]);
          expect(JSON.stringify(parseExactly(text))).toBe(text);
        },
      ),
    );
  });

  // A pattern that searched for the last zeros took eleven seconds.
  test('a number with many zeros inside is refused in linear time', { timeout: 5000 }, () => {
    const text = `[9007199254740993.${'0'.repeat(60_000)}1]`;
    expect(() => parseExactly(text)).toThrow('cannot be kept exactly');
  });

  test.each([
    ['7.091800003790954036e18', '7091800003790954036'],
    ['9007199254740993.0', '9007199254740993'],
    ['900719925474099.3000e1', '9007199254740993'],
    ['1e22', '1e+22'],
    ['1e-7', '1e-7'],
    ['0.10000000000000001', '0.1'],
    ['39.899999999999999', '39.9'],
    ['0e999', '0'],
    ['-0', '0'],
  ])('the value of %s', (text, json) => {
    expect(JSON.stringify(parseExactly(text))).toBe(json);
  });
});

/** Writes out an exponent. */
function digitsOf(text: string): string {
  const [, whole = '', fraction = '', exponent = '0'] =
    /^(-?\d+)(?:\.(\d+))?(?:e\+(\d+))?$/.exec(text) ?? [];
  return whole + fraction.padEnd(Number(exponent), '0');
}

describe('JSON text is refused by the path of', () => {
  test.each([
    ['1e400', 'this number'],
    ['{"a":{"b":[0,-1e400]}}', 'a.b.1: this number'],
    ['{"a":1e-400}', 'a: this number'],
    ['{"a":[[9007199254740993.5]]}', 'a.0.0: this number'],
    [`[{"a":1},{"b":1${'0'.repeat(309)}}]`, '1.b: this number'],
    ['{"a":{"x":1e999},"b":1e999}', 'a.x: this number'],
  ])('%s', (text, message) => {
    expect(() => parseExactly(text)).toThrow(message);
  });
});

test.each([
  ['7091800003790954036', 1, '7091800003790954037'],
  ['9007199254740991', 2, '9007199254740993'],
  ['7091800003790954036', 7091800003790954036n, '14183600007581908072'],
  ['9007199254740993', -2, '9007199254740991'],
  ['0.1', 0.2, '0.30000000000000004'],
])('Increment of %s by %s is exact', (current, amount, result) => {
  const members: Members = new Map([['n', parseExactly(current)]]);
  applyWrites(members, [{ path: ['n'], value: { __op: 'Increment', amount } }]);
  expect(JSON.stringify(members.get('n'))).toBe(result);
});

test.each([
  ['BitOr', 1, '9223372036854775807'],
  ['BitAnd', 9223372036854775000n, '9223372036854775000'],
  ['BitXor', 1, '9223372036854775807'],
])('%s uses 64-bit integers', (operation, value, result) => {
  const members: Members = new Map([['n', 9223372036854775806n]]);
  applyWrites(members, [{ path: ['n'], value: { __op: operation, value } }]);
  expect(JSON.stringify(members.get('n'))).toBe(result);
});

test.each([
  ['Increment', { amount: 0.5 }],
  ['BitOr', { value: 1n << 64n }],
  ['BitOr', { value: 0.5 }],
])('%s with %o refuses what it cannot represent', (operation, operand) => {
  const members: Members = new Map([['n', 7091800003790954036n]]);
  const write = { path: ['n'], value: { __op: operation, ...operand } };
  expect(() => applyWrites(members, [write])).toThrow(/number/);
});
