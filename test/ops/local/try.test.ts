/** Server of the page that tries Web Push: what it sends, and what it refuses. */
import { request as httpRequest } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { callsPerMinute } from '../../../ops/local/try/sender.ts';
import { startTryPage, type TryPage } from '../../../ops/local/try/server.ts';
import { type SandboxPage, startPage } from '../../../ops/sandbox/all/page.ts';
import { browserOf, subscriptionOf } from '../../../ops/sandbox/webpush/browser.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { testConfig } from '../../support/api.ts';
import { type AllVendors, startVendors } from '../../support/gateways/all-vendors.ts';
import { useTestService } from '../../support/service.ts';

const service = useTestService();
let vendors: AllVendors;
let sandbox: SandboxPage;
let app: App;
let page: TryPage;
const opened = () => ({
  api: { url: service.api.url, adminToken: testConfig(service.databaseUrl).adminToken },
  publicUrl: service.api.url,
  app,
  sandboxPage: () => sandbox.url,
});
beforeAll(async () => {
  vendors = await startVendors(service);
  sandbox = await startPage(vendors.instances);
  app = await vendors.app('webpush');
  const { url: endpoint, ca } = vendors.gateways.webPush;
  await service.api.request('PUT', `/console/api/apps/${app.appId}/profiles/webpush/browser`, {
    admin: true,
    body: { subject: 'mailto:push@example.com', endpoint, ca },
  });
  await service.dispatch();
  page = await startTryPage(0);
});
afterAll(async () => {
  await page.close();
  await sandbox.close();
  await vendors.close();
});

interface Answer {
  status: number;
  headers: Record<string, unknown>;
  text: string;
  body: Record<string, unknown>;
}

/** Sends a call with exactly these headers, also `Host`. */
function call(
  method: string,
  path: string,
  { headers = {}, text }: { headers?: Record<string, string>; text?: string } = {},
): Promise<Answer> {
  const { host, port } = new URL(page.url);
  const origin = { origin: `http://${host}`, 'content-type': 'application/json' };
  const sent = { host, ...(method === 'POST' ? origin : {}), ...headers };
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      { host: '127.0.0.1', port, method, path, headers: sent },
      async (reply) => {
        const chunks: Buffer[] = [];
        for await (const chunk of reply) chunks.push(Buffer.from(chunk));
        const text = Buffer.concat(chunks).toString();
        const isJson = reply.headers['content-type']?.includes('json');
        const body = isJson ? JSON.parse(text) : {};
        resolve({ status: reply.statusCode ?? 0, headers: reply.headers, text, body });
      },
    );
    request.on('error', reject);
    request.end(text);
  });
}
const send = (order: object, headers: Record<string, string> = {}) =>
  call('POST', '/send', { text: JSON.stringify(order), headers });
const simulated = async () => String((await call('POST', '/simulated')).body.objectId);

/** Registers a device with the app key, as a page does. */
async function register(hash: string, more: object = {}): Promise<string> {
  const subscription = subscriptionOf(browserOf(hash.repeat(64)));
  const body = { deviceType: 'web', vendor: 'webpush', subscription, ...more };
  const reply = await service.api.request('POST', '/1.1/installations', { app, body });
  return reply.body.objectId;
}

test('before the demo app exists, the page says that the service starts', async () => {
  const reply = await call('GET', '/');
  expect(reply).toMatchObject({ status: 503, body: { code: 503 } });
  expect(reply.text).toMatch(/is starting/);
});

