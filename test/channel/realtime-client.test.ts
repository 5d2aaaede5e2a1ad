import { connect, createServer, type Socket } from 'node:net';
import { Realtime } from 'leancloud-realtime';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ChannelFixture, eventually, freePort } from './support/channel-fixture.ts';
import { CommandType, openDevice } from './support/realtime-device.ts';

/** One address before several processes, as a load balancer: new connections go to the one it is told. */
class TcpProxy {
  targetPort = 0;
  readonly port: number;
  readonly #server = createServer((socket) => this.#pass(socket));

  private constructor(port: number) {
    this.port = port;
  }

  static async open(): Promise<TcpProxy> {
    const client = new TcpProxy(await freePort());
    await new Promise<void>((resolve) => client.#server.listen(client.port, '127.0.0.1', resolve));
    return client;
  }

  close(): void {
    this.#server.close();
  }

  #pass(socket: Socket): void {
    const target = connect(this.targetPort, '127.0.0.1');
    socket.pipe(target).pipe(socket);
    for (const end of [socket, target]) end.on('error', () => [socket, target].map((s) => s.destroy()));
  }
}

/**
 * The realtime library that apps have today, as it comes from the registry: it finds the socket by the router, packs
 * and reads the bytes, knows answers by their serials, beats and moves. What a push device says on top of that (login,
 * acknowledgement) is said through it, as its own live queries do.
 */
describe('the realtime library', () => {
  let world: ChannelFixture;
  let client: TcpProxy;
  const clients: Realtime[] = [];

  /** Every test has an app of its own: the library takes each once. */
  async function startApi() {
    const api = await world.startApi({ env: { PUBLIC_URL: `http://127.0.0.1:${client.port}` } });
    world.appId = (await api.createApp()).appId;
    return api;
  }
  const portOf = (url: string) => Number(new URL(url).port);

  beforeAll(async () => {
    world = await ChannelFixture.create();
    client = await TcpProxy.open();
  });
  afterAll(async () => {
    for (const client of clients) client._close();
    await world.drop();
    client.close();
  });

  async function connectDevice(installationId: string, noBinary: boolean) {
    const { appId } = world;
    const server = `http://127.0.0.1:${client.port}`;
    const realtime = new Realtime({ appId, appKey: 'unused', server, ssl: false, noBinary });
    clients.push(realtime);
    return { realtime, ...(await openDevice(realtime, { appId, installationId })) };
  }

  test.each([
    ['binary', false],
    ['base64', true],
  ])(
    '%s: logs in, gets and acknowledges pushes, beats, and is refused what is not pushes',
    async (name, noBinary) => {
      const api = await startApi();
      client.targetPort = portOf(api.channelUrl);
      const [id = 0] = await world.install([name]);
      const waited = await world.deposit([id], { alert: '等' });
      const { realtime, connection, letters, login } = await connectDevice(name, noBinary);
      expect(await login()).toMatchObject({ cmd: CommandType.loggedin });
      await eventually(() => letters.length === 1);
      const fresh = await world.deposit([id], { alert: 'new' });
      await eventually(() => letters.length === 2);
      expect(letters).toEqual([
        { id: String(waited), content: { alert: '等' }, isOffline: true },
        { id: String(fresh), content: { alert: 'new' }, isOffline: false },
      ]);
      for (const pushId of [waited, fresh]) await eventually(async () => (await world.ackedOf(pushId)) === 1);
      expect(await connection.ping()).toMatchObject({ cmd: CommandType.echo });
      await expect(realtime.createIMClient('tom')).rejects.toMatchObject({
        code: 4100,
        name: 'APP_NOT_AVAILABLE',
        detail: 'Only pushes are served here.',
      });
      expect(await connection.ping()).toMatchObject({ cmd: CommandType.echo });
    },
  );

  test('moves to another process when it is told goaway, and misses nothing', async () => {
    const [old, next] = [await startApi(), await startApi()];
    client.targetPort = portOf(old.channelUrl);
    const [id = 0] = await world.install(['moving']);
    const { realtime, letters, login } = await connectDevice('moving', false);
    await login();
    client.targetPort = portOf(next.channelUrl);
    const isBack = new Promise((resolve) => realtime.on('reconnect', () => resolve(login())));
    await Promise.all([old.close(), world.deposit([id], { alert: 'in the middle' }), isBack]);
    await eventually(() => letters.length === 1);
    expect(letters[0]).toMatchObject({ content: { alert: 'in the middle' } });
    await world.deposit([id], { alert: 'afterwards' });
    await eventually(() => letters.length === 2);
  });
});
