import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { describe, expect, test } from 'vitest';
import { isListCall } from '../../../api/services/batch/calls.ts';
import {
  listEstimate,
  objectEstimate,
  ReplyBudget,
  writeEstimate,
  writeReply,
} from '../../../api/services/batch/reply-budget.ts';
import type { App, AppOptionsPatch } from '../../../shared/domain/apps/app.ts';
import { Refusal } from '../../../shared/domain/errors/errors.ts';
import { answerWith, startFunctionHost } from '../../support/servers/function-host.ts';
import { useTestApi } from '../../support/test-api.ts';

const mebibyte = 1024 * 1024;
const path = '/1.1/installations';
const note = 'x'.repeat(120_000);

const api = useTestApi();
interface Item {
  success?: Record<string, unknown>;
  error?: { code: number; error: string };
}

let serial = 0;
const newDevice = (more: object = {}) => ({
  deviceType: 'android',
  installationId: `memory-${++serial}`,
  ...more,
});
const batch = (app: App, requests: object[], kind = '') =>
  api.request('POST', `/1.1/batch${kind}`, { app, master: true, body: { requests } });
const post = (at: string, body: object = {}) => ({ method: 'POST', path: at, body });
const times = <T>(count: number, item: T): T[] => Array.from({ length: count }, () => item);

/** Creates an app with one device and a large record. */
async function appWithDevice(options: AppOptionsPatch = {}): Promise<{ app: App; id: string }> {
  const app = await api.createApp(options);
  const large = { app, master: true, body: newDevice({ n: 0, notes: [note] }) };
  const { body } = await api.request('POST', path, large);
  return { app, id: body.objectId };
}
const countOf = async (app: App, id: string): Promise<number> =>
  (await api.request('GET', `${path}/${id}`, { app })).body.n;
/** Write that returns its changes, which are nearly the whole record. */
const fetched = (id: string) => ({
  method: 'PUT',
  path: `${path}/${id}`,
  params: { fetchWhenSave: true },
  body: { n: { __op: 'Increment', amount: 1 }, notes: { __op: 'AddUnique', objects: ['y'] } },
});
const succeeded = (items: Item[]) => items.filter(({ success }) => success);
const codesOf = (items: Item[]) => new Set(items.flatMap(({ error }) => error?.code ?? []));
const bytesOf = (value: unknown) => Buffer.byteLength(JSON.stringify(value));
const isFree = () => expect.poll(() => api.services.batches.usedBytes).toBe(0);

describe('the replies of one batch are at most 16 MB', () => {
  test('for writes: a write runs only if its reply has room', async () => {
    const { app, id } = await appWithDevice();
    const { status, body } = await batch(app, times(400, fetched(id)));
    expect(status).toBe(200);
    expect(body).toHaveLength(400);
    const done = succeeded(body);
    expect(codesOf(body)).toEqual(new Set([116]));
    expect(done.length).toBe(await countOf(app, id));
    expect(done.length).toBeGreaterThan(100);
    expect(bytesOf(done)).toBeLessThan(16 * mebibyte);
    await isFree();
  });

  test('for reads: lists and single objects', async () => {
    const { app, id } = await appWithDevice();
    const devices = Array.from({ length: 150 }, () => post(path, newDevice({ note })));
    expect(succeeded((await batch(app, devices)).body)).toHaveLength(150);
    const list = (limit: number) => ({ method: 'GET', path, params: { limit } });
    expect((await batch(app, [list(1000)])).body).toEqual([
      { error: { code: 116, error: expect.any(String) } },
    ]);
    expect(succeeded((await batch(app, [list(100), { path: '/1.1/date' }])).body)).toHaveLength(2);
    for (const item of [list(20), { method: 'GET', path: `${path}/${id}` }]) {
      const { body } = await batch(app, times(160, item));
      expect(body).toHaveLength(160);
      expect(codesOf(body)).toEqual(new Set([116]));
      expect(bytesOf(succeeded(body))).toBeGreaterThan(12 * mebibyte);
      expect(bytesOf(succeeded(body))).toBeLessThan(16.1 * mebibyte);
    }
    await isFree();
  });

  test('for functions: all run, and a reply without room is an error', async () => {
    const host = await startFunctionHost();
    const app = await api.createApp({ functionsUrl: host.url });
    host.answers.set('/1.1/functions/large', answerWith(200, { result: 'x'.repeat(9 * mebibyte) }));
    host.answers.set(
      '/1.1/call/fails',
      answerWith(400, { code: 1, error: 'x'.repeat(9 * mebibyte) }),
    );
    const large = post('/1.1/functions/large');
    const { body } = await batch(app, [large, large]);
    expect(succeeded(body)).toHaveLength(1);
    expect(body).toContainEqual({
      error: { code: 116, error: expect.stringMatching(/^The function ran/) },
    });
    expect(host.requests).toHaveLength(2);
    const failing = (await batch(app, [post('/1.1/call/fails'), large])).body;
    expect(failing[0].error.error).toHaveLength(9 * mebibyte);
    expect(failing[1].error).toMatchObject({ code: 116 });
    await isFree();
    await host.close();
  });

  test('for batch/save: an object without room is not saved, earlier ones are', async () => {
    const { app, id } = await appWithDevice();
    const savings = Array.from({ length: 400 }, (_, n) => {
      const saving = fetched(id);
      return { ...saving, body: { ...saving.body, __internalId: `id-${n}` } };
    });
    const full = await batch(app, savings, '/save');
    expect(full).toMatchObject({ status: 200, body: { 'id-399': { error: { code: 116 } } } });
    const saved = await countOf(app, id);
    const isSaved = (one: unknown) => JSON.stringify(one).includes(id);
    expect(Object.values(full.body).filter(isSaved)).toHaveLength(saved);
    expect(saved).toBeGreaterThan(100);
    expect(saved).toBeLessThan(140);
    const { status, body } = await batch(app, savings.slice(0, 100), '/save');
    expect(status).toBe(200);
    expect(Object.keys(body)).toHaveLength(100);
    expect(body['id-99']).toMatchObject({ n: saved + 100, notes: [note, 'y'] });
    await isFree();
  });
});

