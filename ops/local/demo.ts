import { randomBytes, randomUUID } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { addressOf, kinds, sandboxConnectors } from '../sandbox/all/kinds.ts';
import type { Sandbox, SandboxInfo } from './service.ts';

/** The demo app of a data directory: enough to go on with it after a restart. */
const demoShape = z.object({
  appId: z.string(),
  appKey: z.string(),
  masterKey: z.string(),
  /** Devices on our own channel, which the sandbox plays. */
  installationIds: z.array(z.string()),
  /** One iOS device, for an example. */
  deviceToken: z.string(),
});
export type Demo = z.infer<typeof demoShape>;

const iosDevices = 500;
const channelDevices = 300;
/** Of each maker's channel, and of FCM under either label. */
const vendorDevices = 25;
/** All of them: a thousand. */
export const demoDevices = iosDevices + channelDevices + vendorDevices * (sandboxConnectors.length - 1);
/** Installations registered at a time: a start should not look like a flood. */
const registeringAtOnce = 16;

const fileName = 'demo.json';

export interface DemoApi {
  url: string;
  adminToken: string;
}

interface Request {
  method: string;
  path: string;
  body?: object;
  headers?: Record<string, string>;
}

async function call<T>({ url }: DemoApi, request: Request, shape: z.ZodType<T>): Promise<T> {
  const response = await fetch(url + request.path, {
    method: request.method,
    headers: { 'content-type': 'application/json', ...request.headers },
    ...(request.body ? { body: JSON.stringify(request.body) } : {}),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${request.method} ${request.path} was refused: ${text}`);
  return shape.parse(JSON.parse(text));
}

const asOperator = (api: DemoApi) => ({ authorization: `Bearer ${api.adminToken}` });

const asMaster = (app: Pick<Demo, 'appId' | 'masterKey'>) => ({
  'x-lc-id': app.appId,
  'x-lc-key': `${app.masterKey},master`,
});

/** The demo app of this data directory, if its first start made one. */
export async function readDemo(dataDir: string): Promise<Demo | undefined> {
  const text = await readFile(join(dataDir, fileName), 'utf8').catch(() => undefined);
  return text === undefined ? undefined : demoShape.parse(JSON.parse(text));
}

/** Makes the demo app with profiles for all sandbox gateways and a thousand devices, over the public interface. */
export async function createDemo(dataDir: string, api: DemoApi, sandbox: SandboxInfo): Promise<Demo> {
  const app = await call(
    api,
    {
      method: 'POST',
      path: '/console/api/apps',
      body: { name: 'Carillon demo', options: { hybridPush: true } },
      headers: asOperator(api),
    },
    demoShape.pick({ appId: true, appKey: true, masterKey: true }),
  );
  await pointAtSandbox(api, app.appId, sandbox);
  const tokens = Array.from({ length: iosDevices }, () => randomBytes(32).toString('hex'));
  const installationIds = Array.from({ length: channelDevices }, () => randomUUID());
  await register(api, app, [
    ...tokens.map((deviceToken) => ({
      deviceType: 'ios',
      deviceToken,
      apnsTopic: 'com.example.app',
      channels: ['news'],
    })),
    ...installationIds.map((installationId) => ({
      deviceType: 'android',
      installationId,
      channels: ['news'],
    })),
    ...vendorsDevices(),
  ]);
  const demo = { ...app, installationIds, deviceToken: tokens[0] ?? '' };
  await writeFile(join(dataDir, fileName), JSON.stringify(demo), { mode: 0o600 });
  return demo;
}

/** Devices of every maker, with registration ids that its gateway takes. */
const vendorsDevices = (): object[] =>
  sandboxConnectors.flatMap((connector) => {
    const { vendor } = kinds[connector];
    if (vendor === null) return [];
    return Array.from({ length: vendorDevices }, (_, n) => ({
      deviceType: 'android',
      installationId: randomUUID(),
      registrationId: addressOf(connector, n),
      vendor,
      channels: ['news'],
    }));
  });

/** The gateways listen on other ports after every start: the profiles follow them. */
export async function pointAtSandbox(api: DemoApi, appId: string, { profiles }: SandboxInfo): Promise<void> {
  for (const { connector, credentials } of profiles)
    await call(
      api,
      {
        method: 'PUT',
        path: `/console/api/apps/${appId}/profiles/${connector}/_default`,
        body: credentials,
        headers: asOperator(api),
      },
      z.unknown(),
    );
}

async function register(
  api: DemoApi,
  app: Pick<Demo, 'appId' | 'masterKey'>,
  devices: object[],
): Promise<void> {
  const waiting = [...devices];
  const work = async () => {
    for (let body = waiting.pop(); body; body = waiting.pop())
      await call(
        api,
        { method: 'POST', path: '/1.1/installations', body, headers: asMaster(app) },
        z.unknown(),
      );
  };
  await Promise.all(Array.from({ length: registeringAtOnce }, work));
}

/** Connects the demo's Android devices. */
export function connectDemo(api: DemoApi, demo: Demo, sandbox: Sandbox): Promise<void> {
  return sandbox.connectDevices({
    apiUrl: api.url,
    appId: demo.appId,
    installationIds: demo.installationIds,
  });
}

const counts = z.record(z.string(), z.number());
const progressShape = z.object({
  status: z.string(),
  devices: z.number(),
  outcomes: counts,
  connectors: z.record(z.string(), counts),
});
export type DemoProgress = z.infer<typeof progressShape>;

/** Sends the first push to all devices; gives the id of its record. */
export async function pushDemo(api: DemoApi, demo: Demo): Promise<string> {
  const body = { data: { alert: 'Hello from Carillon', title: 'First push', badge: 'Increment' } };
  const reply = await call(
    api,
    { method: 'POST', path: '/1.1/push', body, headers: asMaster(demo) },
    z.object({ objectId: z.string() }),
  );
  return reply.objectId;
}

export function demoProgress(api: DemoApi, demo: Demo, objectId: string): Promise<DemoProgress> {
  const path = `/console/api/apps/${demo.appId}/notifications/${objectId}/progress`;
  return call(api, { method: 'GET', path, headers: asOperator(api) }, progressShape);
}

const recordShape = z.object({
  devices: z.number(),
  successes: z.number(),
  lcSuccesses: z.number().default(0),
});

/** The push record: successes of our own channel are what devices acknowledged. */
export function demoRecord(api: DemoApi, demo: Demo, objectId: string): Promise<z.infer<typeof recordShape>> {
  const path = `/1.1/tables/Notifications/${objectId}`;
  return call(api, { method: 'GET', path, headers: asMaster(demo) }, recordShape);
}
