import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type RunningDispatcher, startDispatcher } from '../../dispatcher/start.ts';
import { silentLog, testConfig } from '../support/api.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';

const token = 'a token of Prometheus';
let database: TestDatabase;
let dispatcher: RunningDispatcher;

beforeAll(async () => {
  database = await createTestDatabase();
  const env = { METRICS_TOKEN: token, METRICS_HOST: '::1' };
  dispatcher = await startDispatcher(testConfig(database.url, env), silentLog);
});
afterAll(async () => {
  await dispatcher.stack.close();
  await database.drop();
});

const ask = (path: string, headers: Record<string, string> = {}, host = '[::1]') =>
  fetch(`http://${host}:${dispatcher.metricsPort}${path}`, { headers });

describe('the metrics of a dispatcher', () => {
  test.each(['', 'Bearer', `Bearer ${token}x`, `Basic ${token}`])(
    'require METRICS_TOKEN if it is set: %j is refused',
    async (authorization) => {
      const reply = await ask('/metrics', authorization === '' ? {} : { authorization });
      expect(reply.status).toBe(401);
      expect(await reply.json()).toEqual({ code: 401, error: 'Unauthorized.' });
    },
  );

  test('are returned to a caller with the token; health is returned to every caller', async () => {
    const reply = await ask('/metrics', { authorization: `Bearer ${token}` });
    expect(await reply.text()).toContain('carillon_');
    expect((await ask('/healthz')).status).toBe(200);
    expect((await ask('/readyz')).status).toBe(200);
  });

  test('listen on METRICS_HOST, and not where the api listens', async () => {
    await expect(ask('/healthz', {}, '127.0.0.1')).rejects.toThrow('fetch failed');
  });
});

test('a stopping dispatcher answers /readyz with 503, but /healthz as before', async () => {
  const stopping = await startDispatcher(testConfig(database.url), silentLog);
  const get = (path: string) => fetch(`http://127.0.0.1:${stopping.metricsPort}${path}`);
  expect((await get('/readyz')).status).toBe(200);
  const lastOpened = Promise.withResolvers<void>();
  stopping.stack.add('the last opened', () => lastOpened.promise);
  const closed = stopping.stack.close();
  const reply = await get('/readyz');
  expect({ status: reply.status, body: await reply.json() }).toEqual({
    status: 503,
    body: { status: 'stopping' },
  });
  expect((await get('/healthz')).status).toBe(200);
  lastOpened.resolve();
  await closed;
});
