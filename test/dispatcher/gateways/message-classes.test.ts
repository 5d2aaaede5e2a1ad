import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { App } from '../../../shared/domain/apps/app.ts';
import {
  type MessageClass,
  messageClassNames,
} from '../../../shared/domain/pushes/message-classes.ts';
import { type AllVendors, startVendors } from '../../support/gateways/all-vendors.ts';
import { beginPush } from '../../support/gateways/app-gateway.ts';
import { useTestService } from '../../support/service.ts';

const service = useTestService();
let vendors: AllVendors;
beforeAll(async () => {
  vendors = await startVendors(service);
  await service.dispatch();
});
afterAll(() => vendors.close());
afterEach(() => {
  for (const gateway of Object.values(vendors.gateways)) gateway.forget();
});

const ofAll = (members: object) =>
  Object.fromEntries(messageClassNames.map((name) => [name, members]));

/** Message classes of profiles that have all that the vendors need. */
const classes: Record<string, object> = {
  vendor_a: ofAll({}),
  vendor_b: ofAll({ channel_id: '137', template_id: 'P10645', template_param: { order: '1042' } }),
  vendor_d: ofAll({ channel_id: 'orders', private_msg_template_id: '687557242b1634abcdef3d501' }),
  vendor_f: ofAll({}),
};

const put = (app: App, connector: string, body: object) =>
  service.api.request('PUT', `/console/api/apps/${app.appId}/profiles/${connector}/_default`, {
    admin: true,
    body,
  });

/** Creates an app with all vendors, a device of each, and what the vendors' classes need. */
async function createApp(): Promise<App> {
  const app = await vendors.app();
  for (const { connector, credentials } of vendors.instances) {
    if (connector === 'vendor_g') continue;
    await vendors.add(app, connector, 1);
    const own = classes[connector];
    if (!own) continue;
    const reply = await put(app, connector, { ...credentials, messageClasses: own });
    expect(reply, JSON.stringify(reply.body)).toMatchObject({ status: 200 });
  }
  return app;
}

describe('every class', () => {
  let app: App;
  beforeAll(async () => {
    app = await createApp();
  });

  test.each(messageClassNames)('%s is taken by every gateway', async (name: MessageClass) => {
    const data = {
      alert: '订单 1042 已发货',
      title: '订单',
      image: 'https://example.com/1042.png',
      url: 'https://example.com/orders/1042',
      buttons: [
        { id: 'track', title: '查看', url: 'https://example.com/track' },
        { id: 'later', title: '稍后' },
      ],
    };
    const record = await service.untilDone(
      app,
      await beginPush(service, app, { class: name, data }),
    );
    const { outcomes } = record;
    expect(outcomes).toEqual({ sent: record.devices });
    expect(record.devices).toBe(vendors.instances.length - 1);
    const violations = vendors.instances.flatMap((instance) => instance.violations());
    expect(violations).toEqual([]);
  });
});

test('a class without a channel fails at Xiaomi alone, with the reason', async () => {
  const app = await vendors.app('vendor_b', 'vendor_f');
  await vendors.add(app, 'vendor_b', 1);
  await vendors.add(app, 'vendor_f', 1);
  const record = await service.untilDone(app, await beginPush(service, app, { class: 'order' }));
  expect(record.outcomes).toEqual({ sent: 1, failed: 1 });
  expect(vendors.gateways.xiaomi.requests).toEqual([]);
});

test('a chat message without a template is refused by OPPO, and no token is deleted', async () => {
  const app = await vendors.app('vendor_d');
  await vendors.add(app, 'vendor_d', 1);
  const record = await service.untilDone(app, await beginPush(service, app, { class: 'im' }));
  expect(record.outcomes).toEqual({ failed: 1 });
});

