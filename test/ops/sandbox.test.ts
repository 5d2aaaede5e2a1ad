import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { checkCredentials, connectors } from '../../connectors/registry.ts';
import { choosePort } from '../../ops/local/ports.ts';
import { deviceTokenOf } from '../../ops/sandbox/all/definitions.ts';
import { startGateways } from '../../ops/sandbox/all/start.ts';
import { createServiceAccount, startFcmGateway } from '../../ops/sandbox/fcm/server.ts';
import { isConnectorId, profileConnectorIds } from '../../shared/domain/labels.ts';
import { testConfig } from '../support/api.ts';
import { bareEnvironment, carillon, carillonProcess, launcher } from '../support/cli.ts';
import { aMessage, recipients, sendAll, startApnsFixture } from '../support/gateways/apns.ts';
import { aContext } from '../support/gateways/sender-context.ts';
import { useTestService } from '../support/service.ts';

const report = z.object({
  pid: z.number(),
  page: z.string(),
  gateways: z.array(
    z.object({
      connector: z.string(),
      title: z.string(),
      vendor: z.string().nullable(),
      url: z.string(),
      credentials: z.record(z.string(), z.unknown()),
    }),
  ),
});

let folder: string;
const running: ChildProcess[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'carillon-sandbox-'));
});
afterAll(async () => {
  for (const child of running) if (child.exitCode === null) child.kill('SIGKILL');
  await rm(folder, { recursive: true });
});

/**
 * Starts the command. Resolves with its output as soon as `isEnough` returns true for the output.
 */
async function start(args: string[], isEnough: (text: string) => boolean) {
  const child = spawn(process.execPath, [launcher, 'sandbox', ...args], {
    env: bareEnvironment(),
    cwd: folder,
  });
  running.push(child);
  let printed = '';
  await new Promise<void>((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`the sandbox ended with ${code}: ${printed}`)));
    child.stdout.on('data', (chunk: Buffer) => {
      printed += chunk;
      if (isEnough(printed)) resolve();
    });
  });
  const end = async () => {
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGTERM');
    return ended;
  };
  return { printed, end };
}

const startJson = async (...args: string[]) => {
  const { end, printed } = await start(['--json', ...args], (text) => text.endsWith('\n'));
  return { ...report.parse(JSON.parse(printed)), end };
};

const read = async (url: string) => {
  const reply = await fetch(url);
  return { status: reply.status, text: await reply.text() };
};

/** Web Push devices have an endpoint and keys, which tokens of other tests lack. */
const webPushTarget = (id: string): { deviceToken?: string } =>
  id === 'webpush' ? { deviceToken: deviceTokenOf(id, 1) } : {};

describe('npx carillon sandbox', () => {
  test('prints addresses and credentials with which each connector can send', async () => {
    const sandbox = await startJson();
    expect(sandbox.gateways.map(({ connector }) => connector)).toEqual(profileConnectorIds);
    for (const { connector: id, credentials } of sandbox.gateways) {
      if (!isConnectorId(id)) throw new Error(id);
      const checked = checkCredentials(id, credentials);
      if (!checked.ok) throw new Error(`${id}: ${checked.error}`);
      const sender = connectors.get(id)?.open(checked.credentials, aContext());
      if (!sender) throw new Error(id);
      const odd = { alert: '<b>Your parcel & more</b>', order: '"\'' };
      // No device has this token. It is enough that the request arrives.
      const to = recipients(
        1,
        id === 'apns' ? {} : { deviceType: 'android', ...webPushTarget(id) },
      );
      await sendAll(sender, to, aMessage(odd));
      await sender.close();
    }
    const summary = JSON.parse((await read(`${sandbox.page}/summary.json`)).text);
    const overview = (await read(sandbox.page)).text;
    for (const { connector, url } of sandbox.gateways) {
      expect(summary[connector].requests, connector).toBeGreaterThan(0);
      expect(overview).toContain(url);
      const { status, text } = await read(`${sandbox.page}/${connector}`);
      expect(status).toBe(200);
      expect(text).toContain('Your parcel');
      expect(text).not.toContain('<b>Your');
    }
    for (const path of ['/unknown', '/apns/x', '/apns/profile.json/x', '/%zz', '//'])
      expect((await read(sandbox.page + path)).status).toBe(404);
    expect((await fetch(sandbox.page, { method: 'POST' })).status).toBe(405);
    expect(await sandbox.end()).toBe(0);
  });

  test('listens on consecutive ports if requested, and keeps credentials', async () => {
    // Below the ports that Linux assigns to clients, such as other tests.
    const port = await choosePort({
      requested: undefined,
      defaultPort: 27_310,
      host: '127.0.0.1',
      variable: 'PORT',
    });
    const args = ['--port', String(port), '--keep', 'kept.json'];
    const first = await startJson(...args);
    expect(first.page).toBe(`http://127.0.0.1:${port}`);
    expect(first.gateways.map(({ url }) => Number(new URL(url).port))).toEqual(
      first.gateways.map((_, i) => port + 1 + i),
    );
    const taken = await carillonProcess(['sandbox', '--json', ...args], { cwd: folder });
    expect(taken.code).toBe(1);
    expect(taken.json()).toMatchObject({ error: expect.stringContaining('EADDRINUSE') });
    expect(await first.end()).toBe(0);
    const second = await startJson(...args);
    expect(second.gateways).toEqual(first.gateways);
    expect((await stat(join(folder, 'kept.json'))).mode & 0o777).toBe(0o600);
    expect(JSON.parse(await readFile(join(folder, 'kept.json'), 'utf8'))).toHaveProperty(
      'vendor_e',
    );
    await second.end();
  });

  test('refuses an invalid port', async () => {
    expect((await carillonProcess(['sandbox', '--port', 'x'], { cwd: folder })).code).toBe(2);
    expect((await carillonProcess(['sandbox', '--port', '65535'], { cwd: folder })).code).toBe(1);
  });
});

