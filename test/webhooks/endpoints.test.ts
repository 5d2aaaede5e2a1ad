import { createHmac } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sleep } from '../../shared/clock.ts';
import type { App } from '../../shared/domain/apps/app.ts';
import { setPrivateHosts } from '../../shared/http/outbound-addresses.ts';
import { changeMaxAgeMs } from '../../shared/ttl-cache.ts';
import { callerOf } from '../api/console/callers.ts';
import {
  startWebhookReceiver,
  status,
  type WebhookReceiver,
} from '../support/servers/webhook-receiver.ts';
import { useTestService } from '../support/service.ts';

const service = useTestService();
let app: App;
let receiver: WebhookReceiver;

beforeAll(async () => {
  app = await service.api.createApp();
  await service.dispatch();
  receiver = await startWebhookReceiver();
});

afterAll(() => receiver.close());

const admin = (method: 'GET' | 'PUT' | 'POST' | 'DELETE', path: string, body?: object) =>
  service.api.request(method, `/console/api/apps/${app.appId}/webhooks${path}`, {
    admin: true,
    ...(body ? { body } : {}),
  });

const events = ['push.done'];
const url = 'https://example.com/hook';

describe('an endpoint', () => {
  test('is created, listed, replaced and deleted; its secret is shown once', async () => {
    const created = await admin('PUT', '/one', { url, events });
    expect(created).toMatchObject({
      status: 201,
      body: {
        name: 'one',
        url,
        events,
        format: 'standard',
        isEnabled: true,
        waiting: 0,
        dropped: 0,
      },
    });
    const key = String(created.body.secret).replace('whsec_', '');
    expect(Buffer.from(key, 'base64')).toHaveLength(32);
    const replaced = await admin('PUT', '/one', { url, events: ['push.failed'], isEnabled: false });
    expect(replaced).toMatchObject({ status: 200, body: { events: ['push.failed'] } });
    expect(replaced.body).not.toHaveProperty('secret');
    // An absent switch keeps its position.
    expect((await admin('PUT', '/one', { url, events })).body).toMatchObject({ isEnabled: false });
    expect((await admin('GET', '')).body.results).toMatchObject([{ name: 'one', events }]);
    expect((await admin('GET', '/one')).body).not.toHaveProperty('secret');
    expect((await admin('DELETE', '/one')).status).toBe(200);
    for (const [method, path] of [
      ['GET', '/one'],
      ['DELETE', '/one'],
      ['POST', '/one/test'],
      ['POST', '/one/rotate'],
      ['GET', '/one/deliveries'],
      ['POST', '/one/deliveries/msg_1_a/redeliver'],
    ] as const)
      expect((await admin(method, path)).status).toBe(404);
  });

  test('is stored encrypted', async () => {
    await admin('PUT', '/sealed', { url: 'https://example.com/a-token', events });
    const { rows } = await service.db.query<{ row: string }>(
      `SELECT w::text || encode(secrets, 'escape') AS row FROM webhook w WHERE name = 'sealed'`,
    );
    expect(rows[0]?.row).not.toContain('a-token');
    await admin('DELETE', '/sealed');
  });

  test.each([
    ['a name with a dot', '/a.b', { url, events }, 'letters, digits'],
    ['an unknown type', '/a', { url, events: ['push.gone'] }, 'events'],
    ['no types', '/a', { url, events: [] }, 'events'],
    ['an unknown member', '/a', { url, events, secret: 'x' }, 'secret'],
    ['an unknown format', '/a', { url, events, format: 'teams' }, 'format'],
    [
      'recipients in a chat',
      '/a',
      { url, events: ['recipients.outcome'], format: 'slack' },
      'recipients.outcome is for programs',
    ],
    [
      'a signing secret of Slack',
      '/a',
      { url, events, format: 'slack', signingSecret: 'x' },
      'signingSecret',
    ],
    [
      'a long signing secret',
      '/a',
      { url, events, format: 'feishu', signingSecret: 'x'.repeat(201) },
      'signingSecret: must be at most 200 characters',
    ],
  ])('with %s is refused', async (_what, path, body, text) => {
    const reply = await admin('PUT', path, body);
    expect(reply).toMatchObject({ status: 400, body: { code: expect.any(Number) } });
    expect(reply.body.error).toContain(text);
  });

  test.each([
    'http://example.com/hook',
    'ftp://example.com/hook',
    'example.com/hook',
    'https://user:password@example.com/hook',
    'https://10.0.0.1/hook',
    'https://169.254.169.254/latest/meta-data',
    'https://[::ffff:10.0.0.1]/hook',
    'https://[64:ff9b::a00:1]/hook',
    'https://0xa000001/hook',
    'http://169.254.169.254/hook',
  ])('a hostile URL is refused: %s', async (hostile) => {
    const reply = await admin('PUT', '/hostile', { url: hostile, events });
    expect(reply).toMatchObject({ status: 400, body: { error: expect.stringMatching(/^url: /) } });
  });

  test('gets no connection if its address is private by the time of the request', async () => {
    await admin('PUT', '/moved', { url: receiver.url, events });
    const before = receiver.requests.length;
    setPrivateHosts('');
    try {
      await admin('POST', '/moved/test');
      await expect
        .poll(async () => (await admin('GET', '/moved/deliveries')).body.results[0])
        .toMatchObject({ state: 'waiting', reason: expect.stringContaining('address_refused') });
    } finally {
      setPrivateHosts('127.0.0.0/8,::1/128');
    }
    expect(receiver.requests).toHaveLength(before);
    await admin('DELETE', '/moved');
  });

  test('is one of ten at most', async () => {
    for (let i = 0; i < 10; i += 1)
      expect((await admin('PUT', `/n${i}`, { url, events })).status).toBe(201);
    expect(await admin('PUT', '/n10', { url, events })).toMatchObject({ body: { code: 154 } });
    expect((await admin('PUT', '/n9', { url, events })).status).toBe(200);
    for (let i = 0; i < 10; i += 1) await admin('DELETE', `/n${i}`);
  });
});

