import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startBareChannel } from './support/bare-channel.ts';
import { type ChannelApi, ChannelFixture, eventually } from './support/channel-fixture.ts';
import { ProtobufClient, subProtocols } from './support/protobuf-client.ts';
import { RawClient } from './support/raw-client.ts';

describe('devices that speak protobuf', () => {
  let world: ChannelFixture;
  let api: ChannelApi;

  beforeAll(async () => {
    world = await ChannelFixture.create();
    api = await world.startApi();
  });
  afterAll(() => world.drop());

  const device = (installationId: string) => ({ appId: world.appId, installationId });
  const login = (installationId: string, subProtocol?: string) =>
    ProtobufClient.login(api.channelUrl, device(installationId), subProtocol);

  test.each(subProtocols)(
    '%s: what waited comes as offline, then what is new; acknowledgements count',
    async (name) => {
      const [id = 0] = await world.install([name]);
      const waited = await world.deposit([id], { alert: 'Größe 🎈', a: { b: [null] } });
      const client = await login(name, name);
      expect(client.socket.protocol).toBe(name);
      await client.hears('data');
      const fresh = await world.deposit([id], { alert: 'new' });
      await client.hears('data', 2);
      expect(client.heard).toEqual([
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
      client.say({ cmd: 'ack', ...device(name), ackMessage: { ids: client.letterIds } });
      for (const pushId of [waited, fresh]) await eventually(async () => (await world.ackedOf(pushId)) === 1);
      client.close();
    },
  );

  test('a data command, byte by byte', async () => {
    const [id = 0] = await world.install(['bytes']);
    const client = await login('bytes');
    expect(client.bytes[0]).toEqual(Buffer.from('080f4000aa07020800', 'hex'));
    const pushId = String(await world.deposit([id], { alert: 'x' }));
    await client.hears('data');
    const json = '{"alert":"x"}';
    const ids = Buffer.from([0x0a, pushId.length, ...Buffer.from(pushId)]);
    const msg = Buffer.from([0x12, json.length + 2, 0x0a, json.length, ...Buffer.from(json)]);
    const length = ids.length + msg.length;
    expect(client.bytes[1]).toEqual(Buffer.from([0x08, 0x09, 0xaa, 0x06, length, ...ids, ...msg]));
    client.close();
  });

  test('what was not acknowledged comes again, to a client of another language too', async () => {
    const [id = 0] = await world.install(['polyglot']);
    const client = await login('polyglot');
    const pushId = await world.deposit([id]);
    await client.hears('data');
    client.close();
    await client.closed;
    const next = await RawClient.login(api.channelUrl, world.appId, 'polyglot');
    await next.hears(() => next.letterIds.length === 1);
    expect(next.letterIds).toEqual([String(pushId)]);
    next.close();
  });

  test('all that waited is offline, however many commands it takes; what comes after is not, however late', async () => {
    const [id = 0] = await world.install(['window']);
    const channel = await startBareChannel(world.database.url, {
      unacknowledgedMessages: 5,
      pageMessages: 2,
    });
    const deposit = async (count: number) => {
      for (let i = 0; i < count; i += 1) await world.deposit([id]);
    };
    await deposit(12);
    const client = await ProtobufClient.login(channel.url, device('window'));
    const flags = () => client.data.flatMap(({ ids, offline }) => ids.map(() => offline === true));
    // Letters that were acknowledged before among them, as devices do.
    const ackAll = () => client.say({ cmd: 'ack', ackMessage: { ids: client.letterIds } });
    for (const letters of [5, 10, 12]) {
      await client.until(() => client.letterIds.length === letters);
      ackAll();
    }
    await eventually(async () => (await world.ackedOf(Number(client.letterIds.at(-1)))) === 1);
    // Five fill the window; the others are read when acknowledgements open it.
    await deposit(12);
    for (const letters of [17, 22, 24]) {
      await client.until(() => client.letterIds.length === letters);
      ackAll();
    }
    expect(flags()).toEqual([...Array(12).fill(true), ...Array(12).fill(false)]);
    expect(new Set(client.letterIds).size).toBe(24);
    client.close();
    await channel.close();
  });

  test('serials come back with the answers, before and after the login', async () => {
    await world.install(['serial']);
    const client = await ProtobufClient.open(api.channelUrl);
    client.say({ cmd: 'echo', i: 1 });
    client.say({ cmd: 'login', i: 2, ...device('serial') });
    client.say({ cmd: 'echo', i: 3 });
    await client.hears('echo', 2);
    client.say({ cmd: 'login', i: 4, ...device('serial') });
    client.say({ cmd: 'echo' });
    await client.hears('echo', 3);
    const loggedin = { cmd: 'loggedin', service: 0, loggedinMessage: { pushDisabled: false } };
    expect(client.heard).toEqual([
      { cmd: 'echo', i: 1 },
      { ...loggedin, i: 2 },
      { cmd: 'echo', i: 3 },
      { ...loggedin, i: 4 },
      { cmd: 'echo' },
    ]);
    client.close();
  });

  test('other services are refused to whoever asked, and the login for pushes stays', async () => {
    const [id = 0] = await world.install(['messenger']);
    const client = await login('messenger');
    client.say({ cmd: 'session', op: 1, i: 1, peerId: 'tom', service: 2, appId: world.appId });
    client.say({ cmd: 'login', i: 2, service: 1, ...device('live-query') });
    client.say({ cmd: 'rcp' });
    await client.hears('error', 2);
    const errorMessage = { code: 4100, reason: 'APP_NOT_AVAILABLE', detail: 'Only pushes are served here.' };
    expect(client.heard.slice(1)).toEqual([
      { cmd: 'error', i: 1, peerId: 'tom', service: 2, errorMessage },
      { cmd: 'error', i: 2, service: 1, errorMessage },
    ]);
    const pushId = await world.deposit([id]);
    await client.hears('data');
    expect(client.letterIds).toEqual([String(pushId)]);
    client.close();
  });

  test('a second login ends the first with error 4101, whatever languages they speak', async () => {
    await world.install(['twin']);
    const first = await login('twin');
    const second = await login('twin', 'lc.proto2base64.3');
    expect(await first.closed).toEqual({ code: 4101, reason: 'DUPLICATED_LOGIN' });
    expect(first.heard.at(-1)).toEqual({
      cmd: 'error',
      errorMessage: { code: 4101, reason: 'DUPLICATED_LOGIN' },
    });
    const third = await RawClient.login(api.channelUrl, world.appId, 'twin');
    expect((await second.closed).code).toBe(4101);
    third.close();
  });

  test.each([
    [{ appId: 'nobodysAppnobodysAppnobo', installationId: 'x' }, 4100, 'APP_NOT_AVAILABLE'],
    [{ installationId: 'x' }, 4103, 'INVALID_LOGIN'],
  ])('a refused login says why before the close: %o', async (members, code, reason) => {
    const client = await ProtobufClient.open(api.channelUrl);
    client.say({ cmd: 'login', ...members });
    expect(await client.closed).toEqual({ code, reason });
    expect(client.heard).toEqual([{ cmd: 'error', errorMessage: { code, reason } }]);
  });

  test('frames that are no commands cost the connection', async () => {
    await world.install(['rude']);
    const binary = await login('rude');
    binary.socket.send('{}');
    expect(await binary.closed).toEqual({ code: 4114, reason: 'UNPARSEABLE_RAW_MESSAGE' });
    const text = await ProtobufClient.open(api.channelUrl, 'lc.proto2base64.3');
    text.socket.send('not base64!');
    expect((await text.closed).code).toBe(4114);
    const large = await ProtobufClient.open(api.channelUrl);
    large.sayBytes(Buffer.alloc(20_000));
    expect((await large.closed).code).toBe(1009);
  });

  test('arbitrary frames either leave the connection in order or end it with a word', async () => {
    const channel = await startBareChannel(world.database.url, {});
    const frame = fc.uint8Array({ maxLength: 64 }).map((bytes) => Buffer.from(bytes));
    await fc.assert(
      fc.asyncProperty(frame, fc.constantFrom(...subProtocols), async (bytes, subProtocol) => {
        const client = await ProtobufClient.open(channel.url, subProtocol);
        client.sayBytes(bytes);
        client.say({ cmd: 'echo', i: 77 });
        const isInOrder = client
          .until(() => client.heard.some(({ i }) => i === 77))
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

  test('the client names several languages: the first that is spoken is taken', async () => {
    const client = await ProtobufClient.open(api.channelUrl, ['lc.protobuf9.9', 'lc.protobuf2.1']);
    expect(client.socket.protocol).toBe('lc.protobuf2.1');
    client.close();
  });
});
