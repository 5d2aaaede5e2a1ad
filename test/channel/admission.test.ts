import { get, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Admission } from '../../api/channel/server.ts';
import { type ChannelApi, ChannelFixture, eventually } from './support/channel-fixture.ts';
import { RawClient } from './support/raw-client.ts';

const upgrade = {
  connection: 'Upgrade',
  upgrade: 'websocket',
  'sec-websocket-version': '13',
  'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==',
};

/** Returns the refusal of an upgrade. Rejects if the upgrade is accepted. */
function refusal(url: string, headers: Record<string, string> = {}): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const request = get(
      url.replace('ws:', 'http:'),
      { headers: { ...upgrade, ...headers } },
      resolve,
    );
    request.on('error', reject);
    request.on('upgrade', (_, socket) => {
      socket.destroy();
      reject(new Error('was let in'));
    });
  });
}

describe('counting by remote address', () => {
  test('upgrades are counted per minute, connections until they close', () => {
    const admission = new Admission({
      connections: 10,
      connectionsPerAddress: 2,
      upgradesPerAddress: 4,
    });
    admission.tick(0);
    const phone = admission.admit('203.0.113.9', 0);
    admission.onOpened(phone);
    admission.onOpened(admission.admit('203.0.113.9', 0));
    expect(() => admission.admit('203.0.113.9', 1)).toThrow('Too many requests.');
    admission.onClosed(phone);
    admission.onOpened(admission.admit('203.0.113.9', 2));
    admission.onClosed(phone);
    expect(() => admission.admit('203.0.113.9', 18_000)).toThrow(
      expect.objectContaining({ status: 429, retryAfterSeconds: 42 }),
    );
    expect(admission.tick(59_999)).toBe(0);
    expect(admission.tick(60_000), 'refused in this minute').toBe(2);
    admission.onOpened(admission.admit('203.0.113.9', 60_000));
    expect(() => admission.admit('203.0.113.9', 60_000), 'two still there').toThrow();
  });
});

describe('upgrades of a real api', () => {
  let fixture: ChannelFixture;
  let api: ChannelApi;

  beforeAll(async () => {
    fixture = await ChannelFixture.create();
    api = await fixture.startApi({
      env: { TRUSTED_PROXIES: '1' },
      channelLimits: { connectionsPerAddress: 2, connections: 3, connectionsPerApp: 2 },
    });
    await fixture.install(['one', 'two', 'three']);
  });
  afterAll(() => fixture.drop());

  const from = (address: string) => ({ 'x-forwarded-for': `10.9.9.9, ${address}` });

  test('are limited per client address of the trusted proxy, and per process', async () => {
    const open = (address: string) => RawClient.open(api.channelUrl, from(address));
    const [first, second] = await Promise.all([open('203.0.113.1'), open('203.0.113.1')]);
    const perAddress = await refusal(api.channelUrl, from('203.0.113.1'));
    expect(perAddress.statusCode).toBe(429);
    expect(Number(perAddress.headers['retry-after'])).toBeGreaterThan(0);
    expect(JSON.parse(await text(perAddress))).toEqual({ code: 429, error: 'Too many requests.' });
    const other = await open('203.0.113.2');
    const full = await refusal(api.channelUrl, from('203.0.113.3'));
    expect([full.statusCode, full.headers['retry-after']]).toEqual([503, '10']);
    first.close();
    await first.closed;
    await eventually(() =>
      open('203.0.113.1').then(
        (client) => {
          client.close();
          return true;
        },
        () => false,
      ),
    );
    for (const client of [second, other]) client.close();
    await Promise.all([second.closed, other.closed]);
  });

  test('above the limit of their app get a retryable refusal', async () => {
    const { appId } = fixture;
    const login = (id: string, i: number) =>
      RawClient.login(api.channelUrl, appId, id, from(`203.0.113.${i}`));
    const [one, two] = await Promise.all([login('one', 1), login('two', 2)]);
    const third = await RawClient.open(api.channelUrl, from('203.0.113.3'));
    third.send({ cmd: 'login', appId, installationId: 'three' });
    expect(await third.closed).toEqual({ code: 1013, reason: 'TRY_AGAIN_LATER' });
    one.close();
    await one.closed;
    await eventually(() =>
      login('three', 3).then(
        (client) => {
          client.close();
          return true;
        },
        () => false,
      ),
    );
    two.close();
  });

  test('to another path or with an unknown sub-protocol get error replies of the API', async () => {
    const nowhere = await refusal(api.channelUrl.replace('channel', 'nothing'));
    expect([nowhere.statusCode, JSON.parse(await text(nowhere)).code]).toEqual([404, 404]);
    const language = await refusal(api.channelUrl, { 'sec-websocket-protocol': 'klingon' });
    expect(language.statusCode).toBe(400);
    expect(JSON.parse(await text(language))).toEqual({
      code: 1,
      error: 'None of the sub-protocols is known.',
    });
  });
});
