/** Push services that WEBPUSH_HOSTS adds, which may be hostile: real TLS servers on loopback. */
import { createSecureServer, type Http2SecureServer } from 'node:http2';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { webPushConnector } from '../../../connectors/webpush/index.ts';
import { decrypt, tokenOf } from '../../../ops/sandbox/webpush/browser.ts';
import { loopbackNetworks } from '../../../shared/config/private-hosts.ts';
import { setPushHosts } from '../../../shared/domain/installations/push-services.ts';
import { setPrivateHosts } from '../../../shared/http/outbound-addresses.ts';
import {
  aContext,
  kinds,
  recipients,
  sendAll,
  shortTimeoutTuning,
} from '../../support/gateways/apns.ts';
import { loopbackIdentity } from '../../support/gateways/identity.ts';
import { browser, credentials } from './fixture.ts';

type Handler = NonNullable<Parameters<typeof createServer>[1]>;

const open: (Server | Http2SecureServer)[] = [];
const seen: { path: string; version: string; body: Buffer }[] = [];

/** Starts a TLS server. Returns its host with the port. */
async function startHost(answer: Handler, { isHttp2 = false } = {}): Promise<string> {
  const { server: pem } = await loopbackIdentity();
  const options = { cert: pem.certificate, key: pem.privateKey };
  const handle: Handler = (request, response) => {
    const chunks: Buffer[] = [];
    request.on('error', () => undefined).on('data', (chunk: Buffer) => chunks.push(chunk));
    response.on('error', () => undefined);
    request.on('end', () => {
      const { httpVersion: version, url: path = '' } = request;
      seen.push({ path, version, body: Buffer.concat(chunks) });
      answer(request, response);
    });
  };
  const server = isHttp2
    ? createSecureServer(options, handle as never)
    : createServer(options, handle);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  open.push(server);
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

afterEach(() => {
  for (const server of open.splice(0)) {
    if ('closeAllConnections' in server) server.closeAllConnections();
    server.close();
  }
  seen.length = 0;
  setPushHosts('');
  setPrivateHosts(loopbackNetworks);
});

async function push(host: string, count = 3, { hosts = host, requestMs = 15_000 } = {}) {
  setPushHosts(hosts);
  const { authority } = await loopbackIdentity();
  const connector = webPushConnector({ timing: { ...shortTimeoutTuning.timing, requestMs } });
  const profile = connector.credentials.parse({ ...credentials, ca: authority.certificate });
  const sender = connector.open(profile, aContext());
  const targets = recipients(count, { deviceType: 'web' }).map((one) => ({
    ...one,
    deviceToken: tokenOf({
      ...browser(one.index),
      endpoint: `https://${host}/up/${one.index}?t=1`,
    }),
  }));
  try {
    return await sendAll(sender, targets);
  } finally {
    await sender.close();
  }
}

const created: Handler = (_, response) => void response.writeHead(201).end();

describe('protocols', () => {
  test('HTTP/1.1 is used if a host has no HTTP/2', async () => {
    const outcome = await push(await startHost(created), 40);
    expect(kinds(outcome)).toEqual({ sent: 40 });
    expect(new Set(seen.map(({ version }) => version))).toEqual(new Set(['1.1']));
    expect(new Set(seen.map(({ path }) => path)).size).toBe(40);
    const [first] = seen;
    const index = Number(/\d+(?=\?)/.exec(first?.path ?? '')?.[0]);
    expect(decrypt(first?.body ?? Buffer.alloc(0), browser(index))).toMatchObject({ ok: true });
  });

  test('HTTP/2 is used if a host has it', async () => {
    const outcome = await push(await startHost(created, { isHttp2: true }), 40);
    expect(kinds(outcome)).toEqual({ sent: 40 });
    expect(new Set(seen.map(({ version }) => version))).toEqual(new Set(['2.0']));
  });
});

test.each([false, true])(
  'the reason in a header of Microsoft is read (HTTP/2: %s)',
  async (isHttp2) => {
    const [other, ...others] = [0, 1, 2].map((n) => browser(n, 'microsoft'));
    const host = await startHost(
      ({ url }, response) => {
        if (other?.endpoint.endsWith(url ?? '')) {
          const description = 'The public key does not match the channel';
          response.writeHead(401, { 'x-wns-error-description': description });
        } else response.writeHead(201);
        response.end();
      },
      { isHttp2 },
    );
    const { authority } = await loopbackIdentity();
    const connector = webPushConnector();
    const profile = { ...credentials, ca: authority.certificate, endpoint: `https://${host}` };
    const sender = connector.open(connector.credentials.parse(profile), aContext());
    const tokens = [other, ...others].flatMap((one) => (one ? [tokenOf(one)] : []));
    const targets = recipients(3, { deviceType: 'web' }).map((one) => ({
      ...one,
      deviceToken: tokens[one.index] ?? '',
    }));
    const { attempts } = await sendAll(sender, targets);
    await sender.close();
    expect(attempts.map(({ kind }) => kind)).toEqual(['invalid_token', 'sent', 'sent']);
  },
);

describe.each([false, true])('hostile hosts (HTTP/2: %s)', (isHttp2) => {
  const start = (answer: Handler) => startHost(answer, { isHttp2 });

  test('a redirect is not followed', async () => {
    const inner = await startHost(created);
    const host = await start(
      (_, response) => void response.writeHead(307, { location: `https://${inner}/secret` }).end(),
    );
    const outcome = await push(host, 1, { hosts: `${host},${inner}` });
    expect(outcome.attempts).toMatchObject([{ kind: 'rejected', reason: 'redirected' }]);
    expect(seen.some(({ path }) => path === '/secret')).toBe(false);
  });

  test('an endless body ends with the limit of the reply or the timeout', async () => {
    const host = await start((_, response) => {
      response.writeHead(400);
      const write = () => {
        while (
          !response.destroyed &&
          !response.writableEnded &&
          response.write('x'.repeat(65_536))
        );
        if (!response.destroyed) response.once('drain', write);
      };
      write();
    });
    const { attempts } = await push(host, 1, { requestMs: 2000 });
    expect(['unknown', 'rejected']).toContain(attempts[0]?.kind);
  });

  test('a host that never answers gets one message, and the others wait', async () => {
    const outcome = await push(await start(() => undefined), 300, { requestMs: 1500 });
    expect(kinds(outcome)).toEqual({ unknown: 1, retry: 299 });
    expect(outcome.attempts).toContainEqual(
      expect.objectContaining({ kind: 'retry', reason: 'service_paused', isOfService: true }),
    );
    expect(seen).toHaveLength(1);
  });

  test('after 20 failures in a row the host gets no more requests for a while', async () => {
    const host = await start((request) => request.socket.destroy());
    const count = isHttp2 ? 4000 : 400;
    const outcome = await push(host, count);
    expect(outcome.reports.every((count) => count === 1)).toBe(true);
    expect(seen.length).toBeLessThan(count);
    expect(kinds(outcome).retry).toBeGreaterThan(100);
  });
});

describe('addresses', () => {
  test('a listed host with a private address that is not allowed gets no connection', async () => {
    const host = await startHost(created);
    setPrivateHosts('');
    const { attempts } = await push(host, 1);
    expect(attempts).toMatchObject([{ kind: 'rejected', reason: 'address_refused' }]);
    expect(seen).toEqual([]);
  });

  test('the cloud metadata service is never reached', async () => {
    setPrivateHosts('169.254.0.0/16,127.0.0.0/8');
    const { attempts } = await push('169.254.169.254', 1);
    expect(attempts).toMatchObject([{ kind: 'rejected', reason: 'address_refused' }]);
  });

  test('a host that nobody listens on is a retry of this service', async () => {
    const { attempts } = await push('127.0.0.1:9', 2);
    expect(attempts).toMatchObject([
      { kind: 'retry', cause: 'ECONNREFUSED', isOfService: true },
      { kind: 'retry', reason: 'service_paused', isOfService: true },
    ]);
  });
});