/** Sends a batch with the largest possible reply. The client does not read it. */
async function unread(app: App, id: string): Promise<IncomingMessage> {
  const headers = {
    'X-LC-Id': app.appId,
    'X-LC-Key': app.appKey,
    'Content-Type': 'application/json',
  };
  const call = request(`${api.url}/1.1/batch`, { method: 'POST', headers, agent: false });
  call.end(JSON.stringify({ requests: times(160, { method: 'GET', path: `${path}/${id}` }) }));
  const [response] = await once(call, 'response');
  expect(response.statusCode).toBe(200);
  return response;
}

describe('the replies of all batches of a process are at most 64 MB', () => {
  test('half of it for one app, and freed when a reply is read or dropped', async () => {
    const [one, other, third] = [
      await appWithDevice(),
      await appWithDevice(),
      await appWithDevice(),
    ];
    const ask = ({ app, id }: { app: App; id: string }) =>
      batch(app, [{ method: 'GET', path: `${path}/${id}` }]);
    const replies = [await unread(one.app, one.id), await unread(one.app, one.id)];
    const refused = await ask(one);
    expect(refused).toMatchObject({ status: 429, body: { code: 429, error: expect.any(String) } });
    expect(refused.headers.get('retry-after')).toMatch(/^[1-9]/);
    expect(await ask(other)).toMatchObject({ status: 200 });
    replies.push(await unread(other.app, other.id), await unread(other.app, other.id));
    expect(api.services.batches.usedBytes).toBeLessThanOrEqual(64 * mebibyte);
    const full = await ask(third);
    expect(full).toMatchObject({ status: 503, body: { code: 503 } });
    expect(full.headers.get('retry-after')).toMatch(/^[1-9]/);
    const [left, ...read] = replies;
    left?.destroy();
    for (const reply of read) {
      let bytes = 0;
      for await (const chunk of reply) bytes += chunk.length;
      expect(bytes).toBeGreaterThan(15 * mebibyte);
    }
    await isFree();
    for (const app of [one, other, third]) expect(await ask(app)).toMatchObject({ status: 200 });
  });

  test('a call waits if only running calls use the memory', async () => {
    const { app, id } = await appWithDevice();
    const increment = {
      method: 'PUT',
      path: `${path}/${id}`,
      body: { n: { __op: 'Increment', amount: 1 } },
    };
    const { body } = await api.request('POST', path, { app, body: newDevice({ n: 0 }) });
    const small = { ...increment, path: `${path}/${body.objectId}` };
    const replies = await Promise.all(
      times(40, [small, small, small, small]).map((items) => batch(app, items)),
    );
    for (const reply of replies) expect(succeeded(reply.body)).toHaveLength(4);
    expect(await countOf(app, body.objectId)).toBe(160);
    await isFree();
  });
});

test('a batch with too many discarded reads reads no more, but still writes', async () => {
  const budget = new ReplyBudget().open('app');
  const read = await budget.reserve(listEstimate(true));
  if (read instanceof Refusal) throw read;
  expect(read.keep(17 * mebibyte)).toMatchObject({ code: 116 });
  for (const need of [listEstimate(false), objectEstimate])
    expect(await budget.reserve(need)).toMatchObject({ code: 116 });
  expect(await budget.reserve(writeEstimate)).not.toBeInstanceOf(Refusal);
});

test.each([
  ['/1.1/installations', true],
  ['/1.1/users', true],
  ['/1.1/users/strictlyQuery', true],
  ['/1.1/classes/_User', true],
  ['/1.1/scan/classes/_User', true],
  ['/1.1/cloudQuery', true],
  ['/1.1/users/me', false],
  ['/1.1/classes/_User/5741c55697ebd5ac0084497b', false],
])('GET %s reads a list: %s', (at, expected) => {
  expect(isListCall({ method: 'GET', path: at, query: {}, body: undefined })).toBe(expected);
});

test('an unread reply is dropped after its time', async () => {
  let released = 0;
  const reply = writeReply(
    { begin: '[', parts: times(3, 'x'.repeat(50_000)), end: ']' },
    () => void released++,
    10,
  );
  if (typeof reply === 'string') throw new Error('such a reply is a stream');
  await new Promise((resolve) => reply.once('close', resolve));
  expect(reply.errored?.message).toMatch(/not read/);
  expect(released).toBe(1);
});
