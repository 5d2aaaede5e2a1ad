import { afterAll, beforeAll, expect, test } from 'vitest';
import { openCertificateAuthority } from '../../ops/sandbox/kit/certificates.ts';
import { beginPush, createAppOn } from '../support/gateways.ts';
import { alerts, startRefusingPeer } from '../support/refusing-peer.ts';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;

beforeAll(async () => {
  service = await startTestService();
  await service.dispatch();
});
afterAll(() => service?.close());

test('a client certificate that the gateway refuses ends the push with a sentence, and no token is deleted', async () => {
  const peer = await startRefusingPeer(alerts.certificateRevoked);
  const authority = await openCertificateAuthority();
  const client = await authority.issueClient({ commonName: 'Apple Push', userId: 'com.example.app' });
  const own = { auth: 'certificate', ...client, topic: 'com.example.app' };
  const { app, tokens, id } = await createAppOn(
    service,
    { ...own, endpoint: peer.url, ca: authority.certificate },
    1500,
  );
  const record = await service.untilDone(app, await beginPush(service, app));
  expect(record).toMatchObject({ status: 'done', devices: 1500, successes: 0, outcomes: { failed: 1500 } });
  expect(record.errors).toContain('The gateway refuses the client certificate');
  const { rows } = await service.db.query<{ n: number }>(
    'SELECT count(*) AS n FROM installation WHERE app_id = $1',
    [app.appId],
  );
  expect(rows[0]?.n).toBe(tokens.length);
  // Asking again would not help, and what was asked once per batch at the most was not asked per device.
  expect(peer.refused).toBeLessThan(10);
  const { body } = await service.api.request('GET', '/console/api/breakers', { admin: true });
  expect(body.results.find((breaker: { id: string }) => breaker.id === id)).toMatchObject({
    state: 'closed',
  });
  await peer.close();
});
