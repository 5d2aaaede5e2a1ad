import { afterEach, describe, expect, test } from 'vitest';
import {
  startXiaomiGateway,
  type XiaomiGateway,
} from '../../../ops/sandbox/vendors/xiaomi/server.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { regId, xiaomiApp } from '../../connectors/vendors/xiaomi/fixture.ts';
import { loopbackIdentity } from '../../support/gateways/identity.ts';
import { some, useVendorService } from '../../support/gateways/vendor-service.ts';

let xiaomi: XiaomiGateway;
const vendors = useVendorService(async () => {
  xiaomi = await startXiaomiGateway({ ...xiaomiApp, ...(await loopbackIdentity()) });
  return [{ connector: 'vendor_b', gateway: xiaomi, credentials: xiaomiApp }];
});
afterEach(() => vendors.service.apns.behave());

const data = { alert: 'Hallo', title: 'Neues' };
const languages = {
  'zh-Hans': { alert: '你好', title: '新闻' },
  en: { alert: 'Hello', ios: { alert: 'Hello, Apple' } },
};

/** Adds devices with a locale. Returns their tokens. */
const addDevices = (app: App, locale: string | null, count = 1): Promise<string[]> =>
  vendors.service.addIosInstallations(app, count, locale === null ? {} : { locale });

async function iosApp(): Promise<App> {
  const app = await vendors.app();
  await vendors.service.addApnsProfile(app);
  return app;
}

const bodiesOf = (token: string): { aps: { alert: unknown } }[] =>
  vendors.service.apns.requests
    .filter((request) => request.token === token)
    .map(({ body }) => JSON.parse(body?.toString() ?? ''));
const alertOf = (token = ''): unknown => bodiesOf(token)[0]?.aps.alert;

const english = 'Hello, Apple';
const adminGet = (path: string) => vendors.service.api.request('GET', path, { admin: true });

