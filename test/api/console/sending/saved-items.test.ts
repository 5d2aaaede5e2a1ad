import { beforeAll, describe, expect, test } from 'vitest';
import type { App } from '../../../../shared/domain/apps/app.ts';
import { useTestService } from '../../../support/service.ts';
import { type ConsoleCall, callerOf } from '../callers.ts';

const service = useTestService();
let app: App;
let viewer: ConsoleCall;
let sender: ConsoleCall;
let token: string;

beforeAll(async () => {
  app = await service.api.createApp();
  [token = ''] = await service.addIosInstallations(app, 1);
  viewer = await callerOf(service.api, 'viewer');
  sender = await callerOf(service.api, 'sender', { name: 'Li' });
});

const path = (rest: string) => `/apps/${app.appId}/${rest}`;
const put = (rest: string, body: object) => sender('PUT', path(rest), { body });

describe.each([
  ['push-templates', { body: { data: { alert: 'Hello' }, push_time: 'later' } }],
  ['audiences', { where: { channels: { $in: ['news'] } } }],
  ['audiences', { where: [{ city: 'Rome' }, { level: { $gt: 5 } }] }],
])('%s', (kind, content) => {
  test('are saved, replaced, listed by name and deleted', async () => {
    const name = encodeURIComponent('Sale 50% 促销 ');
    const item = {
      name: 'Sale 50% 促销',
      ...content,
      updatedBy: 'Li',
      updatedAt: expect.any(String),
    };
    expect(await put(`${kind}/${name}`, content)).toMatchObject({ status: 200, body: item });
    expect((await put(`${kind}/${name}`, content)).status).toBe(200);
    expect((await put(`${kind}/Alpha`, content)).status).toBe(200);
    const { results } = (await viewer('GET', path(kind))).body;
    expect(results).toMatchObject([{ name: 'Alpha' }, item]);
    expect((await viewer('GET', path(`${kind}/${name}`))).body).toEqual(item);
    for (const one of ['Alpha', name]) {
      expect((await sender('DELETE', path(`${kind}/${one}`))).body).toEqual({});
      expect((await sender('DELETE', path(`${kind}/${one}`))).status).toBe(404);
    }
    expect((await viewer('GET', path(`${kind}/Alpha`))).status).toBe(404);
    expect((await viewer('GET', path(kind))).body.results).toEqual([]);
  });
});

test('a test device is stored by its objectId', async () => {
  const reply = await put('test-devices/mine', { installation: token });
  expect(reply.body).toMatchObject({
    name: 'mine',
    installation: expect.stringMatching(/^\w{24}$/),
  });
  expect(
    (await put('test-devices/mine', { installation: reply.body.installation })).body,
  ).toMatchObject({
    installation: reply.body.installation,
  });
  expect((await put('test-devices/other', { installation: 'nothing' })).status).toBe(404);
  expect(await put('test-devices/other', { installation: 'a\0b' })).toMatchObject({
    status: 400,
    body: { error: expect.stringMatching(/^installation: /) },
  });
});

test('roles below operator see shortened tokens in a condition', async () => {
  await put('audiences/one', { where: { deviceToken: token } });
  expect((await viewer('GET', path('audiences/one'))).body.where.deviceToken).toMatch(/…$/);
  expect((await sender('GET', path('audiences/one'))).body.where.deviceToken).toMatch(/…$/);
  const { where } = (await sender('GET', path('audiences/one'))).body;
  expect(await put('audiences/one', { where })).toMatchObject({ status: 400, body: { code: 1 } });
  const whole = await service.api.request('GET', `/console/api${path('audiences/one')}`, {
    admin: true,
  });
  expect(whole.body.where.deviceToken).toBe(token);
});

test.each([
  ['audiences/x', { where: { $x: 1 } }, 400, 102],
  ['audiences/x', { where: 'all' }, 400, 111],
  ['audiences/x', {}, 400, 111],
  ['audiences/%20', { where: {} }, 400, 1],
  [`audiences/${'x'.repeat(101)}`, { where: {} }, 400, 1],
  ['audiences/a%00b', { where: {} }, 400, 1],
  ['audiences/%20..%20', { where: {} }, 400, 1],
  ['audiences/%09.', { where: {} }, 400, 1],
  [`audiences/${encodeURIComponent('a\u200Bb')}`, { where: {} }, 400, 1],
  [`audiences/${encodeURIComponent('\u202Eevil')}`, { where: {} }, 400, 1],
  [`push-templates/${encodeURIComponent('a\u2028b')}`, { body: {} }, 400, 1],
  [`test-devices/${encodeURIComponent('\uFEFF..')}`, { installation: 'nothing' }, 400, 1],
  ['audiences/x', { where: { a: 'x'.repeat(16_384) } }, 400, 116],
  ['push-templates/x', { body: { a: 'x'.repeat(16_384) } }, 400, 116],
  ['push-templates/x', { body: [] }, 400, 111],
] as const)('PUT %s is refused', async (rest, body, status, code) => {
  expect(await put(rest, body)).toMatchObject({ status, body: { code } });
});

test('an app has a limited number per kind, and sees only its own', async () => {
  const other = await service.api.createApp();
  const fill = (kind: string, n: number) =>
    service.db.query(
      `INSERT INTO saved_item (app_id, kind, name, content, updated_by)
       SELECT $1, $2, 'n' || i, '{}', 'x' FROM generate_series(1, $3::int) AS i`,
      [other.appId, kind, n],
    );
  for (const [kind, limit, body] of [
    ['push-template', 200, { body: {} }],
    ['audience', 200, { where: {} }],
  ] as const) {
    await fill(kind, limit);
    const call = (name: string) => sender('PUT', `/apps/${other.appId}/${kind}s/${name}`, { body });
    expect(await call('more')).toMatchObject({ status: 400, body: { code: 154 } });
    expect((await call('n1')).status).toBe(200);
  }
  await fill('test-device', 50);
  const [device] = await service.addIosInstallations(other, 1);
  const more = `/apps/${other.appId}/test-devices/more`;
  expect((await sender('PUT', more, { body: { installation: device } })).body.code).toBe(154);
  expect((await put('audiences/more', { where: {} })).status).toBe(200);
  expect((await sender('PUT', '/apps/nowhere/audiences/a', { body: { where: {} } })).status).toBe(
    404,
  );
  expect((await viewer('GET', '/apps/nowhere/audiences')).status).toBe(404);
});
