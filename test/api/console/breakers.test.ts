import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { saveBreakerState } from '../../../shared/db/tables/gateways.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import type { BreakerKey, BreakerState } from '../../../shared/domain/breaker.ts';
import { useTestService } from '../../support/service.ts';

const service = useTestService();
async function appWithProfile(): Promise<{ app: App; id: string; key: BreakerKey }> {
  const app = await service.api.createApp();
  await service.addApnsProfile(app);
  const key = { connector: 'apns', appId: app.appId, profile: '_default' } as const;
  return { app, id: `apns:${app.appId}:_default`, key };
}

const post = (path: string) =>
  service.api.request('POST', `/console/api/breakers/${path}`, { admin: true });

async function findBreaker(id: string): Promise<unknown> {
  const { body } = await service.api.request('GET', '/console/api/breakers', { admin: true });
  return body.results.find((breaker: { id: string }) => breaker.id === id);
}

const note = (key: BreakerKey, state: BreakerState, since: string, dispatcher = randomUUID()) =>
  saveBreakerState(service.db, key, { dispatcher, state, since: new Date(since) });

describe('breakers in the admin API', () => {
  test('exist for each profile, and are closed at first', async () => {
    const { app, id } = await appWithProfile();
    expect(await findBreaker(id)).toEqual({
      id,
      connector: 'apns',
      appId: app.appId,
      profile: '_default',
      state: 'closed',
      forced: null,
      lastFailure: null,
      nextProbeAt: null,
      since: expect.stringMatching(/^\d{4}-.*Z$/),
    });
  });

  test('can be forced open or closed and released, and replies show the breaker', async () => {
    const { id } = await appWithProfile();
    expect(await post(`${id}/open`)).toMatchObject({
      status: 200,
      body: { id, state: 'open', forced: 'open' },
    });
    expect(await findBreaker(id)).toMatchObject({ state: 'open', forced: 'open' });
    expect(await post(`${id}/close`)).toMatchObject({
      status: 200,
      body: { state: 'closed', forced: 'closed' },
    });
    expect(await post(`${id}/release`)).toMatchObject({
      status: 200,
      body: { state: 'closed', forced: null },
    });
    expect(await findBreaker(id)).toMatchObject({ state: 'closed', forced: null });
  });

  test('keep the time of the first force if they are forced the same way again', async () => {
    const { id } = await appWithProfile();
    const first = await post(`${id}/open`);
    expect((await post(`${id}/open`)).body.since).toBe(first.body.since);
  });

  test('show the worst state of all dispatchers, and its start', async () => {
    const { id, key } = await appWithProfile();
    await note(key, 'closed', '2030-01-01T00:00:00.000Z');
    await note(key, 'open', '2026-01-02T00:00:00.000Z');
    await note(key, 'half-open', '2026-01-03T00:00:00.000Z');
    expect(await findBreaker(id)).toMatchObject({
      state: 'open',
      since: '2026-01-02T00:00:00.000Z',
    });
    await post(`${id}/close`);
    expect(await findBreaker(id)).toMatchObject({ state: 'closed', forced: 'closed' });
  });

  test('show when an open breaker is probed next, unless it is forced', async () => {
    const { id, key } = await appWithProfile();
    const state = {
      dispatcher: randomUUID(),
      state: 'open',
      since: new Date(),
      probeInMs: 5000,
    } as const;
    await saveBreakerState(service.db, key, state);
    expect(await findBreaker(id)).toMatchObject({
      state: 'open',
      nextProbeAt: expect.stringMatching(/Z$/),
    });
    await post(`${id}/open`);
    expect(await findBreaker(id)).toMatchObject({ state: 'open', nextProbeAt: null });
  });

  test('ignore the state of a dispatcher that stopped', async () => {
    const { id, key } = await appWithProfile();
    await note(key, 'open', '2026-01-02T00:00:00.000Z');
    await service.db.query(
      "UPDATE breaker_state SET seen_at = now() - interval '20 s' WHERE app_id = $1",
      [key.appId],
    );
    expect(await findBreaker(id)).toMatchObject({ state: 'closed' });
  });

  test('are deleted with their profile', async () => {
    const { app, id } = await appWithProfile();
    await post(`${id}/open`);
    const path = `/console/api/apps/${app.appId}/profiles/apns/_default`;
    expect(await service.api.request('DELETE', path, { admin: true })).toMatchObject({
      status: 200,
    });
    expect(await findBreaker(id)).toBeUndefined();
    await service.addApnsProfile(app);
    expect(await findBreaker(id)).toMatchObject({ state: 'closed', forced: null });
  });

  test.each(['nonsense', 'apns:unknown:_default', 'smoke:x:_default', 'apns:a:b:c'])(
    'of %s are not found',
    async (id) => {
      for (const verb of ['open', 'close', 'release'])
        expect(await post(`${id}/${verb}`)).toMatchObject({ status: 404 });
    },
  );

  test('are visible to operators only', async () => {
    const { id } = await appWithProfile();
    expect(await service.api.request('GET', '/console/api/breakers')).toMatchObject({
      status: 401,
    });
    expect(await service.api.request('POST', `/console/api/breakers/${id}/open`)).toMatchObject({
      status: 401,
    });
  });
});
