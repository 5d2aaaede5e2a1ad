import { afterEach, describe, expect, test } from 'vitest';
import {
  startXiaomiGateway,
  type XiaomiGateway,
} from '../../../ops/sandbox/vendors/xiaomi/server.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { regId, xiaomiApp } from '../../connectors/vendors/xiaomi/fixture.ts';
import { startVendors } from '../../support/gateways/all-vendors.ts';
import { loopbackIdentity } from '../../support/gateways/identity.ts';
import { some, useVendorService } from '../../support/gateways/vendor-service.ts';
import { insertDevices } from '../../support/tables.ts';

let xiaomi: XiaomiGateway;
const vendors = useVendorService(async () => {
  xiaomi = await startXiaomiGateway({ ...xiaomiApp, ...(await loopbackIdentity()) });
  return [{ connector: 'vendor_b', gateway: xiaomi, credentials: xiaomiApp }];
});
afterEach(() => vendors.service.apns.behave());

const data = {
  alert: 'Hello {{name}}, level {{level}}',
  title: 'For {{ name }}',
  note: 'as {{it}} is',
};
const variables = {
  name: { field: 'profile.name', default: 'friend' },
  level: { field: 'level', default: '1' },
};

const addDevice = async (app: App, fields: Record<string, unknown>): Promise<string> =>
  (await vendors.service.addIosInstallations(app, 1, fields))[0] ?? '';
const addNamed = (app: App, name: unknown): Promise<string> =>
  addDevice(app, { profile: { name }, level: 12.5 });

async function iosApp(): Promise<App> {
  const app = await vendors.app();
  await vendors.service.addApnsProfile(app);
  return app;
}

interface ApnsBody {
  aps: { alert: { title: string; body: string } };
  note: string;
}

const bodiesOf = (token: string): ApnsBody[] =>
  vendors.service.apns.requests
    .filter((request) => request.token === token)
    .map(({ body }) => JSON.parse(body?.toString() ?? ''));
const textsOf = (token: string): string[] => bodiesOf(token).map(({ aps }) => aps.alert.body);

const call = (app: App, body: object) =>
  vendors.service.api.request('POST', '/1.1/push', {
    app,
    master: true,
    body: { where: {}, ...body },
  });

const admin = (method: 'GET' | 'POST', path: string, body?: object) =>
  vendors.service.api.request(method, path, { admin: true, ...(body ? { body } : {}) });

