import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { chooseProtocol } from '../../api/channel/server.ts';
import { type ChannelApi, ChannelFixture } from '../channel/support/channel-fixture.ts';
import { encode, subProtocols } from '../channel/support/protobuf-client.ts';
import { RawClient } from '../channel/support/raw-client.ts';
import { mutated } from './generators/bytes.ts';
import { dictionaryOf, name, rawBody, text, value } from './generators/values.ts';
import { fuzz } from './runs.ts';

const kinds = ['login', 'invalidLogin', 'heartbeat', 'ack', 'otherService', 'other', 'unparseable'];

const message = fc.record(
  {
    cmd: fc.oneof(fc.constantFrom('login', 'ack', 'session', 'echo', '__proto__'), value),
    appId: fc.oneof(fc.constant('app'), value),
    installationId: fc.oneof(fc.constant('device'), value),
    ids: fc.oneof(fc.array(fc.oneof(text, value), { maxLength: 4 }), value),
    service: value,
    i: value,
  },
  { requiredKeys: [] },
);
const jsonFrame = fc.oneof(
  mutated(
    message.map((given) => Buffer.from(JSON.stringify(given))),
    2,
  ),
  rawBody,
  fc
    .array(fc.tuple(name, value), { maxLength: 3 })
    .map((entries) => Buffer.from(JSON.stringify(dictionaryOf(entries)))),
);

const int32 = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 });
const wellFormed = text.map((given) => given.toWellFormed());
const command = fc
  .record(
    {
      cmd: fc.integer({ min: 0, max: 25 }),
      appId: wellFormed,
      peerId: wellFormed,
      installationId: wellFormed,
      i: int32,
      service: fc.oneof(fc.constantFrom(0, 1, 2), int32),
      ackMessage: fc.record(
        { ids: fc.array(wellFormed, { maxLength: 5 }), t: int32 },
        { requiredKeys: [] },
      ),
      dataMessage: fc.record({ ids: fc.array(wellFormed, { maxLength: 2 }) }),
    },
    { requiredKeys: [] },
  )
  .map(encode);
const binaryFrame = fc.oneof(
  { weight: 4, arbitrary: mutated(command, 3) },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 100 }).map((bytes) => Buffer.from(bytes)) },
  // Nested groups, which a recursive parser would skip by recursion.
  { weight: 1, arbitrary: fc.nat(4000).map((depth) => Buffer.alloc(depth, 0x0b)) },
);
const base64Frame = fc.oneof(
  binaryFrame.map((bytes) => Buffer.from(bytes.toString('base64'))),
  mutated(binaryFrame.map((bytes) => Buffer.from(bytes.toString('base64')))),
);

const framesOf = (protocol: string) =>
  protocol === '' ? jsonFrame : protocol === 'lc.proto2base64.3' ? base64Frame : binaryFrame;

describe.each(['', ...subProtocols])('frames of the protocol "%s"', (protocolName) => {
  test('are parsed or unparseable, without an exception', async () => {
    const protocol = chooseProtocol([protocolName]);
    await fuzz(
      fc.property(framesOf(protocolName), fc.boolean(), (bytes, isBinary) => {
        const incoming = protocol?.parse(bytes, isBinary);
        expect(kinds).toContain(incoming?.kind);
        if (incoming?.kind === 'ack')
          expect(incoming.pushIds.every((id) => Number.isSafeInteger(id))).toBe(true);
        if (incoming?.kind === 'login')
          expect([typeof incoming.appId, typeof incoming.installationId]).toEqual([
            'string',
            'string',
          ]);
      }),
      { cases: 400 },
    );
  });
});

describe('the channel', () => {
  let fixture: ChannelFixture;
  let api: ChannelApi;
  beforeAll(async () => {
    fixture = await ChannelFixture.create();
    api = await fixture.startApi();
    await fixture.install(['device']);
  });
  afterAll(() => fixture.drop());

  test('answers or closes a socket with any input, and accepts the next device', async () => {
    const conversation = fc.constantFrom('', ...subProtocols).chain((protocol) =>
      fc.record({
        protocol: fc.constant(protocol),
        frames: fc.array(fc.tuple(framesOf(protocol), fc.boolean()), { maxLength: 6 }),
      }),
    );
    await fuzz(
      fc.asyncProperty(conversation, async ({ protocol, frames }) => {
        const code = await converse(api.channelUrl, protocol, frames);
        // The library closes with 1011 if the server throws.
        expect(code).not.toBe(1011);
      }),
      { cases: 25 },
    );
    const client = await RawClient.login(api.channelUrl, fixture.appId, 'device');
    client.socket.terminate();
    expect((await api.request('GET', '/healthz')).status).toBe(200);
  }, 600_000);
});

/** Sends the frames and closes. Returns the close code of the connection. */
function converse(url: string, protocol: string, frames: [Buffer, boolean][]): Promise<number> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(url, protocol === '' ? [] : [protocol], {
      perMessageDeflate: false,
    });
    socket.once('error', reject);
    socket.once('close', (code) => resolve(code));
    socket.once('open', () => {
      for (const [bytes, binary] of frames) socket.send(bytes, { binary }, () => undefined);
      socket.close(1000);
    });
  });
}
