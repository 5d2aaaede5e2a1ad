import { describe, expect, test } from 'vitest';
import { apnsCredentials } from '../../../connectors/apns/credentials.ts';
import { apnsConnector } from '../../../connectors/apns/index.ts';
import { openCertificateAuthority } from '../../../ops/sandbox/kit/certificates.ts';
import {
  aContext,
  calmTuning,
  kinds,
  recipients,
  sendAll,
  startApnsFixture,
  topic,
} from '../../support/gateways/apns.ts';
import { alerts, startRefusingPeer } from '../../support/http2/refusing-peer.ts';

describe('over HTTP/2', () => {
  test('a gateway with one stream after each refused token loses no recipient', async () => {
    const bench = await startApnsFixture({ gateway: { isStrictAfterRefusal: true } });
    const to = recipients(400);
    // The first success raises the limit from one stream.
    await sendAll(bench.sender, to.slice(0, 1));
    for (const { deviceToken } of to.filter(({ index }) => index % 10 === 5))
      bench.gateway.badTokens.add(deviceToken);
    const ended = { sent: 0, invalid_token: 0 };
    // A request that was refused too often is reported as a retry, because it was never processed.
    for (let left = to, round = 0; left.length > 0 && round < 50; round += 1) {
      const outcome = await sendAll(
        bench.sender,
        left.map((recipient, index) => ({ ...recipient, index })),
      );
      const { retry = 0, sent = 0, invalid_token: dead = 0, ...others } = kinds(outcome);
      expect({ others, sum: retry + sent + dead }).toEqual({ others: {}, sum: left.length });
      ended.sent += sent;
      ended.invalid_token += dead;
      left = left.filter((_, index) => outcome.attempts[index]?.kind === 'retry');
    }
    expect(ended).toEqual({ sent: 360, invalid_token: 40 });
    expect(to.slice(1).every(({ deviceToken }) => bench.gateway.seen(deviceToken) === 1)).toBe(
      true,
    );
    // A client that exceeds the current limit loses its connection.
    expect(bench.gateway.protocolErrors).toEqual([]);
    await bench.close();
  });

  test.each(Object.entries(alerts))(
    'a client certificate that is refused by the alert %s is a profile error',
    async (_, alert) => {
      const peer = await startRefusingPeer(alert);
      const authority = await openCertificateAuthority();
      const client = await authority.issueClient({ commonName: topic, userId: topic });
      const own = { auth: 'certificate', ...client, topic, endpoint: peer.url };
      const credentials = apnsCredentials.parse({ ...own, ca: authority.certificate });
      const sender = apnsConnector(calmTuning).open(credentials, aContext());
      const { attempts } = await sendAll(sender, recipients(20));
      expect(peer.refused).toBeGreaterThan(0);
      const check = await sender.check?.();
      await sender.close();
      await peer.close();
      expect(check).toEqual({ ok: false, attempt: attempts[0] });
      for (const attempt of attempts)
        expect(attempt).toEqual({
          kind: 'profile_error',
          status: 0,
          reason: 'certificate_refused',
          hint: 'certificateRefused',
          cause: expect.stringContaining('ALERT'),
        });
    },
  );
});