describe('a push with translations', () => {
  test('reaches each device in its language, with a batch and a count per language', async () => {
    const app = await iosApp();
    const [zh, hans] = [
      ...(await addDevices(app, 'zh_CN')),
      ...(await addDevices(app, 'zh-Hans-CN')),
    ];
    const [us, uk] = [...(await addDevices(app, 'en_US')), ...(await addDevices(app, 'en_GB'))];
    const [taiwan, none] = [...(await addDevices(app, 'zh_TW')), ...(await addDevices(app, null))];
    const [odd] = await addDevices(app, '"),(\\,'.repeat(20));
    const body = { where: {}, data, languages };
    const path = `/console/api/apps/${app.appId}/push/explain`;
    const counted = [
      { language: null, devices: 3, fallback: 3 },
      { language: 'zh-Hans', devices: 2, fallback: 0 },
      { language: 'en', devices: 2, fallback: 1 },
    ];
    const dryRun = await vendors.service.api.request('POST', path, { admin: true, body });
    expect(dryRun.body.languages).toEqual(expect.arrayContaining(counted));
    expect(dryRun.body.connectors.apns).toMatchObject({
      payload: { aps: { alert: { title: 'Neues', body: 'Hallo' } } },
      languages: { 'zh-Hans': { payload: { aps: { alert: { title: '新闻', body: '你好' } } } } },
    });
    const record = await vendors.push(app, data, { languages });
    expect(record).toMatchObject({ devices: 7, outcomes: { sent: 7 }, msg: data });
    expect(record.languages).toEqual(expect.arrayContaining(counted));
    expect([zh, hans, us, uk].map(alertOf)).toEqual([
      { title: '新闻', body: '你好' },
      { title: '新闻', body: '你好' },
      { title: 'Neues', body: english },
      { title: 'Neues', body: english },
    ]);
    for (const token of [taiwan, none, odd])
      expect(alertOf(token)).toEqual({ title: 'Neues', body: 'Hallo' });
    const { rows } = await vendors.service.db.query<{ language: string | null; size: number }>(
      'SELECT language, size FROM push_batch WHERE app_id = $1 ORDER BY size, language',
      [app.appId],
    );
    expect(rows).toEqual([
      { language: 'en', size: 2 },
      { language: 'zh-Hans', size: 2 },
      { language: null, size: 3 },
    ]);
  });

  test('keeps and reports the language of a device in a retry', async () => {
    const app = await iosApp();
    const [token = ''] = await addDevices(app, 'en_GB');
    vendors.service.apns.misbehave({
      kind: 'answer',
      status: 503,
      reason: 'ServiceUnavailable',
      count: 1,
    });
    const record = await vendors.push(app, data, { languages });
    expect(record).toMatchObject({ outcomes: { sent: 1 } });
    expect(bodiesOf(token).map(({ aps }) => aps.alert)).toEqual([
      { title: 'Neues', body: english },
      { title: 'Neues', body: english },
    ]);
    const path = `/console/api/apps/${app.appId}/notifications/${record.objectId}`;
    const why = await adminGet(`${path}/devices/${token}`);
    expect(why.body).toMatchObject({ language: 'en' });
    expect(why.body.sentence).toContain('Its text is the translation en; its locale is en_GB.');
    const pushInConsole = await adminGet(path);
    expect(pushInConsole.body.request).toMatchObject({ languages });
  });

  test('is redriven in the language of each device', async () => {
    const app = await iosApp();
    const [[zh = ''], [other = '']] = [await addDevices(app, 'zh'), await addDevices(app, 'de')];
    vendors.service.apns.misbehave({ kind: 'answer', status: 413, reason: 'PayloadTooLarge' });
    const { objectId } = await vendors.push(app, data, { languages });
    vendors.service.apns.behave();
    const path = `/console/api/apps/${app.appId}/notifications/${objectId}/redrive`;
    const redriven = await vendors.service.api.request('POST', path, { admin: true, body: {} });
    await vendors.service.untilDone(app, redriven.body.objectId);
    expect(bodiesOf(zh).map(({ aps }) => aps.alert)).toEqual(
      Array(2).fill({ title: '新闻', body: '你好' }),
    );
    expect(alertOf(other)).toEqual({ title: 'Neues', body: 'Hallo' });
  });

  test('reaches vendor devices with one request per language, and channel devices', async () => {
    const app = await vendors.app();
    const all = await vendors.add(app, 'mi', some(regId, 30));
    await vendors.service.db.query(
      `UPDATE installation SET fields = jsonb_build_object('locale',
        CASE WHEN id % 2 = 0 THEN 'zh_CN' ELSE 'en' END)
        WHERE app_id = $1`,
      [app.appId],
    );
    const { rows } = await vendors.service.db.query<{ locale: string; count: number }>(
      `INSERT INTO installation (app_id, object_id, device_type, installation_id, fields)
       SELECT $1, 'channel0' || i, 'android', gen_random_uuid()::text,
         jsonb_build_object('locale', 'zh-CN')
         FROM generate_series(1, 2) AS i RETURNING fields ->> 'locale' AS locale`,
      [app.appId],
    );
    const record = await vendors.push(app, data, { languages });
    expect(record).toMatchObject({ devices: all.length + rows.length, miSuccesses: all.length });
    const forms = xiaomi.requests.map(({ body }) => new URLSearchParams(body.toString()));
    expect(forms.map((form) => form.get('description')).sort()).toEqual(['Hello', '你好']);
    expect(xiaomi.violations).toEqual([]);
    const messages = await vendors.service.db.query<{ content: { alert: string } }>(
      'SELECT content FROM channel_message WHERE app_id = $1',
      [app.appId],
    );
    expect(messages.rows.map(({ content }) => content.alert)).toEqual(['你好']);
  });

  test.each([
    [{ en: { alert: 5 } }, 'languages: alert is a string, or an object for iOS.'],
    [{ en: { alert: '', title: '' } }, 'languages.en: '],
    [{ 'not a tag': {} }, 'languages: expected language tags, such as "en" or "zh-Hans".'],
  ])('is refused with %j', async (wrong, text) => {
    const app = await iosApp();
    const body = { where: {}, data, languages: wrong };
    const reply = await vendors.service.api.request('POST', '/1.1/push', {
      app,
      master: true,
      body,
    });
    expect(reply.status).toBe(400);
    expect(reply.body.error).toContain(text);
  });
});