describe('the opened page', () => {
  beforeAll(() => page.open(opened()));

  test('has the files of the example, and no master key', async () => {
    for (const [path, type, content] of [
      ['/', 'text/html', '/page.js'],
      ['/page.js', 'text/javascript', 'CarillonPush'],
      ['/page.css', 'text/css', 'body'],
      ['/sw.js', 'text/javascript', "addEventListener('push'"],
      ['/carillon-push.js', 'text/javascript', 'class CarillonPush'],
    ] as const) {
      const { headers, status, text } = await call('GET', path);
      expect(status).toBe(200);
      expect(headers['content-type']).toContain(type);
      expect(headers['content-security-policy']).toContain("default-src 'none'");
      expect(text).toContain(content);
    }
    const { text } = await call('GET', '/page.json');
    expect(JSON.parse(text).api).toMatchObject({ appKey: app.appKey, deviceProfile: 'browser' });
    expect(text).not.toContain(app.masterKey);
    for (const path of ['/texts.json', '/../server.ts', '/site/page.js', '/send'])
      expect((await call('GET', path)).status).toBe(404);
  });

  test.for([
    ['zh-CN,zh;q=0.9,en;q=0.8', 'zh', '允许通知'],
    ['en-US,zh;q=0.5', 'en', 'Allow notifications'],
    ['fr', 'en', 'Allow notifications'],
  ] as const)('for Accept-Language %s the texts are in %s', async ([accepted, language, allow]) => {
    const headers = { 'accept-language': accepted };
    const { body } = await call('GET', '/page.json', { headers });
    expect(body).toMatchObject({ language, texts: { allow } });
  });

  test('sends to the simulated browser, and returns the message that it decrypted', async () => {
    const objectId = await simulated();
    expect(await simulated()).toBe(objectId);
    const { body, status } = await send({ objectId, number: 77 });
    expect(status).toBe(200);
    expect(body.message).toMatchObject({
      tryNumber: 77,
      notification: { title: 'Carillon', body: 'Your push arrived.' },
    });
    const chinese = await send({ objectId, number: 78 }, { 'accept-language': 'zh' });
    expect(chinese.body.message).toMatchObject({ notification: { body: '您的推送已到达。' } });
    expect(await service.untilDone(app, String(body.pushId))).toMatchObject({ devices: 1 });
  });

  test('sends to no device that did not register with the profile of the page', async () => {
    const before = vendors.gateways.webPush.total;
    const other = await register('a');
    const { body } = await service.api.request('POST', '/1.1/installations', {
      app,
      body: { deviceType: 'android', installationId: 'no-browser', deviceProfile: 'browser' },
    });
    for (const objectId of [other, body.objectId, 'nothing'])
      expect(await send({ objectId, number: 1 })).toMatchObject({ status: 404 });
    expect(vendors.gateways.webPush.total).toBe(before);
  });

  test('sends to a browser of the profile of the page, by its push service', async () => {
    const objectId = await register('b', { deviceProfile: 'browser' });
    const { body } = await send({ objectId, number: 5 });
    const record = await service.untilDone(app, String(body.pushId));
    expect(record).toMatchObject({ devices: 1, webSuccesses: 1, outcomes: { sent: 1 } });
  });

  test('makes a registered browser a test device of the composer', async () => {
    const objectId = await register('c', { deviceProfile: 'browser' });
    const text = JSON.stringify({ objectId });
    for (const language of ['en', 'zh', 'zh']) {
      const headers = { 'accept-language': language };
      expect((await call('POST', '/registered', { text, headers })).status).toBe(200);
    }
    const other = JSON.stringify({ objectId: await register('d') });
    expect((await call('POST', '/registered', { text: other })).status).toBe(404);
    const path = `/console/api/apps/${app.appId}/test-devices`;
    const { body } = await service.api.request('GET', path, { admin: true });
    expect(body.results).toMatchObject([
      { name: 'This browser', installation: objectId },
      { name: '此浏览器', installation: objectId },
    ]);
  });

  test.for([
    ['push.example.com'],
    ['localhost'],
    ['localhost.example.com:8090'],
    ['127.0.0.1.example.com'],
    ['[::1]:1'],
  ] as const)('refuses the host %s', async ([host]) => {
    for (const [method, path] of [
      ['GET', '/'],
      ['GET', '/page.json'],
      ['POST', '/simulated'],
    ] as const) {
      const reply = await call(method, path, { headers: { host, origin: `http://${host}` } });
      expect(reply).toMatchObject({ status: 403, body: { code: 403 } });
      expect(reply.text).not.toContain(app.appKey);
    }
  });

  test.for([
    [{ origin: 'http://127.0.0.1:1' }],
    [{ origin: 'null' }],
    [{ origin: '' }],
    [{ 'content-type': 'text/plain' }],
    [{ 'content-type': 'application/x-www-form-urlencoded' }],
  ] as const)('refuses calls of other pages: %j', async ([headers]) => {
    const objectId = await simulated();
    const before = vendors.gateways.webPush.total;
    const text = JSON.stringify({ objectId, number: 1 });
    expect((await call('POST', '/send', { text, headers })).status).toBe(403);
    expect((await call('POST', '/simulated', { headers })).status).toBe(403);
    expect(vendors.gateways.webPush.total).toBe(before);
  });

  test.for([
    ['{', 'JSON'],
    ['null', 'JSON'],
    ['{"number":1}', 'objectId'],
    ['{"objectId":"a/../b","number":1}', 'objectId'],
    ['{"objectId":["a"],"number":1}', 'objectId'],
    ['{"objectId":"a","number":"1"}', 'number'],
    ['{"objectId":"a","number":1.5}', 'number'],
    ['{"objectId":"a","number":1,"where":{}}', 'where'],
  ] as const)('refuses the body %s', async ([text, member]) => {
    const reply = await call('POST', '/send', { text });
    expect(reply).toMatchObject({ status: 400, body: { code: 400 } });
    expect(reply.body.error).toContain(member);
  });

  test('refuses a long body', async () => {
    const reply = await send({ objectId: 'a'.repeat(2000), number: 1 });
    expect(reply).toMatchObject({ status: 413 });
  });

  test('takes a limited number of calls a minute', async () => {
    page.open(opened());
    const statuses: number[] = [];
    for (let i = 0; i <= callsPerMinute; i += 1)
      statuses.push((await send({ objectId: 'nothing', number: i })).status);
    expect(statuses).toEqual([...Array(callsPerMinute).fill(404), 429]);
    const reply = await send({ objectId: 'nothing', number: 1 }, { 'accept-language': 'zh' });
    expect(reply.body.error).toContain(`每分钟最多 ${callsPerMinute} 次`);
  });
});

test('without the api, the page says that the service did not take the call', async () => {
  page.open({ ...opened(), api: { url: 'http://127.0.0.1:1', adminToken: 'none' } });
  expect(await send({ objectId: 'nothing', number: 1 })).toMatchObject({ status: 502 });
  expect(await call('POST', '/simulated')).toMatchObject({ status: 502, body: { code: 502 } });
});

test('a second page takes another port', async () => {
  const second = await startTryPage(Number(new URL(page.url).port));
  expect(second.url).not.toBe(page.url);
  await second.close();
});