describe('its output for people', () => {
  const service = useTestService();
  test('is a table, with commands that store the profiles', async () => {
    const { end, printed } = await start([], (text) => text.includes('Ctrl-C'));
    expect(printed).toMatch(/^Huawei +vendor_a +HMS +https:\/\/127\.0\.0\.1:\d+$/m);
    const page = /what each received +(\S+)\//.exec(printed)?.[1] ?? '';
    const app = await service.api.createApp();
    const profile = (await read(`${page}/vendor_a/profile.json`)).text;
    expect(printed).toContain(
      `curl -s ${page}/vendor_a/profile.json | npx carillon profile put <app id> vendor_a -`,
    );
    const { adminToken } = testConfig(service.databaseUrl);
    const env = { PUBLIC_URL: service.api.url, CARILLON_ADMIN_TOKEN: adminToken };
    const put = await carillon(['profile', 'put', app.appId, 'vendor_a', '-'], {
      env,
      cwd: folder,
      stdin: profile,
    });
    expect(put.code, put.stderr).toBe(0);
    await end();
  });
});

describe('gateways without checks', () => {
  test('accept what connectors send to unknown devices, and count only requests', async () => {
    const sandbox = await startGateways({ checks: 'none' });
    onTestFinished(() => sandbox.close());
    for (const { connector: id, credentials, summary, vendor } of sandbox.instances) {
      const checked = checkCredentials(id, credentials);
      if (!checked.ok) throw new Error(`${id}: ${checked.error}`);
      const sender = connectors.get(id)?.open(checked.credentials, aContext());
      if (!sender) throw new Error(id);
      const device = { deviceType: 'android', vendor, ...webPushTarget(id) };
      const to = recipients(3, vendor === null ? {} : device);
      const { attempts } = await sendAll(sender, to);
      await sender.close();
      expect(
        attempts.map(({ kind }) => kind),
        id,
      ).toEqual(['sent', 'sent', 'sent']);
      const requests = Math.ceil(3 / (connectors.get(id)?.limits.recipientsPerRequest ?? 1));
      expect(summary(), id).toEqual({ requests, accepted: 0, devices: 0, violations: 0 });
    }
  });

  test('name the device of each request to APNs', async () => {
    const seen: string[] = [];
    const fixture = await startApnsFixture({
      gateway: { checks: 'none', onRequest: ({ token }) => seen.push(token) },
    });
    onTestFinished(() => fixture.close());
    const to = recipients(50);
    await sendAll(fixture.sender, to);
    expect(seen.sort()).toEqual(to.map(({ deviceToken }) => deviceToken).sort());
    expect(fixture.gateway.total).toBe(50);
  });

  test('answer other paths over HTTP/1.1 with 404, also pipelined', async () => {
    const gateway = await startFcmGateway({ account: createServiceAccount(), checks: 'none' });
    onTestFinished(() => gateway.close());
    const socket = connect({
      port: Number(new URL(gateway.url).port),
      ca: gateway.ca,
      host: '127.0.0.1',
    });
    const call = (path: string) =>
      `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc`;
    const all =
      call('/token') + call('/other') + call('/v1/projects/carillon-sandbox/messages:send');
    socket.write(all.slice(0, 20));
    socket.write(all.slice(20));
    let answer = '';
    for await (const chunk of socket) {
      answer += chunk;
      if (answer.includes('"name"')) break;
    }
    expect(answer.match(/HTTP\/1\.1 \d+/g)).toEqual([
      'HTTP/1.1 200',
      'HTTP/1.1 404',
      'HTTP/1.1 200',
    ]);
    expect(gateway.total).toBe(1);
  });

  test('cannot misbehave', async () => {
    const gateway = await startFcmGateway({ account: createServiceAccount(), checks: 'none' });
    onTestFinished(() => gateway.close());
    expect(() => gateway.misbehave({ kind: 'hang' })).toThrow('without checks');
  });
});
