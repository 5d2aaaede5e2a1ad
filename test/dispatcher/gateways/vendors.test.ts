import { describe, expect, test } from 'vitest';
import { type MeizuGateway, startMeizuGateway } from '../../../ops/sandbox/vendors/meizu/server.ts';
import { type OppoGateway, startOppoGateway } from '../../../ops/sandbox/vendors/oppo/server.ts';
import { startVivoGateway, type VivoGateway } from '../../../ops/sandbox/vendors/vivo/server.ts';
import {
  startXiaomiGateway,
  type XiaomiGateway,
} from '../../../ops/sandbox/vendors/xiaomi/server.ts';
import { meizuApp, pushIdOf } from '../../connectors/vendors/meizu/fixture.ts';
import { oppoId } from '../../connectors/vendors/oppo/fixture.ts';
import { vivoId } from '../../connectors/vendors/vivo/fixture.ts';
import { regId, xiaomiApp } from '../../connectors/vendors/xiaomi/fixture.ts';
import { loopbackIdentity } from '../../support/gateways/identity.ts';
import { some, useVendorService } from '../../support/gateways/vendor-service.ts';

let xiaomi: XiaomiGateway;
let meizu: MeizuGateway;
let oppo: OppoGateway;
let vivo: VivoGateway;

/**
 * URL with an invalid name: a label has at most 63 characters. So no DNS server is queried, which
 * could take seconds.
 */
const withoutAddress = `https://${'a'.repeat(64)}.invalid`;

const vendors = useVendorService(async () => {
  const identity = await loopbackIdentity();
  xiaomi = await startXiaomiGateway({ ...xiaomiApp, ...identity });
  meizu = await startMeizuGateway({ ...meizuApp, ...identity });
  oppo = await startOppoGateway(identity);
  vivo = await startVivoGateway(identity);
  const ratePerSecond = 100_000;
  return [
    { connector: 'vendor_b', gateway: xiaomi, credentials: xiaomiApp },
    { connector: 'vendor_c', gateway: meizu, credentials: meizuApp },
    { connector: 'vendor_d', gateway: oppo, credentials: { ...oppo.memory.app, ratePerSecond } },
    { connector: 'vendor_e', gateway: vivo, credentials: { ...vivo.memory.app, ratePerSecond } },
  ];
});

