import { randomBytes, randomUUID } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import {
  subscriptionDocument,
  subscriptionIn,
} from '../../shared/domain/installations/subscription.ts';
import { type ConnectorId, installationVendor } from '../../shared/domain/labels.ts';
import { deviceTokenOf, sandboxConnectors } from '../sandbox/all/definitions.ts';
import type { Sandbox, SandboxInfo } from './service.ts';
import { browserProfile } from './try/profile.ts';

/** Demo app of a data directory. It is stored, so that the next start can use it again. */
const demoShape = z.object({
  appId: z.string(),
  appKey: z.string(),
  masterKey: z.string(),
  /** Installation ids of the devices on the device channel, which the sandbox simulates. */
  installationIds: z.array(z.string()),
  /** Token of an iOS device, for an example. */
  deviceToken: z.string(),
});
export type Demo = z.infer<typeof demoShape>;

const iosDevices = 500;
const channelDevices = 275;
/** Number of devices per vendor. FCM counts twice, because it has two connectors. */
const vendorDevices = 25;
/** Total: 1,000 devices. */
export const demoDevices =
  iosDevices + channelDevices + vendorDevices * (sandboxConnectors.length - 1);
/** Limit on concurrent registrations. It is low, so that a start does not overload the api. */
const registeringAtOnce = 16;

/**
 * Number of attempts to restore the demo after a restart of the sandbox. With the pause below, they
 * take one minute.
 */
const resumeAttempts = 120;
const resumePauseMs = 500;

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

/** Calls the api. Throws an error that contains the answer if the call is refused. */
export async function call<T>(
  { url }: Pick<DemoApi, 'url'>,
  request: Request,
  shape: z.ZodType<T>,
): Promise<T> {
  const response = await fetch(url + request.path, {
    method: request.method,
    headers: { 'content-type': 'application/json', ...request.headers },
    ...(request.body ? { body: JSON.stringify(request.body) } : {}),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${request.method} ${request.path} was refused: ${text}`);
  return shape.parse(JSON.parse(text));
}

/** Returns the headers of a call of the admin API. */
export const asOperator = (api: DemoApi) => ({ authorization: `Bearer ${api.adminToken}` });

/** Returns the headers of a call with the master key. */
export const asMaster = (app: Pick<Demo, 'appId' | 'masterKey'>) => ({
  'x-lc-id': app.appId,
  'x-lc-key': `${app.masterKey},master`,
});

/** Returns a single-use login link to the console. It is valid for 15 minutes. */
export async function createLoginLink(api: DemoApi): Promise<string> {
  const request = {
    method: 'POST',
    path: '/console/api/login-links',
    body: {},
    headers: asOperator(api),
  };
  return (await call(api, request, z.object({ url: z.string() }))).url;
}

/** Reads the demo app of this data directory. Returns undefined if the first start created none. */
export async function readDemo(dataDir: string): Promise<Demo | undefined> {
  const text = await readFile(join(dataDir, fileName), 'utf8').catch(() => undefined);
  return text === undefined ? undefined : demoShape.parse(JSON.parse(text));
}

/**
 * Creates the demo app through the public API, with profiles for all sandbox gateways and 1,000
 * devices.
 */
export async function createDemo(
  dataDir: string,
  api: DemoApi,
  sandbox: SandboxInfo,
): Promise<Demo> {
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
  await putProfiles(api, app.appId, sandbox);
  const tokens = Array.from({ length: iosDevices }, () => randomBytes(32).toString('hex'));
  const installationIds = Array.from({ length: channelDevices }, () => randomUUID());
  await registerDevices(api, app, [
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
    ...androidDevices(),
  ]);
  const demo = { ...app, installationIds, deviceToken: tokens[0] ?? '' };
  await writeFile(join(dataDir, fileName), JSON.stringify(demo), { mode: 0o600 });
  return demo;
}

/**
 * Returns devices of every vendor. Their registration ids are valid for the vendor's sandbox
 * gateway.
 */
const androidDevices = (): object[] =>
  sandboxConnectors.flatMap((connector) => {
    const vendor = installationVendor(connector);
    if (vendor === null) return [];
    return Array.from({ length: vendorDevices }, (_, n) => ({
      ...addressOf(connector, deviceTokenOf(connector, n)),
      installationId: randomUUID(),
      vendor,
      channels: ['news'],
    }));
  });

/** Returns the members by which a gateway reaches a device. */
function addressOf(connector: ConnectorId, token: string): object {
  const subscription = connector === 'webpush' ? subscriptionIn(token) : null;
  return subscription
    ? { deviceType: 'web', subscription: subscriptionDocument(subscription) }
    : { deviceType: 'android', registrationId: token };
}

/**
 * Updates the profiles with the current addresses of the gateways, because the ports change at
 * every start. Also creates the profile for real browsers. A profile without keys in the call keeps
 * its keys.
 */
export async function putProfiles(
  api: DemoApi,
  appId: string,
  { profiles }: SandboxInfo,
): Promise<void> {
  const all = [
    ...profiles.map((profile) => ({ ...profile, name: '_default' })),
    {
      connector: 'webpush',
      name: browserProfile,
      credentials: { subject: 'mailto:push@example.com' },
    },
  ];
  for (const { connector, credentials, name } of all)
    await call(
      api,
      {
        method: 'PUT',
        path: `/console/api/apps/${appId}/profiles/${connector}/${name}`,
        body: credentials,
        headers: asOperator(api),
      },
      z.unknown(),
    );
}

async function registerDevices(
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

/** Connects the demo's Android devices to the device channel. */
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

/** Sends the first push to all devices. Returns its objectId. */
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

/** Reads the push record. Its `lcSuccesses` counts the acknowledgements from the device channel. */
export function demoRecord(
  api: DemoApi,
  demo: Demo,
  objectId: string,
): Promise<z.infer<typeof recordShape>> {
  const path = `/1.1/tables/Notifications/${objectId}`;
  return call(api, { method: 'GET', path, headers: asMaster(demo) }, recordShape);
}

/** Repeats `work` until it succeeds, because the api may be restarting too. */
export async function retryUntilDone(work: () => Promise<void> | undefined): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work();
    } catch (error) {
      if (attempt === resumeAttempts) throw error;
      await sleep(resumePauseMs);
    }
  }
}
