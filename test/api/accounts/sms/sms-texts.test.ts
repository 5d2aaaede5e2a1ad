import { describe, expect, test } from 'vitest';
import type { App } from '../../../../shared/domain/apps/app.ts';
import { useTestApi } from '../../../support/test-api.ts';

const api = useTestApi();
const pathOf = (app: { appId: string }, kind: 'templates' | 'signatures', rest = '') =>
  `/console/api/apps/${app.appId}/sms-${kind}${rest}`;
const admin = (method: string, path: string, body?: unknown) =>
  api.request(method, path, { admin: true, body });
const template = (app: App, name: string, text: string, type = 'verification') =>
  admin('PUT', pathOf(app, 'templates', `/${name}`), { type, text });
const approve = (app: App, name: string) =>
  admin('POST', pathOf(app, 'templates', `/${encodeURIComponent(name)}/approve`));

let next = 0;
const numberOf = (n: number) => `+86139${String(n * 10_007).padStart(8, '0')}`;
/** Uses a new number for each message to stay below the limits. Returns the reply. */
async function send(app: App, body: object) {
  next += 1;
  const to = numberOf(next);
  const reply = await api.request('POST', '/1.1/requestSmsCode', {
    app,
    body: { mobilePhoneNumber: to, ...body },
  });
  const { body: sent } = await admin(
    'GET',
    `/console/api/apps/${app.appId}/outbox?to=${encodeURIComponent(to)}`,
  );
  return { code: reply.body.code, message: sent.results[0] };
}