describe('a push to devices of Xiaomi and Meizu', () => {
  test('reaches each once, in China and abroad, and deletes invalid devices', async () => {
    const app = await vendors.app({ vendor_c: { ratePerSecond: 100_000 } });
    const home = await vendors.add(app, 'mi', some(regId, 1100));
    const abroad = await vendors.add(app, 'mi-intl', some(regId, 60, 2000));
    const meizus = await vendors.add(app, 'mz', some(pushIdOf, 250));
    for (const address of [home[3] ?? '', abroad[3] ?? '']) xiaomi.deadTokens.add(address);
    meizu.deadTokens.add(meizus[100] ?? '');
    const record = await vendors.push(app, { alert: 'Hello', mi: { title: 'to Xiaomi' } });
    expect(record).toMatchObject({
      devices: 1410,
      miSuccesses: 1158,
      meizuSuccesses: 249,
      invalidTokens: 2,
      outcomes: { sent: 1407, invalid_token: 2, failed: 1 },
    });
    for (const address of [...home, ...abroad]) expect(xiaomi.seen(address)).toBe(1);
    for (const address of meizus) expect(meizu.seen(address)).toBe(1);
    expect([...xiaomi.violations, ...meizu.violations]).toEqual([]);
    const isMixed = xiaomi.requests.some(
      ({ tokens }) =>
        tokens.some((one) => abroad.includes(one)) && tokens.some((one) => home.includes(one)),
    );
    expect(isMixed).toBe(false);
    await expect.poll(async () => (await vendors.left(app)).length).toBe(1408);
    expect(await vendors.left(app)).toContain(abroad[3]);
    const form = new URLSearchParams(xiaomi.requests[0]?.body.toString());
    expect(form.get('title')).toBe('to Xiaomi');
    expect(form.get('extra.callback')).toMatch(`/callbacks/vendor_b/${app.appId}/`);
  });

  test('that is silent reaches apps on Xiaomi devices; for Meizu it is dropped', async () => {
    const app = await vendors.app();
    await vendors.add(app, 'mi', some(regId, 2));
    await vendors.add(app, 'meizu', some(pushIdOf, 2));
    const record = await vendors.push(app, { alert: 'a', silent: true });
    expect(record).toMatchObject({ miSuccesses: 2, outcomes: { sent: 2, dropped: 2 } });
    expect(record.errors).toContain('vendor_c does not support silent messages');
    expect(meizu.total).toBe(0);
  });

  test('records the code of the failure of a connection', async () => {
    const cases: [object, RegExp][] = [
      [{ endpoint: 'https://127.0.0.1:9' }, /^ECONNREFUSED$/],
      [{ endpoint: withoutAddress }, /^(ENOTFOUND|EAI_AGAIN)$/],
      [{ ca: undefined }, /^(UNABLE_TO_|SELF_SIGNED_)/],
    ];
    const pushed = cases.map(async ([wrong, code]) => {
      const app = await vendors.app({ vendor_c: wrong });
      await vendors.add(app, 'mz', some(pushIdOf, 2));
      // The push ends when it expires. Even on a busy machine this is after its first try.
      const record = await vendors.push(app, { alert: 'a' }, { expiration_interval: 12 });
      const { body } = await vendors.service.api.request('GET', '/console/api/breakers', {
        admin: true,
      });
      const gatewayState = body.results.find(
        ({ id }: { id: string }) => id === `vendor_c:${app.appId}:_default`,
      );
      expect(gatewayState.lastFailure.reason).toMatch(code);
      expect(record.errors).toContain(gatewayState.lastFailure.reason);
    });
    await Promise.all(pushed);
  });

  test('is sent to Meizu at its rate: requests are spread over time', async () => {
    const app = await vendors.app({ vendor_c: { ratePerSecond: 500 } });
    await vendors.add(app, 'mz', some(pushIdOf, 300));
    expect(await vendors.push(app, { alert: 'a' })).toMatchObject({ meizuSuccesses: 300 });
    expect(meizu.total).toBeGreaterThan(6);
    expect(Math.max(...meizu.requests.map(({ tokens }) => tokens.length))).toBeLessThan(100);
  });

  test('ends as capped when the daily quota is used up, without further requests', async () => {
    const app = await vendors.app();
    await vendors.add(app, 'mi', some(regId, 5));
    xiaomi.misbehave({ kind: 'answer', status: 200, body: { result: 'error', code: 200001 } });
    for (const _ of [1, 2])
      expect(await vendors.push(app, { alert: 'a' })).toMatchObject({
        devices: 5,
        outcomes: { capped: 5 },
      });
    expect(xiaomi.total).toBe(1);
    expect(await vendors.left(app)).toHaveLength(5);
  });

  test('with refused credentials ends with a hint, and deletes no device', async () => {
    const app = await vendors.app({ vendor_c: { appSecret: 'another' } });
    await vendors.add(app, 'mz', some(pushIdOf, 5));
    const record = await vendors.push(app, { alert: 'a' });
    expect(record).toMatchObject({ status: 'done', outcomes: { failed: 5 } });
    expect(record.errors).toContain('Meizu refuses the signature: check appSecret.');
    expect(await vendors.left(app)).toHaveLength(5);
  });
});

