import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { maxRecordBytes, type RawRecord, splitRecords } from '../../../ops/import/splitter.ts';

/** Splits a text that arrives in pieces of these sizes. */
async function split(text: string, sizes: number[] = [1000]): Promise<RawRecord[]> {
  const bytes = Buffer.from(text);
  const found: RawRecord[] = [];
  async function* chunks() {
    for (let from = 0, i = 0; from < bytes.length; i += 1) {
      const to = from + Math.max(1, sizes[i % sizes.length] ?? 1);
      yield bytes.subarray(from, to);
      from = to;
    }
  }
  for await (const records of splitRecords(chunks())) found.push(...records);
  return found;
}

const texts = (records: RawRecord[]) =>
  records.map(({ line, bytes }) => [line, bytes?.toString().trim()]);

describe('records of an export', () => {
  test('are its lines, except blank lines and the heading', async () => {
    const file =
      '#filetype:JSON-streaming {"type":"Class","class":"_User"}\n{"a":1}\r\n\n  \n{"b":2}';
    expect(texts(await split(file))).toEqual([
      [2, '{"a":1}'],
      [5, '{"b":2}'],
    ]);
    expect(await split(`\uFEFF${file}`)).toEqual(await split(file));
    expect(await split('')).toEqual([]);
    expect(await split('\n')).toEqual([]);
  });

  test('treats a later line that starts with # as an invalid record', async () => {
    expect(texts(await split('{"a":1}\n# not a heading\n'))).toEqual([
      [1, '{"a":1}'],
      [2, '# not a heading'],
    ]);
  });

  test.each([
    ['[{"a":"]},"},\n {"b":[1,{"c":"\\""}]}\n]', 1, 2],
    ['\uFEFF [{"a":"]},"},\n\n{"b":[1,{"c":"\\""}]}]', 1, 3],
    ['{"results":\n [{"a":"]},"} ,\n{"b":[1,{"c":"\\""}]}],"count":2}', 2, 3],
  ])('are the elements of an array: %j', async (file, first, second) => {
    expect(texts(await split(file))).toEqual([
      [first, '{"a":"]},"}'],
      [second, '{"b":[1,{"c":"\\""}]}'],
    ]);
  });

  test('has no records for an empty array, and reports a truncated array', async () => {
    expect(await split('[]')).toEqual([]);
    expect(await split('{"results":[ ]}')).toEqual([]);
    const [first, end, ...more] = await split('[{"a":1},\n{"b":2');
    expect(first?.bytes?.toString()).toBe('{"a":1}');
    expect(end).toMatchObject({ line: 2, message: expect.stringContaining('ends before') });
    expect(more).toEqual([]);
  });

  test('do not depend on the sizes of the chunks', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.dictionary(fc.string(), fc.jsonValue()), { maxLength: 20 }),
        fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1 }),
        fc.boolean(),
        async (objects, sizes, isList) => {
          const lines = objects.map((object) => JSON.stringify(object));
          const file = isList ? `[${lines.join(',\n')}]` : lines.join('\n');
          const found = await split(file, sizes);
          expect(found.map(({ bytes }) => JSON.parse(String(bytes)))).toEqual(
            objects.map((object) => JSON.parse(JSON.stringify(object))),
          );
          expect(found.map(({ line }) => line)).toEqual(objects.map((_, i) => i + 1));
        },
      ),
      { numRuns: 200 },
    );
  });

  test.each([
    ['lines', (record: string) => `{"a":1}\n${record}\n{"b":2}\n`],
    ['lists', (record: string) => `[{"a":1},\n${record},\n{"b":2}]`],
  ])('a record that is too long is refused in %s without affecting others', async (_form, file) => {
    const found = await split(file(`{"x":"${'x'.repeat(maxRecordBytes)}"}`), [65_536]);
    expect(found.map(({ line }) => line)).toEqual([1, 2, 3]);
    expect(found[1]).toEqual({ line: 2, message: expect.stringContaining('longer than 4 MB') });
    expect([found[0], found[2]].map((one) => one?.bytes?.toString().trim())).toEqual([
      '{"a":1}',
      '{"b":2}',
    ]);
  });
});