describe('a push with variables', () => {
  test('counts devices per variable in dry run and record, without values', async () => {
    const app = await iosApp();
    const ann = await addDevice(app, { profile: { name: 'Ann' } });
    await addDevice(app, { level: '7' });
    await addDevice(app, {});
    const path = `/console/api/apps/${app.appId}`;
    const languages = { en: { alert: 'Hi {{name}}' } };
    const dryRun = await admin('POST', `${path}/push/explain`, {
      where: {},
      data,
      variables,
      languages,
    });
    const counted = [
      { name: 'name', devices: 3, fallback: 2 },
      { name: 'level', devices: 3, fallback: 2 },
    ];
    expect(dryRun.body.variables).toEqual(counted);
    expect(dryRun.body.connectors.apns).toMatchObject({
      payload: { aps: { alert: { title: 'For friend', body: 'Hello friend, level 1' } } },
      languages: { en: { payload: { aps: { alert: { body: 'Hi friend' } } } } },
    });
    const record = await vendors.push(app, data, { variables });
    expect(record.variables).toEqual(expect.arrayContaining(counted));
    const why = await admin('GET', `${path}/notifications/${record.objectId}/devices/${ann}`);
    expect(why.body.variables).toEqual([
      { name: 'name', field: 'profile.name', isDefault: false },
      { name: 'level', field: 'level', isDefault: true },
    ]);
    expect(why.body.sentence).toContain(
      'The variable name in its text is its field profile.name. The variable level in its text is the default',
    );
    const pushInConsole = await admin('GET', `${path}/notifications/${record.objectId}`);
    expect(pushInConsole.body.request).toMatchObject({ data, variables });
    expect(JSON.stringify([dryRun.body, record, why.body, pushInConsole.body])).not.toContain(
      'Ann',
    );
  });

  test('shows each device its own values, or the default if a field is missing', async () => {
    const app = await iosApp();
    const hostile = 'A "quoted"\\\n{{level}} $& 😀", "badge": 9, "x": "';
    const ann = await addNamed(app, 'Ann');
    const quoted = await addNamed(app, hostile);
    const long = await addNamed(app, '😀'.repeat(150));
    const isTrue = await addNamed(app, true);
    const unfit = [await addNamed(app, { first: 'Ann' }), await addNamed(app, ' \n')];
    const none = await addDevice(app, { profile: 'no object' });
    const record = await vendors.push(app, data, { variables });
    expect(record).toMatchObject({ devices: 7, outcomes: { sent: 7 }, msg: data });
    expect(bodiesOf(ann)).toEqual([
      { aps: { alert: { title: 'For Ann', body: 'Hello Ann, level 12.5' } }, note: data.note },
    ]);
    expect(bodiesOf(quoted)).toEqual([
      {
        aps: { alert: { title: `For ${hostile}`, body: `Hello ${hostile}, level 12.5` } },
        note: data.note,
      },
    ]);
    expect(textsOf(long)).toEqual([`Hello ${'😀'.repeat(100)}, level 12.5`]);
    expect(textsOf(isTrue)).toEqual(['Hello true, level 12.5']);
    expect(unfit.flatMap(textsOf)).toEqual(Array(2).fill('Hello friend, level 12.5'));
    expect(textsOf(none)).toEqual(['Hello friend, level 1']);
    expect(JSON.stringify(record)).not.toContain('Ann');
  });

  test('fills the text of a device in its language, also for listed devices', async () => {
    const app = await iosApp();
    const token = await addDevice(app, { locale: 'zh_CN', profile: { name: '小明' } });
    const languages = { 'zh-Hans': { alert: '你好，{{name}}', title: '{{level}}' } };
    await vendors.push(app, data, { variables, languages });
    expect(bodiesOf(token)[0]?.aps.alert).toEqual({ title: '1', body: '你好，小明' });
    const reply = await vendors.service.api.request('POST', '/1.1/push/devices', {
      app,
      master: true,
      body: { device_type: 'ios', device_ids: [token], data, variables },
    });
    await vendors.service.untilDone(app, reply.body.objectId);
    expect(textsOf(token)[1]).toBe('Hello 小明, level 1');
  });

  test('fills the same text in a retry and in a redrive', async () => {
    const app = await iosApp();
    const token = await addDevice(app, { profile: { name: 'Ann' } });
    vendors.service.apns.misbehave({
      kind: 'answer',
      status: 503,
      reason: 'ServiceUnavailable',
      count: 1,
    });
    await vendors.push(app, data, { variables });
    vendors.service.apns.misbehave({ kind: 'answer', status: 413, reason: 'PayloadTooLarge' });
    const { objectId } = await vendors.push(app, data, { variables });
    vendors.service.apns.behave();
    const path = `/console/api/apps/${app.appId}/notifications/${objectId}/redrive`;
    const redriven = await vendors.service.api.request('POST', path, { admin: true, body: {} });
    await vendors.service.untilDone(app, redriven.body.objectId);
    expect(textsOf(token)).toEqual(Array(4).fill('Hello Ann, level 1'));
  });

  test('fails only for devices whose values exceed the limit of their gateway', async () => {
    const app = await iosApp();
    const short = await addDevice(app, { profile: { name: 'A' } });
    const long = await addDevice(app, { profile: { name: '😀'.repeat(100) } });
    const text = { alert: '{{name}} '.repeat(12), title: 'x' };
    const record = await vendors.push(app, text, { variables: { name: variables.name } });
    expect(record).toMatchObject({ devices: 2, outcomes: { sent: 1, failed: 1 } });
    expect(JSON.stringify(record)).toContain(
      'the message is too large with the values of the installation',
    );
    expect(textsOf(short)).toEqual(['A '.repeat(12)]);
    expect(textsOf(long)).toEqual([]);
  });

  test('shares vendor requests between equal values', async () => {
    const app = await vendors.app();
    const all = await vendors.add(app, 'mi', some(regId, 30));
    await vendors.service.db.query(
      `UPDATE installation SET fields = jsonb_build_object('level',
        CASE WHEN id % 2 = 0 THEN id END)
        WHERE app_id = $1`,
      [app.appId],
    );
    await insertDevices(
      vendors.service.db,
      app,
      [1, 2, 3].map((level) => ({
        deviceType: 'android',
        installationId: `channel${level}`,
        fields: { level },
      })),
    );
    const record = await vendors.push(
      app,
      { alert: 'Level {{level}}' },
      { variables: { level: variables.level } },
    );
    expect(record).toMatchObject({ devices: all.length + 3, miSuccesses: all.length });
    const forms = xiaomi.requests.map(({ body }) => new URLSearchParams(body.toString()));
    const devices = forms.map((form) => form.get('registration_id')?.split(',').length);
    expect(devices.sort()).toEqual([...Array(15).fill(1), 15]);
    expect(new Set(forms.map((form) => form.get('description'))).size).toBe(16);
    for (const form of forms)
      expect(JSON.parse(form.get('payload') ?? '')).toMatchObject({
        alert: form.get('description'),
      });
    expect(xiaomi.violations).toEqual([]);
    const { rows } = await vendors.service.db.query<{ text: string }>(
      `SELECT content ->> 'alert' AS text FROM channel_message WHERE app_id = $1 ORDER BY 1`,
      [app.appId],
    );
    expect(rows.map(({ text }) => text)).toEqual(['Level 1', 'Level 2', 'Level 3']);
  });

  test('shows each device of every gateway its own values', async () => {
    const all = await startVendors(vendors.service);
    try {
      const app = await all.app();
      for (const { connector } of all.instances) await all.add(app, connector, 3);
      await vendors.service.db.query(
        `UPDATE installation SET fields = jsonb_build_object('name',
          'Name-' || coalesce(device_token, registration_id))
          WHERE app_id = $1 AND id % 3 > 0`,
        [app.appId],
      );
      const nameVariable = { name: { field: 'name', default: 'friend' } };
      const record = await vendors.push(
        app,
        { alert: 'Hello-{{name}}', title: 'x' },
        { variables: nameVariable },
      );
      const devices = all.instances.length * 3;
      expect(record).toMatchObject({ devices, outcomes: { sent: devices } });
      for (const instance of all.instances) {
        const texts = instance.requests().map(({ body }) => decodeURIComponent(body.toString()));
        const names = new Set(texts.flatMap((text) => text.match(/Hello-(?:Name|friend)/g) ?? []));
        expect([...names].sort(), instance.connector).toEqual(['Hello-Name', 'Hello-friend']);
        expect(instance.violations(), instance.connector).toEqual([]);
      }
    } finally {
      await all.close();
    }
  });

  test('leaves braces unchanged in a push that names no variables', async () => {
    const app = await iosApp();
    const token = await addNamed(app, 'Ann');
    await vendors.push(app, data);
    expect(textsOf(token)).toEqual([data.alert]);
  });

  test.each([
    [{ name: { field: 'deviceToken', default: '' } }, 'deviceToken cannot be shown.'],
    [{ name: { field: '_private', default: '' } }, 'variables.name.field: expected a field'],
    [{ name: { field: 'timeZone.x', default: '' } }, 'timeZone.x cannot be shown.'],
    [{ name: { field: 'name' } }, 'variables'],
    [{ name: { field: 'name', default: 'x'.repeat(101) } }, 'at most 100'],
    [{ 'no name': { field: 'name', default: '' } }, 'variables: a name has letters'],
    [{ name: { field: 'name', default: '' } }, 'a text holds {{level}}, which is none of them.'],
    [
      { ...variables, more: { field: 'name', default: '' } },
      'variables.more: no alert or title holds it.',
    ],
    [
      Object.fromEntries(Array.from({ length: 11 }, (_, i) => [`v${i}`, variables.name])),
      'at most 10',
    ],
    ['text', 'variables'],
  ])('is refused with %j', async (wrong, text) => {
    const reply = await call(await iosApp(), { data, variables: wrong });
    expect(reply.status).toBe(400);
    expect(reply.body.error).toContain(text);
    expect(reply.body.code).toBeGreaterThan(0);
  });

  test('is refused if its text would be empty without the fields', async () => {
    const reply = await call(await iosApp(), {
      where: { deviceType: 'android' },
      data: { alert: '{{name}}' },
      variables: { name: { field: 'name', default: '' } },
    });
    expect(reply).toMatchObject({ status: 400, body: { code: 1 } });
  });
});
