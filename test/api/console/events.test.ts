import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { EventHub } from '../../../api/services/operator/events/hub.ts';
import type { Topic } from '../../../api/services/operator/events/poller.ts';
import { PushRecordService } from '../../../api/services/push/push-records.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { startTestApi, testConfig } from '../../support/api.ts';
import { useTestService } from '../../support/service.ts';
import { callerOf, createToken, pageOf } from './callers.ts';

const service = useTestService();
let app: App;
let objectId: string;
const open = new Set<AbortController>();

beforeAll(async () => {
  app = await service.api.createApp();
  await service.addApnsProfile(app);
  await service.addIosInstallations(app, 3);
  const body = { data: { alert: 'live' } };
  objectId = (await service.api.request('POST', '/1.1/push', { app, master: true, body })).body
    .objectId;
});
afterEach(() => {
  for (const controller of open) controller.abort();
  open.clear();
});

interface Event {
  event: string;
  data: Record<string, unknown>;
}

/** Opens a stream and returns its events one by one. Returns undefined at the end. */
async function watch(topics: string, headers: Record<string, string>, url = service.api.url) {
  const controller = new AbortController();
  open.add(controller);
  const path = `${url}/console/api/events?topics=${encodeURIComponent(topics)}`;
  const response = await fetch(path, { headers, signal: controller.signal });
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  const next = async (): Promise<Event | undefined> => {
    for (;;) {
      const end = text.indexOf('\n\n');
      if (end >= 0) {
        const block = text.slice(0, end);
        text = text.slice(end + 2);
        const data = /^data: (.*)$/m.exec(block)?.[1];
        if (data !== undefined)
          return { event: /^event: (.*)$/m.exec(block)?.[1] ?? '', data: JSON.parse(data) };
        continue;
      }
      const chunk = await reader?.read();
      if (!chunk || chunk.done) return undefined;
      text += chunk.value;
    }
  };
  const until = async (event: string, matches: (data: Event['data']) => boolean = () => true) => {
    for (let got = await next(); got; got = await next())
      if (got.event === event && matches(got.data)) return got.data;
    throw new Error(`the stream ended before ${event}`);
  };
  return { response, next, until, close: () => controller.abort() };
}

const bearer = async (role: 'viewer' | 'owner', more = {}) => ({
  Authorization: `Bearer ${(await createToken(service.api, role, more)).token}`,
});
const polled = () => service.api.services.events.hub.polled;

async function untilPolled(n: number): Promise<void> {
  while (polled() !== n) await new Promise((resolve) => setTimeout(resolve, 5));
}

