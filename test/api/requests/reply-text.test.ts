import fc from 'fast-check';
import { expect, test } from 'vitest';
import { replyText } from '../../../api/calls/call.ts';

test('a reply is the same JSON whether it is written at once or row by row', async () => {
  const anything = fc.oneof(
    fc.dictionary(fc.string(), fc.jsonValue()),
    fc.record({
      results: fc.array(fc.jsonValue()),
      count: fc.option(fc.nat(), { nil: undefined }),
    }),
  );
  await fc.assert(
    fc.asyncProperty(anything, async (body) => {
      expect(await replyText(body)).toBe(JSON.stringify(body));
    }),
  );
  expect(await replyText({ results: [undefined] })).toBe('{"results":[null]}');
});

test('a large list yields to other calls while it is written', async () => {
  const results = Array.from({ length: 20 }, () => ({ text: 'x'.repeat(100_000) }));
  const written = replyText({ results });
  let turns = 0;
  let isWritten = false;
  const count = () => {
    turns += 1;
    if (!isWritten) setImmediate(count);
  };
  setImmediate(count);
  await written;
  isWritten = true;
  expect(turns).toBeGreaterThan(4);
});