describe('message classes of a profile', () => {
  const list = async (app: App) => {
    const path = `/console/api/apps/${app.appId}/profiles`;
    const { body } = await service.api.request('GET', path, { admin: true });
    return body.results as { connector: string; messageClasses?: object }[];
  };

  test('are shown, kept without the member, and removed by null', async () => {
    const app = await vendors.app('vendor_e');
    const { credentials } = vendors.instance('vendor_e');
    const messageClasses = { default: { category: 'ACCOUNT' } };
    expect((await list(app))[0]).not.toHaveProperty('messageClasses');
    const stored = await put(app, 'vendor_e', { ...credentials, messageClasses });
    expect(stored.body).toMatchObject({ connector: 'vendor_e', messageClasses });
    expect((await list(app))[0]).toMatchObject({ messageClasses });
    const detail = await service.api.request(
      'GET',
      `/console/api/apps/${app.appId}/profiles/vendor_e/_default`,
      { admin: true },
    );
    expect(detail.body).toMatchObject({ messageClasses });
    await put(app, 'vendor_e', { ...credentials });
    expect((await list(app))[0]).toMatchObject({ messageClasses });
    await put(app, 'vendor_e', { ...credentials, messageClasses: null });
    expect((await list(app))[0]).not.toHaveProperty('messageClasses');
  });

  test('give transactional pushes their default, unless the push has a class', async () => {
    const app = await vendors.app('vendor_e');
    await vendors.add(app, 'vendor_e', 1);
    const { credentials } = vendors.instance('vendor_e');
    await put(app, 'vendor_e', {
      ...credentials,
      messageClasses: { default: { category: 'ACCOUNT' } },
    });
    const categoryOf = async (body: object) => {
      vendors.gateways.vivo.forget();
      const data = { alert: '订单 1042 已发货' };
      await service.untilDone(app, await beginPush(service, app, { data, ...body }));
      return JSON.parse(String(vendors.instance('vendor_e').requests().at(-1)?.body)).category;
    };
    expect(await categoryOf({ kind: 'transactional' })).toBe('ACCOUNT');
    expect(await categoryOf({ kind: 'transactional', class: 'order' })).toBe('ORDER');
    expect(await categoryOf({ class: 'news' })).toBe('NEWS');
    expect(await categoryOf({})).toBeUndefined();
  });

  test.each([
    [7],
    [[]],
    ['x'],
    [{ chat: {} }],
    [{ im: { categry: 'IM' } }],
    [{ im: { category: 'VOIP' } }],
  ])('%j is refused with its name', async (messageClasses) => {
    const app = await vendors.app('vendor_e');
    const { credentials } = vendors.instance('vendor_e');
    const reply = await put(app, 'vendor_e', { ...credentials, messageClasses });
    expect(reply.status).toBe(400);
    expect(reply.body.error).toMatch(/^messageClasses/);
  });
});

describe('the dry run', () => {
  const explain = async (app: App, body: object) => {
    const path = `/console/api/apps/${app.appId}/push/explain`;
    const reply = await service.api.request('POST', path, { admin: true, body });
    expect(reply, JSON.stringify(reply.body)).toMatchObject({ status: 200 });
    return reply.body.connectors;
  };

  test('shows the class, its limit, and what is missing or not shown', async () => {
    const app = await vendors.app('vendor_a', 'vendor_b', 'apns');
    for (const connector of ['vendor_a', 'vendor_b', 'apns']) await vendors.add(app, connector, 1);
    const data = {
      alert: 'a',
      image: 'https://example.com/a.png',
      buttons: [{ id: 'b', title: 'B' }],
    };
    const connectors = await explain(app, { class: 'order', data });
    expect(connectors.vendor_a).toMatchObject({
      messageClass: { name: 'order', dailyLimit: null, missing: ['right'] },
      notShown: [],
    });
    expect(connectors.vendor_b).toMatchObject({
      messageClass: {
        name: 'order',
        dailyLimit: null,
        missing: ['channel_id', 'template_id', 'template_param'],
      },
      notShown: ['image', 'buttons'],
      payload: null,
    });
    expect(connectors.apns).toMatchObject({
      messageClass: { name: 'order', dailyLimit: null, missing: [] },
      notShown: [],
    });
    const plain = await explain(app, { data: { alert: 'a' } });
    expect(plain.vendor_a).toMatchObject({
      messageClass: { name: null, dailyLimit: 2, missing: [] },
      notShown: [],
    });
  });

  test('looks at all languages', async () => {
    const app = await vendors.app('vendor_b');
    await vendors.add(app, 'vendor_b', 1);
    const languages = { en: { image: 'https://example.com/a.png' }, zh: { alert: 'b' } };
    const { vendor_b } = await explain(app, { data: { alert: 'a' }, languages });
    expect(vendor_b).toMatchObject({ notShown: ['image'] });
  });

  test('looks at all device types and profiles of a connector', async () => {
    const app = await vendors.app('vendor_a');
    await vendors.add(app, 'vendor_a', 3);
    const register = async (more: { registrationId: string; deviceProfile?: string }) => {
      const device = { deviceType: 'harmony', vendor: 'HMS', installationId: more.registrationId };
      const body = { ...device, ...more };
      const reply = await service.api.request('POST', '/1.1/installations', { app, body });
      expect(reply.status).toBe(201);
    };
    await register({ registrationId: 'IQAAAAHarmonyA' });
    const data = { alert: 'a', buttons: [{ id: 'b', title: 'B' }] };
    const { vendor_a: all } = await explain(app, { class: 'order', data });
    expect(all).toMatchObject({ devices: 4, notShown: ['buttons'] });
    const { credentials } = vendors.instance('vendor_a');
    await put(app, 'vendor_a', { ...credentials, messageClasses: { order: {} } });
    const other = `/console/api/apps/${app.appId}/profiles/vendor_a/other`;
    await service.api.request('PUT', other, { admin: true, body: credentials });
    const { vendor_a: declared } = await explain(app, { class: 'order', data });
    expect(declared.messageClass.missing).toEqual([]);
    await register({ registrationId: 'IQAAAAHarmonyB', deviceProfile: 'other' });
    const { vendor_a: mixed } = await explain(app, { class: 'order', data });
    expect(mixed.messageClass.missing).toEqual(['right']);
  });
});
