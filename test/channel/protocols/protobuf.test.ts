import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { CloseReason, Protocol } from '../../../api/channel/protocols/protocol.ts';
import { chooseProtocol } from '../../../api/channel/server.ts';
import { encode, subProtocols } from '../support/protobuf-client.ts';

/** Parses hexadecimal bytes. Texts are in quotes. */
function bytesOf(notation: string): Buffer {
  const parts = notation.match(/'[^']*'|[0-9a-f]{2}/g) ?? [];
  return Buffer.concat(
    parts.map((p) => (p.startsWith("'") ? Buffer.from(p.slice(1, -1)) : Buffer.from(p, 'hex'))),
  );
}

function protocolOf(name: string): Protocol {
  const protocol = chooseProtocol([name]);
  if (!protocol) throw new Error(`${name} is not spoken`);
  return protocol;
}

const binary = protocolOf('lc.protobuf2.3');
const base64 = protocolOf('lc.proto2base64.3');
const message = (pushId: number, content: string) => ({ pushId, content, expiresAtMs: 1 });
const parsed = (notation: string) => binary.parse(bytesOf(notation), true);

// Tags of GenericCommand, field number × 8 + wire type: cmd 08, appId 1a, peerId 22, i 28,
// installationId 32, service 40, dataMessage (101) aa06, errorMessage (103) ba06, ackMessage (105)
// ca06, loggedinMessage (117) aa07.
describe('bytes derived by hand from protocol/channel.md#protobuf-form', () => {
  const sent: [string, Buffer | string | undefined, string][] = [
    ['loggedin', binary.loggedIn(undefined)?.data, '08 0f 40 00 aa07 02 08 00'],
    ['loggedin with a serial', binary.loggedIn(300)?.data, '08 0f 28 ac02 40 00 aa07 02 08 00'],
    ['echo', binary.heartbeat(3)?.data, '08 0e 28 03'],
    ['goaway', binary.goAway()?.data, '08 15'],
    [
      'data',
      binary.data([message(7, '{"a":1}')], false).data,
      `08 09 aa06 0e 0a 01 '7' 12 09 0a 07 '{"a":1}'`,
    ],
    [
      'data that waited',
      binary.data([message(7, '{}'), message(12, '{}')], true).data,
      `08 09 aa06 15 0a 01 '7' 0a 02 '12' 12 04 0a 02 '{}' 12 04 0a 02 '{}' 18 01`,
    ],
    [
      'error',
      binary.closeNotice('duplicatedLogin')?.data,
      "08 07 ba06 15 08 8520 12 10 'DUPLICATED_LOGIN'",
    ],
    [
      'refusal',
      binary.rejection({ service: 2, peerId: 'tom', serial: 9 })?.data,
      "08 07 22 03 'tom' 28 09 40 02 ba06 34 08 8420 12 11 'APP_NOT_AVAILABLE' 22 1c 'Only pushes are served here.'",
    ],
  ];
  test.each(sent)('the server sends %s', (_name, frame, expected) => {
    expect(frame).toEqual(bytesOf(expected));
  });

  test('parses login, ack, echo and session', () => {
    expect(parsed("08 08 1a 03 'app' 32 03 'dev'")).toEqual({
      kind: 'login',
      appId: 'app',
      installationId: 'dev',
    });
    expect(parsed("08 08 1a 03 'app' 28 05 32 03 'dev' 40 00")).toMatchObject({
      kind: 'login',
      serial: 5,
    });
    expect(parsed("08 03 ca06 07 52 01 '7' 52 02 '12'")).toEqual({ kind: 'ack', pushIds: [7, 12] });
    expect(parsed('08 0e 28 03')).toEqual({ kind: 'heartbeat', serial: 3 });
    expect(parsed("08 00 10 01 22 03 'tom' 28 09 40 02")).toEqual({
      kind: 'otherService',
      request: { service: 2, peerId: 'tom', serial: 9 },
    });
  });

  test('the text protocol has the same bytes in base64', () => {
    expect(base64.goAway()).toEqual({ data: 'CBU=', isBinary: false });
    expect(base64.parse(Buffer.from('CA4oAw=='), false)).toEqual({ kind: 'heartbeat', serial: 3 });
  });
});