test('only owners set a URL, see that of a chat, and rotate', async () => {
  const operator = await callerOf(service.api, 'operator');
  const path = `/apps/${app.appId}/webhooks/roles`;
  const chat = 'https://hooks.slack.com/services/a-token';
  expect((await operator('PUT', path, { body: { url, events } })).status).toBe(403);
  await admin('PUT', '/roles', { url: chat, events, format: 'slack' });
  const shown = await operator('GET', path);
  expect(shown.body).toMatchObject({ url: 'https://hooks.slack.com/…' });
  const body = { url: shown.body.url, events, format: 'slack', isEnabled: false };
  expect((await operator('PUT', path, { body })).status).toBe(200);
  expect((await admin('GET', '/roles')).body).toMatchObject({ url: chat, isEnabled: false });
  // An endpoint of the standard format would show its URL to operators.
  for (const format of [{}, { format: 'standard' }]) {
    const reply = await operator('PUT', path, { body: { url: shown.body.url, events, ...format } });
    expect(reply).toMatchObject({ status: 403 });
    expect(JSON.stringify(reply.body)).not.toContain('a-token');
  }
  expect((await operator('GET', path)).body).toMatchObject({ url: shown.body.url });
  expect((await operator('POST', `${path}/rotate`)).status).toBe(403);
  const sender = await callerOf(service.api, 'sender');
  expect((await sender('GET', path)).status).toBe(403);
  expect(
    JSON.stringify((await service.api.request('GET', '/console/api/audit', { admin: true })).body),
  ).not.toContain('a-token');
  await admin('DELETE', '/roles');
});