describe('templates of messages', () => {
  test('require the operator and a known app', async () => {
    const app = await api.createApp();
    const body = { type: 'verification', text: '{{code}}' };
    const path = pathOf(app, 'templates', '/x');
    expect((await api.request('PUT', path, { app, master: true, body })).status).toBe(401);
    const unknownApp = { appId: 'unknown' };
    expect((await admin('PUT', pathOf(unknownApp, 'templates', '/x'), body)).status).toBe(404);
    expect((await admin('GET', pathOf(unknownApp, 'templates'))).status).toBe(404);
    for (const [method, rest] of [
      ['GET', ''],
      ['DELETE', ''],
      ['POST', '/approve'],
    ] as const)
      expect((await admin(method, `${path}${rest}`)).status).toBe(404);
  });

  test.each([
    [{}],
    [{ type: 'verification' }],
    [{ type: 'marketing', text: '{{code}}' }],
    [{ type: { $ne: 1 }, text: '{{code}}' }],
    [{ type: 'verification', text: { $ne: 1 } }],
    [{ type: 'verification', text: '' }],
    [{ type: 'verification', text: `{{code}}${'x'.repeat(500)}` }],
    [{ type: 'verification', text: 'no code' }],
    [{ type: 'notification', text: '{{code}}' }],
    [{ type: 'verification', text: '{{code} ' }],
    [{ type: 'verification', text: '{{code}}{{#each x}}{{/each}}' }],
    [{ type: 'verification', text: '{{code}}{{constructor.constructor}}' }],
    [{ type: 'verification', text: 'get it at https://evil.example {{code}}' }],
    [{ type: 'verification', text: '【Bank】{{code}}' }],
    [{ type: 'verification', text: '{{code}}', status: 'approved' }],
  ])('refuse %j', async (body) => {
    const app = await api.createApp();
    const reply = await admin('PUT', pathOf(app, 'templates', '/x'), body);
    expect(reply.status).toBe(400);
    expect(reply.body.error).toEqual(expect.any(String));
    expect((await admin('GET', pathOf(app, 'templates'))).body).toEqual({ results: [] });
  });

  test.each([
    [{ aliyun: {} }, 'aliyun'],
    [{ aliyun: { code: 'x' } }, 'SMS_153055065'],
    [{ aliyun: { code: 'SMS_1', sign: 'x' } }, 'sign'],
    [{ aliyun: { code: 'SMS_1', params: ['code'] } }, 'params'],
    [{ aliyun: { code: 'SMS_1', params: { code: 'a', ttl: 'a' } } }, 'once'],
    [{ aliyun: { code: 'SMS_1', params: { other: 'a' } } }, 'other is neither'],
    [{ tencent: {} }, 'tencent'],
    [{ tencent: { id: 'x' } }, 'digits'],
    [{ tencent: { id: 1 } }, 'id'],
    [{ tencent: { id: '1', params: { code: 'a' } } }, 'params'],
    [{ tencent: { id: '1', params: ['other'] } }, 'other is neither'],
    [{ tencent: { id: '1', params: Array.from({ length: 31 }, () => 'code') } }, 'at most 30'],
    [{ twilio: {} }, 'twilio'],
    ['aliyun', 'providers'],
  ])('refuse the providers %j', async (providers, part) => {
    const app = await api.createApp();
    const body = { type: 'verification', text: '{{code}}', providers };
    const reply = await admin('PUT', pathOf(app, 'templates', '/x'), body);
    expect(reply.status).toBe(400);
    expect(reply.body.error).toContain(part);
  });

  test('keep the providers with the text: in use after approval, and replaced with it', async () => {
    const app = await api.createApp();
    const path = pathOf(app, 'templates', '/x');
    const providers = {
      aliyun: { code: 'SMS_1', params: { code: 'vcode', ttl: 'minutes' } },
      tencent: { id: '100001', params: ['code', 'shop'] },
    };
    const body = { type: 'verification', text: '{{code}} {{shop}}', providers };
    const put = await admin('PUT', path, body);
    expect(put.body).toMatchObject({ ...body, status: 'pending', active: null });
    expect((await approve(app, 'x')).body).toMatchObject({ ...body, active: body });
    const { providers: _, ...without } = body;
    await admin('PUT', path, without);
    const pending = (await admin('GET', path)).body;
    expect(pending).toMatchObject({ status: 'pending', active: body });
    expect(pending.providers).toBeUndefined();
    expect((await approve(app, 'x')).body.active).toEqual(without);
    await approve(app, 'x');
    expect((await admin('GET', path)).body.active).toEqual(without);
  });

  test('named _default and _abroad replace the built-in text, and must be of codes', async () => {
    const app = await api.createApp();
    for (const name of ['_default', '_abroad']) {
      const reply = await template(app, name, 'no code', 'notification');
      expect(reply.body.error).toContain('template of codes');
      await template(app, name, `${name} {{code}}`);
    }
    expect((await send(app, {})).message.text).toMatch(/^【Test app】Test app：您的验证码/);
    await approve(app, '_default');
    await approve(app, '_abroad');
    expect((await send(app, {})).message.text).toMatch(/^【Test app】_default \d{6}$/);
    const to = '+14155552671';
    await api.request('POST', '/1.1/requestSmsCode', { app, body: { mobilePhoneNumber: to } });
    const path = `/console/api/apps/${app.appId}/outbox?to=${encodeURIComponent(to)}`;
    expect((await admin('GET', path)).body.results[0].text).toMatch(/^\[Test app\] _abroad \d{6}$/);
  });

  test('need no balance unless the app has one', async () => {
    const app = await api.createApp();
    expect(
      (await admin('GET', `/console/api/apps/${app.appId}`)).body.options.smsBalance,
    ).toBeNull();
    expect((await template(app, 'a', '{{code}}')).status).toBe(200);
  });

  test('require 200 currency units of a balance', async () => {
    const app = await api.createApp({ smsBalance: 199.99 });
    expect((await template(app, 'a', '{{code}}')).body.code).toBe(160);
    await admin('PATCH', `/console/api/apps/${app.appId}`, { options: { smsBalance: 200 } });
    expect((await template(app, 'a', '{{code}}')).status).toBe(200);
    await admin('PATCH', `/console/api/apps/${app.appId}`, { options: { smsBalance: 10 } });
    expect((await template(app, 'a', 'x{{code}}')).body.code).toBe(160);
  });

  test('are usable after approval: 604 for an unknown template, 605 before approval', async () => {
    const app = await api.createApp();
    expect((await send(app, { template: 'a' })).code).toBe(604);
    const created = await template(app, 'a', 'Your code: {{code}}');
    expect(created.body).toEqual({
      name: 'a',
      type: 'verification',
      text: 'Your code: {{code}}',
      status: 'pending',
      active: null,
      createdAt: expect.any(String),
      updatedAt: expect.any(String),
    });
    expect((await send(app, { template: 'a' })).code).toBe(605);
    expect((await approve(app, 'a')).body).toMatchObject({ name: 'a', status: 'approved' });
    const { message } = await send(app, { template: 'a' });
    expect(message.text).toBe(`【Test app】Your code: ${message.code}`);
  });

  test('stay in use while a change waits for approval', async () => {
    const app = await api.createApp();
    await template(app, 'a', 'old {{code}}');
    await approve(app, 'a');
    expect((await template(app, 'a', 'new {{code}}')).body).toMatchObject({
      text: 'new {{code}}',
      status: 'pending',
      active: { type: 'verification', text: 'old {{code}}' },
    });
    expect((await send(app, { template: 'a' })).message.text).toMatch(/old/);
    await approve(app, 'a');
    expect((await send(app, { template: 'a' })).message.text).toMatch(/new/);
    const path = pathOf(app, 'templates', '/a');
    expect((await admin('GET', path)).body).toMatchObject({
      status: 'approved',
      text: 'new {{code}}',
    });
    expect((await admin('DELETE', path)).body).toEqual({});
    expect((await send(app, { template: 'a' })).code).toBe(604);
  });

  test('are rendered with the standard variables and the submitted values', async () => {
    const app = await api.createApp();
    await template(
      app,
      'order',
      '{{name}}|{{{op}}}|{{ttl}}|{{sign}}|{{template}}|{{code}}|{{order}}|{{paid}}',
    );
    await approve(app, 'order');
    const { message } = await send(app, {
      template: 'order',
      ttl: 3,
      op: 'a & b',
      order: 17,
      paid: true,
      code: '000000',
    });
    expect(message.text).toBe(
      `【Test app】Test app|a & b|3|Test app|order|${message.code}|17|true`,
    );
  });

  test.each([
    [{}, 606],
    [{ order: null }, 111],
    [{ order: { $ne: 1 } }, 111],
    [{ order: ['x'] }, 111],
    [{ order: 'http://evil.example' }, 1],
    [{ order: 'www.evil.example' }, 1],
    [{ order: 'x'.repeat(101) }, 1],
    [{ order: 'a\r\nb' }, 1],
  ])('refuse the values %j with code %i', async (values, code) => {
    const app = await api.createApp();
    await template(app, 'a', '{{code}} {{order}}');
    await approve(app, 'a');
    expect(await send(app, { template: 'a', ...values })).toMatchObject({
      code,
      message: undefined,
    });
  });

  test('reveal only submitted values, for any variable names', async () => {
    const app = await api.createApp();
    for (const name of ['toString', '__proto__', 'hasOwnProperty']) {
      await template(app, name, `{{code}} {{${name}}}`);
      await approve(app, name);
      expect([604, 606]).toContain((await send(app, { template: name })).code);
    }
  });

  test('create notifications without a code and with their own limits', async () => {
    const app = await api.createApp();
    await template(app, 'n', 'Order {{order}} left.', 'notification');
    await approve(app, 'n');
    const { message } = await send(app, { template: 'n', order: 'A1' });
    expect(message).toMatchObject({ type: 'notification', text: '【Test app】Order A1 left.' });
    expect(message.code).toBeUndefined();
    expect((await send(app, { template: 'n', order: 'A1', smsType: 'voice' })).code).toBe(1);
  });
});