describe('commands of devices', () => {
  test('only a login for pushes is a login, and malformed ids are invalid', () => {
    const device = { cmd: 'login', appId: 'app', installationId: 'dev' };
    expect(binary.parse(encode({ ...device, service: 1, i: 4 }), true)).toMatchObject({
      kind: 'otherService',
      request: { service: 1, serial: 4 },
    });
    for (const members of [
      { appId: '' },
      { appId: 'a b' },
      { installationId: '' },
      { installationId: 'a\u0000' },
    ])
      expect(binary.parse(encode({ ...device, ...members }), true)).toEqual({
        kind: 'invalidLogin',
      });
    expect(parsed('08 08')).toEqual({ kind: 'invalidLogin' });
  });

  test('impossible ids are removed from an acknowledgement', () => {
    const ids = ['5', '', '-1', '1e9', '9999999999999999', '٣', '__proto__'];
    expect(binary.parse(encode({ cmd: 'ack', ackMessage: { ids } }), true)).toEqual({
      kind: 'ack',
      pushIds: [5],
    });
    expect(parsed('08 03')).toEqual({ kind: 'ack', pushIds: [] });
    expect(binary.parse(encode({ cmd: 'ack', service: 2, ackMessage: { ids } }), true)).toEqual({
      kind: 'other',
    });
  });

  test('unknown commands and fields of any type are ignored', () => {
    expect(parsed('')).toEqual({ kind: 'other' });
    expect(parsed('08 63')).toEqual({ kind: 'other' });
    expect(parsed('08 ffffffffffffffffff01')).toEqual({ kind: 'other' });
    // A varint, eight bytes, four bytes, bytes, a group of fields, and `i` as bytes.
    const unknown =
      "f83e ff7f f93e 0102030405060708 fd3e 01020304 fa3e 02 'hm' fb3e 08 01 fc3e 2a 01 00";
    expect(parsed(`${unknown} 08 0e 28 03`)).toEqual({ kind: 'heartbeat', serial: 3 });
  });

  test.each([
    ['a varint without end', '08'],
    ['a varint that is too long', `08 ${'ff'.repeat(11)}`],
    ['a text beyond the frame', "08 08 1a 7f 'app'"],
    ['a message beyond the frame', "08 03 ca06 7f 52 01 '7'"],
    ['a text beyond its message', "08 03 ca06 03 52 05 '77777'"],
    ['a field number 0', '00 00'],
    ['a group that does not end', 'fb3e 08 01'],
    ['the end of a group that did not begin', 'fc3e'],
    ['a form that does not exist', '0f'],
    ['groups a thousand deep', 'fb3e'.repeat(1000)],
  ])('%s cannot be parsed', (_name, notation) => {
    expect(parsed(notation)).toEqual({ kind: 'unparseable' });
  });

  test('each protocol has its type of frame', () => {
    expect(binary.parse(bytesOf('08 0e'), false)).toEqual({ kind: 'unparseable' });
    expect(base64.parse(bytesOf('08 0e'), true)).toEqual({ kind: 'unparseable' });
    for (const text of ['CA4', 'CA=4', '{}', 'CA4=\n', 'C-4='])
      expect(base64.parse(Buffer.from(text), false), text).toEqual({ kind: 'unparseable' });
  });

  test('arbitrary bytes never throw, and commands of a client are parsed', () => {
    const kinds = [
      'login',
      'invalidLogin',
      'heartbeat',
      'ack',
      'otherService',
      'other',
      'unparseable',
    ];
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 400 }), (bytes) => {
        for (const protocol of subProtocols.map(protocolOf))
          for (const isBinary of [true, false])
            expect(kinds).toContain(protocol.parse(Buffer.from(bytes), isBinary).kind);
      }),
      { numRuns: 2000 },
    );
    const command = encode({
      cmd: 'login',
      i: 5,
      appId: 'app',
      installationId: 'dev',
      ackMessage: { ids: ['1', '22'] },
    });
    const flips = fc.array(fc.tuple(fc.nat(command.length - 1), fc.nat(255)), {
      minLength: 1,
      maxLength: 4,
    });
    fc.assert(
      fc.property(flips, fc.nat(command.length), (changes, length) => {
        const changed = Buffer.from(command);
        for (const [at, byte] of changes) changed[at] = byte;
        expect(kinds).toContain(binary.parse(changed.subarray(0, length), true).kind);
      }),
      { numRuns: 2000 },
    );
    const id = fc.integer({ min: 1, max: 999_999_999_999 });
    fc.assert(
      fc.property(
        fc.array(id, { maxLength: 50 }),
        fc.integer({ min: 0, max: 2 ** 31 - 1 }),
        (ids, serial) => {
          const ack = encode({
            cmd: 'ack',
            op: 3,
            i: serial,
            clientTs: 1e12,
            ackMessage: { t: 5, ids: ids.map(String) },
          });
          expect(binary.parse(ack, true)).toEqual({ kind: 'ack', pushIds: ids });
          expect(binary.parse(encode({ cmd: 'echo', i: serial }), true)).toEqual({
            kind: 'heartbeat',
            serial,
          });
        },
      ),
    );
  });
});

test('a close notice exists for codes that clients know', () => {
  const hasNotice = (reason: CloseReason) => binary.closeNotice(reason) !== undefined;
  expect((['unparseable', 'duplicatedLogin', 'loginTimeout'] as const).every(hasNotice)).toBe(true);
  expect((['goingAway', 'tryAgainLater', 'tooManyFrames'] as const).some(hasNotice)).toBe(false);
});