describe('a chat', () => {
  const last = () => receiver.requests.at(-1);

  async function sent(format: string, members: object = {}, reply = '{"code":0,"errcode":0}') {
    receiver.responders.push(status(200, {}, reply));
    await admin('PUT', '/chat', { url: receiver.url, events, format, ...members });
    await admin('POST', '/chat/test');
    const results = async () => (await admin('GET', '/chat/deliveries')).body.results;
    await expect.poll(async () => (await results())[0]?.attempts).toBe(1);
    const [delivery] = await results();
    await admin('DELETE', '/chat');
    return { delivery, body: JSON.parse(last()?.body ?? '{}') };
  }

  test.each([
    ['feishu', { msg_type: 'text', content: { text: '这是 Webhook chat 的测试。' } }],
    ['dingtalk', { msgtype: 'text', text: { content: '这是 Webhook chat 的测试。' } }],
    ['wecom', { msgtype: 'text', text: { content: '这是 Webhook chat 的测试。' } }],
    ['slack', { text: 'This is a test of the webhook chat.' }],
  ])('of %s gets its form of a message', async (format, message) => {
    const { delivery, body } = await sent(format);
    expect(body).toEqual(message);
    expect(delivery).toMatchObject({ state: 'delivered' });
  });

  test('gets the language that is set', async () => {
    const { body } = await sent('feishu', { language: 'en' });
    expect(body.content.text).toBe('This is a test of the webhook chat.');
  });

  test.each([
    ['slack', 'a &lt;!channel&gt; &amp;amp; &lt;https://a.example|b&gt;', 'text'],
    ['feishu', 'a <!channel> &amp; ＜at user_id="all">＜/at>', 'content'],
  ])('of %s shows a reason as it was typed, without mentions', async (format, shown, member) => {
    const reason =
      format === 'slack'
        ? 'a <!channel> &amp; <https://a.example|b>'
        : 'a <!channel> &amp; <at user_id="all"></at>';
    await admin('PUT', '/frozen', { url: receiver.url, events: ['freeze.started'], format });
    await sleep(changeMaxAgeMs + 50);
    const path = `/console/api/apps/${app.appId}/freeze`;
    receiver.responders.push(status(200, {}, '{"code":0}'));
    await service.api.request('PUT', path, { admin: true, body: { reason } });
    await service.api.request('DELETE', path, { admin: true });
    const deliveries = async () => (await admin('GET', '/frozen/deliveries')).body.results;
    await expect.poll(async () => (await deliveries())[0]?.state).toBe('delivered');
    const body = JSON.parse(last()?.body ?? '{}');
    const text = member === 'text' ? body.text : body.content.text;
    expect(text.endsWith(shown), text).toBe(true);
    await admin('DELETE', '/frozen');
  });

  test.each([
    ['feishu', '{"code":19001,"msg":"param invalid"}', 'chat_19001'],
    ['dingtalk', '{"errcode":310000,"errmsg":"sign not match"}', 'chat_310000'],
    ['wecom', '{"errcode":93000,"errmsg":"invalid webhook url"}', 'chat_93000'],
    ['wecom', '<html>', 'chat_unreadable'],
  ])('of %s that answers 200 with an error has failed', async (format, reply, reason) => {
    const { delivery } = await sent(format, {}, reply);
    expect(delivery).toMatchObject({ state: 'waiting', status: 200, reason });
  });

  test('of Feishu and DingTalk gets the signature of its robot', async () => {
    const signingSecret = 'SEC-of-the-robot';
    const { body } = await sent('feishu', { signingSecret });
    const key = `${body.timestamp}\n${signingSecret}`;
    expect(body.sign).toBe(createHmac('sha256', key).digest('base64'));
    await sent('dingtalk', { signingSecret });
    const query = new URL(last()?.path ?? '', receiver.url).searchParams;
    const text = `${query.get('timestamp')}\n${signingSecret}`;
    expect(query.get('tenant')).toBe('a');
    expect(query.get('sign')).toBe(
      createHmac('sha256', signingSecret).update(text).digest('base64'),
    );
  });
});