describe('signatures of messages', () => {
  test('have an approved default with the name of the app', async () => {
    const app = await api.createApp();
    const { body } = await admin('GET', pathOf(app, 'signatures'));
    expect(body.results).toMatchObject([{ name: 'Test app', status: 'approved' }]);
  });

  test('are usable after approval: 600 before', async () => {
    const app = await api.createApp();
    const path = pathOf(app, 'signatures', `/${encodeURIComponent('商店')}`);
    expect((await admin('PUT', path, {})).body).toMatchObject({ name: '商店', status: 'pending' });
    expect((await send(app, { sign: '商店' })).code).toBe(600);
    expect((await admin('POST', `${path}/approve`)).body).toMatchObject({ status: 'approved' });
    expect((await admin('PUT', path, {})).body).toMatchObject({ status: 'approved' });
    expect((await send(app, { sign: '商店' })).message.text).toMatch(/^【商店】/);
    expect((await send(app, {})).message.text).toMatch(/^【Test app】/);
  });

  test("of an app have a valid default even if the app's name cannot be in a path", async () => {
    for (const [name, sign] of [
      ['iOS/Android', 'iOS／Android'],
      ['..', '．．'],
    ] as const) {
      const app = await api.services.apps.create({ name });
      expect((await send(app, {})).message.text).toContain(`【${sign}】`);
      expect((await send(app, { sign: name })).message.text).toContain(`【${sign}】`);
      const path = pathOf(app, 'signatures', `/${encodeURIComponent(sign)}`);
      expect((await admin('GET', path)).body.name).toBe(sign);
    }
  });

  test('are required: an app without one sends nothing (600)', async () => {
    const app = await api.createApp();
    expect((await admin('DELETE', pathOf(app, 'signatures', '/Test%20app'))).body).toEqual({});
    expect((await admin('GET', pathOf(app, 'signatures', '/Test%20app'))).status).toBe(404);
    expect((await send(app, {})).code).toBe(600);
  });

  test.each(['%20x', 'a%0Ab', '%E3%80%90x', 'http:%2F%2Fx', 'x'.repeat(101)])(
    'refuse the name %s',
    async (name) => {
      const app = await api.createApp();
      expect((await admin('PUT', pathOf(app, 'signatures', `/${name}`), {})).status).toBe(400);
    },
  );

  test('are deleted with their app', async () => {
    const app = await api.createApp();
    await template(app, 'a', '{{code}}');
    await send(app, {});
    expect(
      (await admin('DELETE', `/console/api/apps/${app.appId}`, { appId: app.appId })).status,
    ).toBe(200);
    expect((await admin('GET', pathOf(app, 'signatures'))).status).toBe(404);
  });
});
