import { connect, type Socket } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { type BareChannel, startBareChannel } from '../support/bare-channel.ts';
import { eventually } from '../support/channel-fixture.ts';

const handshake = {
  Connection: 'Upgrade',
  Upgrade: 'websocket',
  'Sec-WebSocket-Version': '13',
  'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
};
/** Close frame of a client with code 1000 and a zero masking key. */
const closeFrame = Buffer.from([0x88, 0x82, 0, 0, 0, 0, 3, 232]);

describe('a WebSocket of the channel', () => {
  let database: TestDatabase;
  let channel: BareChannel;

  beforeAll(async () => {
    database = await createTestDatabase();
    channel = await startBareChannel(database.url, {
      closeWithinMs: 100,
      tickEveryMs: 20,
      unsentFrames: 4,
    });
  });
  afterAll(async () => {
    await channel.close();
    await database.drop();
  });

  /** Sends an upgrade with the headers, followed by `after` in the same packet. */
  function upgrade(headers: Record<string, string>, after: Buffer = Buffer.alloc(0)): Socket {
    const { hostname, port, pathname } = new URL(channel.url);
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
    socket.write(
      Buffer.concat([
        Buffer.from(`GET ${pathname} HTTP/1.1\r\nHost: x\r\n${lines.join('')}\r\n`),
        after,
      ]),
    );
    return socket;
  }

  test('is accepted with the proof of RFC 6455, and reads the rest of a packet', async () => {
    const reply = await buffer(upgrade(handshake, closeFrame));
    const end = reply.indexOf('\r\n\r\n');
    const head = reply.toString('latin1', 0, end);
    expect(head).toMatch(/^HTTP\/1\.1 101 /);
    expect(head).toContain('Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=');
    expect(head).not.toMatch(/extensions|protocol:/i);
    expect(reply.subarray(end + 4)).toEqual(Buffer.from([0x88, 2, 3, 232]));
  });

  test.each([
    ['no key', { ...handshake, 'Sec-WebSocket-Key': 'short' }],
    ['another version', { ...handshake, 'Sec-WebSocket-Version': '7' }],
    ['another upgrade', { ...handshake, Upgrade: 'h2c' }],
  ])('is refused for %s', async (_name, headers) => {
    expect(String(await buffer(upgrade(headers)))).toMatch(/^HTTP\/1\.1 400 [\s\S]*"code":1,/);
  });

  test('selects the first sub-protocol that it supports, and no compression', async () => {
    const socket = new WebSocket(channel.url, ['klingon', 'lc.protobuf2.3', 'lc.protobuf2.1']);
    await new Promise((resolve) => socket.once('open', resolve));
    expect([socket.protocol, socket.extensions]).toEqual(['lc.protobuf2.3', '']);
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.close(4321);
    expect(await closed).toBe(4321);
  });

  test('answers pings with their data', async () => {
    const socket = new WebSocket(channel.url);
    await new Promise((resolve) => socket.once('open', resolve));
    const pong = new Promise((resolve) => socket.once('pong', (data) => resolve(String(data))));
    socket.ping('data');
    expect(await pong).toBe('data');
    socket.terminate();
  });

  test('is closed with 1009 above the frame limit, and ended without an answer', async () => {
    const client = upgrade(handshake, Buffer.from([0x82, 0xff, 0, 0, 0, 0, 0xff, 0, 0, 0]));
    client.pause();
    await eventually(() => channel.sockets.at(-1)?.destroyed === true);
    client.resume();
    expect((await buffer(client)).includes(Buffer.from([0x88, 2, 3, 241]))).toBe(true);
    client.destroy();
  });

  test('is ended if a closing device does not end the connection', async () => {
    const client = upgrade(handshake, closeFrame);
    await new Promise((resolve) => client.resume().once('end', resolve));
    await eventually(() => channel.sockets.at(-1)?.destroyed === true);
    client.destroy();
  });
});
