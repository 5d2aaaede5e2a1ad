import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startBareChannel } from '../support/bare-channel.ts';
import { type ChannelApi, ChannelFixture, eventually } from '../support/channel-fixture.ts';
import { ProtobufClient, subProtocols } from '../support/protobuf-client.ts';
import { RawClient } from '../support/raw-client.ts';

describe('devices with protobuf', () => {
  let fixture: ChannelFixture;
  let api: ChannelApi;

  beforeAll(async () => {
    fixture = await ChannelFixture.create();
    api = await fixture.startApi();
  });
  afterAll(() => fixture.drop());

  const device = (installationId: string) => ({ appId: fixture.appId, installationId });
  const login = (installationId: string, subProtocol?: string) =>
    ProtobufClient.login(api.channelUrl, device(installationId), subProtocol);

  test.each(subProtocols)(
    '%s: waiting messages come as offline, then new ones, and acknowledgements count',
    async (name) => {
      const [id = 0] = await fixture.install([name]);
      const waited = await fixture.enqueue([id], { alert: 'Größe 🎈', a: { b: [null] } });
      const client = await login(name, name);
      expect(client.socket.protocol).toBe(name);
      await client.untilCommand('data');
      const fresh = await fixture.enqueue([id], { alert: 'new' });
      await client.untilCommand('data', 2);
      expect(client.received).toEqual([
        { cmd: 'loggedin', service: 0, loggedinMessage: { pushDisabled: false } },
        {
          cmd: 'data',
          dataMessage: {
            ids: [String(waited)],
            msg: [{ data: '{"alert":"Größe 🎈","a":{"b":[null]}}' }],
            offline: true,
          },
        },
        { cmd: 'data', dataMessage: { ids: [String(fresh)], msg: [{ data: '{"alert":"new"}' }] } },
      ]);
      client.send({ cmd: 'ack', ...device(name), ackMessage: { ids: client.messageIds } });
      for (const pushId of [waited, fresh])
        await eventually(async () => (await fixture.ackedOf(pushId)) === 1);
      client.close();
    },
  );

  test('a data command, byte by byte', async () => {
    const [id = 0] = await fixture.install(['bytes']);
    const client = await login('bytes');
    expect(client.bytes[0]).toEqual(Buffer.from('080f4000aa07020800', 'hex'));
    const pushId = String(await fixture.enqueue([id], { alert: 'x' }));
    await client.untilCommand('data');
    const json = '{"alert":"x"}';
    const ids = Buffer.from([0x0a, pushId.length, ...Buffer.from(pushId)]);
    const msg = Buffer.from([0x12, json.length + 2, 0x0a, json.length, ...Buffer.from(json)]);
    const length = ids.length + msg.length;
    expect(client.bytes[1]).toEqual(Buffer.from([0x08, 0x09, 0xaa, 0x06, length, ...ids, ...msg]));
    client.close();
  });

  test('an unacknowledged message is sent again, even with another protocol', async () => {
    const [id = 0] = await fixture.install(['polyglot']);
    const client = await login('polyglot');
    const pushId = await fixture.enqueue([id]);
    await client.untilCommand('data');
    client.close();
    await client.closed;
    const next = await RawClient.login(api.channelUrl, fixture.appId, 'polyglot');
    await next.untilFrames(() => next.messageIds.length === 1);
    expect(next.messageIds).toEqual([String(pushId)]);
    next.close();
  });

  test('messages from before the login are offline, and later ones are not', async () => {
    const [id = 0] = await fixture.install(['window']);
    const channel = await startBareChannel(fixture.database.url, {
      unacknowledgedMessages: 5,
      pageMessages: 2,
    });
    const enqueue = async (count: number) => {
      for (let i = 0; i < count; i += 1) await fixture.enqueue([id]);
    };
    await enqueue(12);
    const client = await ProtobufClient.login(channel.url, device('window'));
    const flags = () => client.data.flatMap(({ ids, offline }) => ids.map(() => offline === true));
    // Includes ids that were acknowledged before, as devices do.
    const ackAll = () => client.send({ cmd: 'ack', ackMessage: { ids: client.messageIds } });
    for (const count of [5, 10, 12]) {
      await client.until(() => client.messageIds.length === count);
      ackAll();
    }
    await eventually(async () => (await fixture.ackedOf(Number(client.messageIds.at(-1)))) === 1);
    // Five messages fill the window. The others are read when acknowledgements open it.
    await enqueue(12);
    for (const count of [17, 22, 24]) {
      await client.until(() => client.messageIds.length === count);
      ackAll();
    }
    expect(flags()).toEqual([...Array(12).fill(true), ...Array(12).fill(false)]);
    expect(new Set(client.messageIds).size).toBe(24);
    client.close();
    await channel.close();
  });

  test('replies repeat the serials, before and after the login', async () => {
    await fixture.install(['serial']);
    const client = await ProtobufClient.open(api.channelUrl);
    client.send({ cmd: 'echo', i: 1 });
    client.send({ cmd: 'login', i: 2, ...device('serial') });
    client.send({ cmd: 'echo', i: 3 });
    await client.untilCommand('echo', 2);
    client.send({ cmd: 'login', i: 4, ...device('serial') });
    client.send({ cmd: 'echo' });
    await client.untilCommand('echo', 3);
    const loggedin = { cmd: 'loggedin', service: 0, loggedinMessage: { pushDisabled: false } };
    expect(client.received).toEqual([
      { cmd: 'echo', i: 1 },
      { ...loggedin, i: 2 },
      { cmd: 'echo', i: 3 },
      { ...loggedin, i: 4 },
      { cmd: 'echo' },
    ]);
    client.close();
  });

  test('requests to other services are rejected, and the push session stays', async () => {
    const [id = 0] = await fixture.install(['messenger']);
    const client = await login('messenger');
    client.send({ cmd: 'session', op: 1, i: 1, peerId: 'tom', service: 2, appId: fixture.appId });
    client.send({ cmd: 'login', i: 2, service: 1, ...device('live-query') });
    client.send({ cmd: 'rcp' });
    await client.untilCommand('error', 2);
    const errorMessage = {
      code: 4100,
      reason: 'APP_NOT_AVAILABLE',
      detail: 'Only pushes are served here.',
    };
    expect(client.received.slice(1)).toEqual([
      { cmd: 'error', i: 1, peerId: 'tom', service: 2, errorMessage },
      { cmd: 'error', i: 2, service: 1, errorMessage },
    ]);
    const pushId = await fixture.enqueue([id]);
    await client.untilCommand('data');
    expect(client.messageIds).toEqual([String(pushId)]);
    client.close();
  });

  test('a second login ends the first with error 4101, across protocols', async () => {
    await fixture.install(['twin']);
    const first = await login('twin');
    const second = await login('twin', 'lc.proto2base64.3');
    expect(await first.closed).toEqual({ code: 4101, reason: 'DUPLICATED_LOGIN' });
    expect(first.received.at(-1)).toEqual({
      cmd: 'error',
      errorMessage: { code: 4101, reason: 'DUPLICATED_LOGIN' },
    });
    const third = await RawClient.login(api.channelUrl, fixture.appId, 'twin');
    expect((await second.closed).code).toBe(4101);
    third.close();
  });

  test.each([
    [{ appId: 'unknownAppUnknownAppUnkn', installationId: 'x' }, 4100, 'APP_NOT_AVAILABLE'],
    [{ installationId: 'x' }, 4103, 'INVALID_LOGIN'],
  ])('a refused login gives its reason before the close: %o', async (members, code, reason) => {
    const client = await ProtobufClient.open(api.channelUrl);
    client.send({ cmd: 'login', ...members });
    expect(await client.closed).toEqual({ code, reason });
    expect(client.received).toEqual([{ cmd: 'error', errorMessage: { code, reason } }]);
  });

  test('frames without a command close the connection', async () => {
    await fixture.install(['rude']);
    const binary = await login('rude');
    binary.socket.send('{}');
    expect(await binary.closed).toEqual({ code: 4114, reason: 'UNPARSEABLE_RAW_MESSAGE' });
    const text = await ProtobufClient.open(api.channelUrl, 'lc.proto2base64.3');
    text.socket.send('not base64!');
    expect((await text.closed).code).toBe(4114);
    const large = await ProtobufClient.open(api.channelUrl);
    large.sendBytes(Buffer.alloc(20_000));
    expect((await large.closed).code).toBe(1009);
  });

  test('arbitrary frames leave the connection open or close it with an error', async () => {
    const channel = await startBareChannel(fixture.database.url, {});
    const frame = fc.uint8Array({ maxLength: 64 }).map((bytes) => Buffer.from(bytes));
    await fc.assert(
      fc.asyncProperty(frame, fc.constantFrom(...subProtocols), async (bytes, subProtocol) => {
        const client = await ProtobufClient.open(channel.url, subProtocol);
        client.sendBytes(bytes);
        client.send({ cmd: 'echo', i: 77 });
        const isInOrder = client
          .until(() => client.received.some(({ i }) => i === 77))
          .then(
            () => true,
            () => false,
          );
        if (await isInOrder) client.close();
        expect([4103, 4114, 1005]).toContain((await client.closed).code);
      }),
      { numRuns: 60 },
    );
    await channel.close();
  });

  test('of several offered protocols the first supported one is used', async () => {
    const client = await ProtobufClient.open(api.channelUrl, ['lc.protobuf9.9', 'lc.protobuf2.1']);
    expect(client.socket.protocol).toBe('lc.protobuf2.1');
    client.close();
  });
});
