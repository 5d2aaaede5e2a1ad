import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ProfileCheckService } from '../../../../api/services/operator/gateways/profile-check.ts';
import { dayMs, systemClock } from '../../../../shared/clock.ts';
import type { App } from '../../../../shared/domain/apps/app.ts';
import { certificateUntil } from '../../../support/gateways/certificates.ts';
import { useTestService } from '../../../support/service.ts';
import { type ConsoleCall, callerOf } from '../callers.ts';

const service = useTestService();
let app: App;
let operator: ConsoleCall;
/** Caller with the role owner. Only owners may set the address of a gateway. */
let owner: ConsoleCall;
/** Gateway that accepts connections but never answers. */
let silent: Server;
let silentUrl: string;
const sockets = new Set<Socket>();

beforeAll(async () => {
  app = await service.api.createApp();
  operator = await callerOf(service.api, 'operator');
  owner = await callerOf(service.api, 'owner');
  await service.addApnsProfile(app);
  await service.addIosInstallations(app, 3);
  silent = createServer((socket) => void sockets.add(socket)).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const address = silent.address();
  silentUrl = `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`;
});
afterAll(() => {
  for (const socket of sockets) socket.destroy();
  silent.close();
});

const path = (rest: string) => `/apps/${app.appId}/profiles/${rest}`;
const secret = 'hush-hush-hush';
const oppo = (endpoint: string) => ({
  body: { appKey: 'key', masterSecret: secret, endpoint, authEndpoint: endpoint },
});

describe('a push profile', () => {
  test('shows ids and settings, and fingerprints of its secrets', async () => {
    const { body } = await operator('GET', path('apns/_default'));
    expect(body).toMatchObject({
      connector: 'apns',
      name: '_default',
      kind: 'token',
      members: { auth: 'token', topics: ['com.example.app'] },
      secrets: { privateKey: { sha256: expect.stringMatching(/^[0-9a-f]{64}$/) } },
      // Expiry of the sandbox's certificate in `ca`.
      notAfter: expect.stringMatching(/^\d{4}-/),
      devices: 3,
      findings: [],
    });
    await owner('PUT', path('vendor_d/other'), oppo('https://user:pass.test@gateway.test')).then(
      (put) => expect(put.status).toBe(400),
    );
    await owner('PUT', path('vendor_d/other'), oppo('https://gateway.test/base'));
    const otherProfile = await operator('GET', path('vendor_d/other'));
    expect(JSON.stringify(otherProfile.body)).not.toContain(secret);
    expect(otherProfile.body.members.endpoint).toBe('https://gateway.test/base');
    expect(otherProfile.body.secrets.masterSecret.sha256).toBe(
      createHash('sha256').update(secret).digest('hex'),
    );
    expect(otherProfile.body.devices).toBe(0);
    const { body: list } = await operator('GET', `/apps/${app.appId}/profiles?view=details`);
    const one = await operator('GET', path('apns/_default'));
    expect(list.results).toEqual([one.body, otherProfile.body]);
  });

  test('with a certificate that ends within 30 days is in the overview', async () => {
    const own = await service.api.createApp();
    const ends = systemClock.now() + 10 * dayMs;
    for (const [name, endMs] of [
      ['soon', ends],
      ['later', ends + 100 * dayMs],
    ] as const) {
      const body = await certificateUntil(endMs);
      const put = await operator('PUT', `/apps/${own.appId}/profiles/apns/${name}`, { body });
      expect([put.status, put.body]).toEqual([200, expect.any(Object)]);
    }
    const { profilesExpiring } = (await operator('GET', `/overview?app=${own.appId}`)).body;
    expect(profilesExpiring).toMatchObject([{ connector: 'apns', profile: 'soon' }]);
    const { notAfter } = (await operator('GET', `/apps/${own.appId}/profiles/apns/soon`)).body;
    expect(profilesExpiring[0].expiresAt).toBe(notAfter);
    expect(Math.abs(Date.parse(notAfter) - ends)).toBeLessThan(1000);
  });

  test('returns 404 if it does not exist, and is for operators only', async () => {
    for (const rest of ['apns/none', 'nix/_default', 'channel/_default', 'apns/%00'])
      expect((await operator('GET', path(rest))).status, rest).toBe(404);
    expect((await operator('POST', path('apns/none/check'))).status).toBe(404);
    const sender = await callerOf(service.api, 'sender');
    expect((await sender('GET', path('apns/_default'))).status).toBe(403);
    expect((await sender('POST', path('apns/_default/check'))).status).toBe(403);
    expect((await sender('GET', `/apps/${app.appId}/profiles?view=details`)).status).toBe(403);
    expect((await sender('GET', `/apps/${app.appId}/profiles?view=all`)).status).toBe(400);
  });
});

describe('the check of a profile', () => {
  test('reports that the gateway is reachable, and sends nothing', async () => {
    const { body } = await operator('POST', path('apns/_default/check'));
    expect(body).toMatchObject({ ok: true, gave: 'connection', reason: null, remedy: null });
    expect(service.apns.requests).toEqual([]);
  });

  test('reports why a gateway could not be reached', async () => {
    await owner('PUT', path('vendor_d/closed'), oppo('http://127.0.0.1:1'));
    const { body } = await operator('POST', path('vendor_d/closed/check'));
    expect(body).toMatchObject({ ok: false, gave: null, reason: 'ECONNREFUSED' });
    expect(body).toMatchObject({ sentence: 'OPPO does not answer: ECONNREFUSED.' });
    expect(body.remedy).toEqual({ code: 'unreachable' });
  });

  test('ends in time if the gateway never answers, and is shared or limited', async () => {
    const profile = {
      connector: 'vendor_d',
      name: '_default',
      credentials: oppo(silentUrl).body,
      createdAt: new Date(),
      updatedAt: new Date(),
      rotation: null,
      messageClasses: null,
    };
    // Needs no database, so that all checks start in one tick of the event loop.
    const open = async () => ({ id: 'vendor_d', profile }) as const;
    const checks = new ProfileCheckService({ clock: systemClock }, { open }, 300);
    const id = { appId: app.appId, connector: 'vendor_d', name: 'p0' };
    const [one, other] = await Promise.all([checks.check(id), checks.check(id)]);
    expect(one).toBe(other);
    expect(one).toMatchObject({ ok: false, reason: 'ETIMEDOUT' });
    const many = Array.from({ length: 9 }, (_, i) => checks.check({ ...id, name: `p${i}` }));
    const ended = await Promise.allSettled(many);
    expect(ended.filter(({ status }) => status === 'rejected')).toHaveLength(1);
  });
});
