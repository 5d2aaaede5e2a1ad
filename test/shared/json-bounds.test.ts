import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { jsonBounds, jsonBytesAtMost, measureJson, parseJson } from '../../shared/domain/json.ts';

const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`;

/** Counts values recursively, as the reference for `measureJson`. */
function countOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  const inner = Object.values(value);
  return (
    1 + Math.max(0, inner.length - 1) + inner.reduce((sum: number, one) => sum + countOf(one), 0)
  );
}

function depthOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}

describe('text within the bounds', () => {
  test('is parsed like JSON.parse, with an exact count of its values', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom(0, 2), (value, indent) => {
        const text = JSON.stringify(value, undefined, indent);
        expect(parseJson(text)).toEqual(JSON.parse(text));
        expect(measureJson(text)).toBe(1 + countOf(JSON.parse(text)));
      }),
    );
  });

  test('may contain brackets, commas, quotes and backslashes in its texts', () => {
    for (const inside of ['[[[[', '{{{{', ',,,,', '"[[[[', '\\"[[[', '\\\\"', '\\', '"'])
      expect(parseJson(JSON.stringify([inside]), { depth: 1, values: 2 })).toEqual([inside]);
  });
});

describe('text beyond the bounds', () => {
  test('is refused for its depth, exactly', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const depth = depthOf(JSON.parse(JSON.stringify(value)));
        expect(measureJson(JSON.stringify(value), { depth, values: 1e6 })).toBeDefined();
        if (depth > 0)
          expect(
            measureJson(JSON.stringify(value), { depth: depth - 1, values: 1e6 }),
          ).toBeUndefined();
      }),
    );
    expect(parseJson(nested(jsonBounds.depth))).toBeInstanceOf(Array);
    for (const text of [nested(jsonBounds.depth + 1), nested(200_000), '{"a":'.repeat(200_000)])
      expect(() => parseJson(text)).toThrow(SyntaxError);
  });

  test('is refused for the number of its values', () => {
    const list = (length: number) => `[${Array(length).fill('0').join(',')}]`;
    expect(parseJson(list(jsonBounds.values - 1))).toHaveLength(jsonBounds.values - 1);
    for (const text of [list(jsonBounds.values), `[${'[],'.repeat(jsonBounds.values)}0]`])
      expect(() => parseJson(text)).toThrow(SyntaxError);
  });

  test('is detected in invalid JSON too', () => {
    for (const start of ['x', '"', '"a" "', '\\"', "'", '{"a'])
      expect(() => parseJson(`${start}${nested(1000)}`)).toThrow(SyntaxError);
  });
});

test('the bytes of a value as JSON never exceed the estimate', () => {
  fc.assert(
    fc.property(fc.jsonValue({ stringUnit: 'binary' }), (value) => {
      const stored = JSON.parse(JSON.stringify(value));
      expect(jsonBytesAtMost(stored)).toBeGreaterThanOrEqual(
        Buffer.byteLength(JSON.stringify(stored)),
      );
    }),
    { numRuns: 25 },
  );
  for (const value of [
    '\u0000\ud800',
    -1.2345678901234567e-6,
    -1.7976931348623157e308,
    [[], {}],
    { '\n': false },
  ])
    expect(jsonBytesAtMost(value)).toBeGreaterThanOrEqual(Buffer.byteLength(JSON.stringify(value)));
});
