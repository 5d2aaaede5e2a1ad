import { connect, createServer, type Socket } from 'node:net';
import { Realtime } from 'leancloud-realtime';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { npmVersion } from '../../../ops/check/toolchains.ts';
import { freePort } from '../../../ops/local/ports.ts';
import { ChannelFixture, eventually } from '../../channel/support/channel-fixture.ts';
import { CommandType, openDevice } from '../../channel/support/realtime-device.ts';
import { testTableRow } from '../../support/clients/table-row.ts';

/**
 * Load balancer with one address for several processes. The test selects the process of new
 * connections.
 */
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
    for (const end of [socket, target])
      end.on('error', () => [socket, target].map((s) => s.destroy()));
  }
}

/**
 * Tests the realtime library of current apps, from the registry. It finds the socket through the
 * router, encodes and decodes frames, matches replies by serial, sends heartbeats and follows
 * goaway. The commands of a push device (login, acknowledgement) are sent through it, as its own
 * live queries do.
 */
describe('the realtime library', () => {
  let fixture: ChannelFixture;
  let client: TcpProxy;
  const clients: Realtime[] = [];

  /** Every test has its own app, because the library accepts each app once. */
  async function startApi() {
    const api = await fixture.startApi({ env: { PUBLIC_URL: `http://127.0.0.1:${client.port}` } });
    fixture.appId = (await api.createApp()).appId;
    return api;
  }
  const portOf = (url: string) => Number(new URL(url).port);

  beforeAll(async () => {
    fixture = await ChannelFixture.create();
    client = await TcpProxy.open();
  });
  afterAll(async () => {
    for (const client of clients) client._close();
    await fixture.drop();
    client.close();
  });

  async function connectDevice(installationId: string, noBinary: boolean) {
    const { appId } = fixture;
    const server = `http://127.0.0.1:${client.port}`;
    const realtime = new Realtime({ appId, appKey: 'unused', server, ssl: false, noBinary });
    clients.push(realtime);
    return { realtime, ...(await openDevice(realtime, { appId, installationId })) };
  }

  test.each([
    ['binary', false],
    ['base64', true],
  ])(
    '%s: logs in, gets and acknowledges pushes, pings, and gets errors for other services',
    async (name, noBinary) => {
      const api = await startApi();
      client.targetPort = portOf(api.channelUrl);
      const [id = 0] = await fixture.install([name]);
      const waited = await fixture.enqueue([id], { alert: '等' });
      const { realtime, connection, messages, login } = await connectDevice(name, noBinary);
      expect(await login()).toMatchObject({ cmd: CommandType.loggedin });
      await eventually(() => messages.length === 1);
      const fresh = await fixture.enqueue([id], { alert: 'new' });
      await eventually(() => messages.length === 2);
      expect(messages).toEqual([
        { id: String(waited), content: { alert: '等' }, isOffline: true },
        { id: String(fresh), content: { alert: 'new' }, isOffline: false },
      ]);
      for (const pushId of [waited, fresh])
        await eventually(async () => (await fixture.ackedOf(pushId)) === 1);
      expect(await connection.ping()).toMatchObject({ cmd: CommandType.echo });
      await expect(realtime.createIMClient('tom')).rejects.toMatchObject({
        code: 4100,
        name: 'APP_NOT_AVAILABLE',
        detail: 'Only pushes are served here.',
      });
      expect(await connection.ping()).toMatchObject({ cmd: CommandType.echo });
    },
  );

  test('moves to another process at goaway, and misses no message', async () => {
    const [old, next] = [await startApi(), await startApi()];
    client.targetPort = portOf(old.channelUrl);
    const [id = 0] = await fixture.install(['moving']);
    const { realtime, messages, login } = await connectDevice('moving', false);
    await login();
    client.targetPort = portOf(next.channelUrl);
    const isBack = new Promise((resolve) => realtime.on('reconnect', () => resolve(login())));
    await Promise.all([old.close(), fixture.enqueue([id], { alert: 'in the middle' }), isBack]);
    await eventually(() => messages.length === 1);
    expect(messages[0]).toMatchObject({ content: { alert: 'in the middle' } });
    await fixture.enqueue([id], { alert: 'afterwards' });
    await eventually(() => messages.length === 2);
  });

  testTableRow({
    name: 'Realtime library (`leancloud-realtime`, npm)',
    version: npmVersion('leancloud-realtime'),
    topics: ['routing', 'receiving', 'acknowledging', 'heartbeats', 'goaway'],
  });
});
