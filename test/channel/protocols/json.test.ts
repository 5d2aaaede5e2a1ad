import fc from 'fast-check';
import { expect, test } from 'vitest';
import { jsonProtocol } from '../../../api/channel/protocols/protocol.ts';

const parse = (text: string) => jsonProtocol.parse(Buffer.from(text), false);

test('an acknowledgement has the same meaning for any spelling of its JSON', () => {
  const part = fc.oneof(
    fc.string({ maxLength: 20 }),
    fc.string({ unit: 'grapheme', maxLength: 20 }),
    fc.constantFrom('app', 'a-b_c', 'x"y', 'back\\slash', '\u0000', '","ids":["1"]', ''),
  );
  const id = fc.oneof(
    fc.nat().map(String),
    part,
    fc.bigInt({ min: 0n, max: 10n ** 18n }).map(String),
    fc.nat(),
  );
  const ack = fc.record(
    {
      cmd: fc.constant('ack'),
      appId: part,
      installationId: part,
      ids: fc.array(id, { maxLength: 4 }),
    },
    { requiredKeys: ['cmd', 'ids'] },
  );
  fc.assert(
    fc.property(ack, (command) => {
      const compact = parse(JSON.stringify(command));
      expect(compact).toEqual(parse(JSON.stringify(command, null, 1)));
      const isId = (given: string | number) => /^\d{1,16}$/.test(String(given));
      const wanted = command.ids.filter(isId).map(Number).filter(Number.isSafeInteger);
      expect(compact).toEqual({ kind: 'ack', pushIds: wanted });
    }),
    { numRuns: 500 },
  );
});

test.each([
  '{"cmd":"ack","ids":["1"]',
  '{"cmd":"ack","ids":["1"]}}',
  '{"cmd":"ack","installationId":"a\nb","ids":["1"]}',
])('text that is not JSON is no acknowledgement: %s', (text) => {
  expect(parse(text)).toEqual({ kind: 'unparseable' });
});