describe('a push to devices of OPPO and vivo', () => {
  test('reaches each once in few requests, and deletes invalid devices', async () => {
    const app = await vendors.app();
    const oppos = await vendors.add(app, 'OPPO', some(oppoId, 1100));
    const vivos = await vendors.add(app, 'vivo', some(vivoId, 1100));
    oppo.deadTokens.add(oppos[3] ?? '');
    vivo.deadTokens.add(vivos[1099] ?? '');
    const record = await vendors.push(app, {
      alert: 'Hello',
      oppo: { title: 'to OPPO' },
      vivo: { title: 'to vivo' },
    });
    expect(record).toMatchObject({
      devices: 2200,
      oppoSuccesses: 1099,
      vivoSuccesses: 1099,
      invalidTokens: 2,
      outcomes: { sent: 2198, invalid_token: 2 },
    });
    for (const address of oppos) expect(oppo.seen(address)).toBe(1);
    for (const address of vivos) expect(vivo.seen(address)).toBe(1);
    expect([...oppo.violations, ...vivo.violations]).toEqual([]);
    await expect.poll(async () => (await vendors.left(app)).length).toBe(2198);
    const messages = oppo.requests.flatMap(({ body }) =>
      JSON.parse(new URLSearchParams(body.toString()).get('messages') ?? '[]'),
    );
    expect(messages[0]?.notification).toMatchObject({
      title: 'to OPPO',
      call_back_url: expect.stringContaining(`/callbacks/vendor_d/${app.appId}/`),
    });
    const [saved] = vivo.requests.filter(({ path }) => path === '/message/saveListPayload');
    expect(JSON.parse(saved?.body.toString() ?? '')).toMatchObject({ title: 'to vivo' });
    expect([oppo.tokenCalls, vivo.tokenCalls]).toEqual([1, 1]);
  });

  test('that is silent is dropped, and the record has the reason', async () => {
    const app = await vendors.app();
    await vendors.add(app, 'oppo', some(oppoId, 2));
    await vendors.add(app, 'vivo', some(vivoId, 2));
    const record = await vendors.push(app, { alert: 'a', silent: true });
    expect(record).toMatchObject({ outcomes: { dropped: 4 } });
    expect(record.errors).toContain('vendor_d does not support silent messages');
    expect(record.errors).toContain('vendor_e does not support silent messages');
    expect(oppo.total + vivo.total).toBe(0);
  });

  test('caps only the class whose daily quota is used up', async () => {
    const app = await vendors.app();
    await vendors.add(app, 'vivo', some(vivoId, 5));
    vivo.misbehave({ kind: 'answer', status: 200, body: { result: 10070 } });
    for (const _ of [1, 2])
      expect(await vendors.push(app, { alert: 'a' })).toMatchObject({
        devices: 5,
        outcomes: { capped: 5 },
      });
    expect(vivo.total).toBe(1);
    vivo.behave();
    expect(await vendors.push(app, { alert: 'a', vivo: { classification: 1 } })).toMatchObject({
      outcomes: { sent: 5 },
    });
    expect(await vendors.left(app)).toHaveLength(5);
  });

  test('that vivo accepts only in the morning may expire before', async () => {
    const app = await vendors.app();
    await vendors.add(app, 'vivo', some(vivoId, 5));
    vivo.misbehave({ kind: 'answer', status: 200, body: { result: 10071 } });
    const record = await vendors.push(app, { alert: 'a' }, { expiration_interval: 2 });
    expect(record).toMatchObject({ status: 'done', outcomes: { expired: 5 } });
    expect(await vendors.left(app)).toHaveLength(5);
  });

  test('as a test goes to at most 20 devices', async () => {
    const app = await vendors.app();
    const addresses = await vendors.add(app, 'vivo', some(vivoId, 21));
    for (const address of addresses) vivo.memory.testDevices.add(address);
    const record = await vendors.push(app, { alert: 'a', vivo: { pushMode: 1 } });
    expect(record).toMatchObject({ devices: 21, outcomes: { sent: 20 } });
    expect(vivo.accepted).toBe(20);
  });

  test('with refused credentials ends with a hint, and deletes no device', async () => {
    const app = await vendors.app({ vendor_e: { appSecret: 'another' } });
    await vendors.add(app, 'vivo', some(vivoId, 5));
    const record = await vendors.push(app, { alert: 'a' });
    expect(record).toMatchObject({ status: 'done', outcomes: { failed: 5 } });
    expect(record.errors).toContain(
      'The credentials are refused by vivo: check appId, appKey and appSecret.',
    );
    expect(await vendors.left(app)).toHaveLength(5);
  });
});