describe('live updates', () => {
  test('show a push until it is done, to all listeners from one poller', async () => {
    const headers = await bearer('viewer');
    const topic = `push:${app.appId}/${objectId}`;
    const [one, other] = [await watch(topic, headers), await watch(`${topic},queues`, headers)];
    expect(one.response.headers.get('content-type')).toMatch(/^text\/event-stream/);
    expect(one.response.headers.get('x-accel-buffering')).toBe('no');
    expect(await one.until('progress')).toMatchObject({ topic, state: 'queued', devices: 0 });
    expect(await other.until('queues')).toMatchObject({ results: expect.any(Array) });
    expect(polled()).toBe(2);
    await service.dispatch();
    const isDone = ({ state }: Event['data']) => state === 'done';
    const done = await one.until('state', isDone);
    expect(done).toMatchObject({ devices: 3, outcomes: { sent: 3 }, status: 'done' });
    one.close();
    other.close();
    await untilPolled(0);
  });

  test('name the topic as each listener does', async () => {
    const headers = await bearer('viewer');
    const body = { data: { alert: 'live' }, notification_id: 'byBothIds' };
    const sent = await service.api.request('POST', '/1.1/push', { app, master: true, body });
    const topics = [sent.body.objectId, 'byBothIds'].map((id) => `push:${app.appId}/${id}`);
    for (const topic of topics) {
      const stream = await watch(topic, headers);
      expect(await stream.until('progress')).toMatchObject({ topic });
    }
  });

  test('for several tabs of one push read it once', async () => {
    const headers = await bearer('viewer');
    const find = vi.spyOn(PushRecordService.prototype, 'find');
    const tabs = await Promise.all(
      Array.from({ length: 20 }, () => watch(`push:${app.appId}/${objectId}`, headers)),
    );
    for (const tab of tabs) await tab.until('progress', ({ state }) => state === 'done');
    // The polls of a finished push, every five seconds, read it too.
    expect(find.mock.calls.length).toBeLessThan(10);
    find.mockRestore();
  });

  test("show the overview and the breakers of one's own apps", async () => {
    const headers = await bearer('viewer', { apps: [app.appId] });
    const stream = await watch(`overview:${app.appId},breakers`, headers);
    const first = await stream.next();
    const second = await stream.next();
    const byEvent = Object.fromEntries([first, second].map((got) => [got?.event, got?.data]));
    expect(byEvent.overview).toMatchObject({ setup: { hasPush: true } });
    expect(byEvent.breakers).toMatchObject({ results: [{ appId: app.appId }] });
  });

  test('of the overview have its name, whatever the first listener sent', async () => {
    const headers = await bearer('viewer');
    const first = await watch('overview:', headers);
    const second = await watch('overview', headers);
    for (const stream of [first, second])
      expect(await stream.until('overview')).toMatchObject({ topic: 'overview' });
  });

  test('end with the session, the token, and the process', async () => {
    const { adminToken } = testConfig(service.databaseUrl);
    const login = await service.api.request('POST', '/console/api/session', {
      body: { token: adminToken },
    });
    const Cookie = login.headers.get('set-cookie')?.split(';')[0] ?? '';
    const ofSession = await watch('queues', { Cookie });
    const { id, token } = await createToken(service.api, 'viewer');
    const ofToken = await watch('queues', { Authorization: `Bearer ${token}` });
    const headers = { Cookie, 'Sec-Fetch-Site': 'same-origin', 'Content-Type': 'application/json' };
    await service.api.request('DELETE', '/console/api/session', { headers });
    expect(await ofSession.until('bye')).toEqual({ reason: 'session' });
    expect(await ofSession.next()).toBeUndefined();
    await service.api.request('DELETE', `/console/api/tokens/${id}`, { admin: true });
    expect(await ofToken.until('bye')).toEqual({ reason: 'session' });
    const own = await startTestApi({ databaseUrl: service.databaseUrl });
    const ofProcess = await watch('queues', { Authorization: `Bearer ${adminToken}` }, own.url);
    await own.close();
    expect(await ofProcess.until('bye')).toEqual({ reason: 'restart' });
  });

  test.each([
    ['', 400],
    ['nonsense', 400],
    ['queues,'.repeat(400), 400],
    ['push:x/y', 404],
    ['overview:nowhere', 404],
    [Array.from({ length: 11 }, (_, i) => `overview:${i}`).join(','), 400],
  ])('refuse the topics %s', async (topics, status) => {
    const call = await callerOf(service.api, 'viewer');
    expect((await call('GET', `/events?topics=${encodeURIComponent(topics)}`)).status).toBe(status);
  });

  test('of another app or another site are refused', async () => {
    const call = await callerOf(service.api, 'viewer', { apps: ['mine'] });
    for (const topic of [`push:${app.appId}/${objectId}`, `overview:${app.appId}`])
      expect((await call('GET', `/events?topics=${topic}`)).status).toBe(403);
    const page = await pageOf(service.api, { token: testConfig(service.databaseUrl).adminToken });
    const headers = { 'Sec-Fetch-Site': 'same-site' };
    expect((await page('GET', '/events?topics=queues', { headers })).status).toBe(403);
  });
});

