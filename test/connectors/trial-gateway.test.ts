import { X509Certificate } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openTransport } from '../../connectors/http2/pooled-transport.ts';
import { defaultTiming, type RequestResult, type Transport } from '../../connectors/http2/transport.ts';
import { openTrialGateway } from '../../connectors/trial/gateway.ts';
import { selfSignedCertificate } from '../../connectors/trial/self-signed.ts';
import { systemClock } from '../../shared/clock.ts';

let trial: Awaited<ReturnType<typeof openTrialGateway>>;
let transport: Transport;
beforeAll(async () => {
  trial = await openTrialGateway(systemClock.now());
  const { endpoint, ca } = trial.gateway;
  const options = { timing: defaultTiming, clock: systemClock, maxConnections: 1, firstStreams: 1 };
  transport = openTransport({ ...options, baseUrl: endpoint, ca });
});
afterAll(async () => {
  await transport.close();
  trial.close();
});

const send = async (count: number) => {
  const results = new Map<string, number>();
  const template = { pathPrefix: '/3/device/', headers: {}, body: Buffer.from('{}') };
  const requests = Array.from({ length: count }, (_, i) => ({ path: String(i) }));
  await transport.sendMany({ template, requests }, (_, result: RequestResult) => {
    const key = result.kind === 'response' ? String(result.status) : result.kind;
    results.set(key, (results.get(key) ?? 0) + 1);
    return undefined;
  });
  return Object.fromEntries(results);
};

test('the certificate is valid for the loopback address', () => {
  const certificate = new X509Certificate(selfSignedCertificate(systemClock.now()).certificate);
  expect(certificate.checkIP('127.0.0.1')).toBe('127.0.0.1');
  expect(certificate.checkIssued(certificate)).toBe(true);
  expect(certificate.verify(certificate.publicKey)).toBe(true);
});

test('the trial gateway takes every request until it is closed', async () => {
  expect(await send(3000)).toEqual({ 200: 3000 });
  trial.close();
  expect(await send(1)).not.toHaveProperty('200');
});