describe('the hub', () => {
  let polls = 0;
  const topic = (key: string): Topic => ({
    key,
    name: key,
    poll: async () => ({ event: 'e', data: { n: ++polls }, pollAfterMs: 0 }),
  });
  const watcher = (token: string) => ({
    key: `session of ${token}`,
    token,
    hasAccess: async () => true,
  });

  test('limits streams in total and per token, and topics', async () => {
    const hub = new EventHub({
      streams: 3,
      streamsPerToken: 2,
      topicsPerStream: 2,
      topics: 3,
      lingerMs: 0,
    });
    const topics = (...keys: string[]) => keys.map(topic);
    expect(() => hub.open(topics('a', 'b', 'c'), watcher('x'))).toThrow('at most 2');
    hub.open(topics('a', 'b'), watcher('x'));
    const second = hub.open(topics('a'), watcher('x'));
    expect(() => hub.open(topics('a'), watcher('x'))).toThrow('Too many');
    expect(() => hub.open(topics('c', 'd'), watcher('y'))).toThrow('Too many');
    hub.open(topics('c'), watcher('y'));
    expect(() => hub.open(topics('a'), watcher('z'))).toThrow('Too many');
    const closed = new Promise((resolve) => second.once('close', resolve));
    second.destroy();
    await closed;
    expect(hub.polled).toBe(3);
    hub.open(topics('a'), watcher('z'));
    await hub.close();
    expect(hub.polled).toBe(0);
    expect(() => hub.open(topics('a'), watcher('x'))).toThrow();
  });

  test('counts all sessions and topics of a token together', async () => {
    const hub = new EventHub({ streamsPerToken: 3, topicsPerToken: 3, lingerMs: 0 });
    const session = (n: number, token = 'x') => ({
      key: `session ${n}`,
      token,
      hasAccess: async () => true,
    });
    hub.open([topic('a'), topic('b')], session(1));
    hub.open([topic('c'), topic('a')], session(2));
    expect(() => hub.open([topic('d')], session(3))).toThrow('Too many');
    hub.open([topic('b')], session(3));
    expect(() => hub.open([topic('a')], session(4))).toThrow('Too many');
    hub.open([topic('d')], session(5, 'y'));
    await hub.close();
  });

  test('leaves room for other tokens, whatever one token opens', async () => {
    const hub = new EventHub({ lingerMs: 0 });
    const open = (token: string, n: number) =>
      hub.open([topic(`${token} ${n}`)], {
        key: `session ${n}`,
        token,
        hasAccess: async () => true,
      });
    const refusals = Array.from({ length: 500 }, (_, n) => n).filter((n) => {
      try {
        open('x', n);
        return false;
      } catch {
        return true;
      }
    });
    expect(refusals).toHaveLength(450);
    for (const token of ['a', 'b', 'c']) open(token, 0);
    await hub.close();
  });

  test('keeps the newest event of a topic for a slow reader', async () => {
    const hub = new EventHub({ lingerMs: 0 });
    const stream = hub.open([topic('a')], watcher('x'));
    for (let i = 0; i < 1000; i += 1) stream.send('a', `data: ${i}\n\n`);
    stream.endWith('restart');
    let text = '';
    for await (const chunk of stream) text += chunk;
    expect(text.match(/data: \d+$/gm)?.length ?? 0).toBeLessThanOrEqual(1);
    expect(text.endsWith('event: bye\ndata: {"reason":"restart"}\n\n')).toBe(true);
    await hub.close();
  });

  test('sends comments while nothing happens, and ends a stream that lost access', async () => {
    const hub = new EventHub({ beatMs: 1, checkMs: 1 });
    let mayWatch = true;
    const still: Topic = {
      ...topic('still'),
      poll: async () => ({ event: 'e', data: {}, pollAfterMs: 60_000 }),
    };
    const stream = hub.open([still], { key: 'x', token: 'x', hasAccess: async () => mayWatch });
    let text = '';
    for await (const chunk of stream) {
      text += chunk;
      if (text.includes('\n:\n\n')) mayWatch = false;
    }
    expect(text).toContain('"reason":"session"');
    await hub.close();
  });
});
