import { expect } from 'vitest';
import { freePort } from '../../../ops/local/ports.ts';
import {
  type ApnsGateway,
  createApnsCredentials,
  startApnsGateway,
} from '../../../ops/sandbox/apns/server.ts';
import { Vault } from '../../../shared/crypto.ts';
import { putProfile } from '../../../shared/db/tables/profiles.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { testConfig } from '../api.ts';
import type { TestService } from '../service.ts';
import { loopbackIdentity } from './identity.ts';

/** Gateway of a single app. It can stop and restart at the same address. */
export interface RestartableGateway {
  /** Credentials of a profile for this gateway. */
  own: Record<string, unknown>;
  now(): ApnsGateway;
  stop(): Promise<void>;
  restart(): Promise<void>;
}

export async function startRestartableGateway(): Promise<RestartableGateway> {
  const credentials = createApnsCredentials();
  const identity = await loopbackIdentity();
  const port = await freePort();
  const start = () => startApnsGateway({ keys: [credentials], ...identity, port });
  let gateway: ApnsGateway = await start();
  const { publicKey: _, ...own } = credentials;
  return {
    own: { auth: 'token', ...own, endpoint: gateway.url, ca: gateway.ca },
    now: () => gateway,
    stop: () => gateway.close(),
    async restart() {
      gateway = await start();
    },
  };
}

export interface AppOnGateway {
  app: App;
  tokens: string[];
  /** Id of the breaker. */
  id: string;
}

/**
 * Creates an app with iOS devices. It uses the gateway of these credentials or, for null, the
 * gateway of the service.
 */
export async function createAppOn(
  service: TestService,
  credentials: Record<string, unknown> | null,
  devices: number,
): Promise<AppOnGateway> {
  const app = await service.api.createApp();
  if (credentials === null) await service.addApnsProfile(app);
  else {
    const vault = new Vault(testConfig(service.databaseUrl).secrets);
    const profile = { appId: app.appId, connector: 'apns', name: '_default', credentials } as const;
    await putProfile(service.db, vault, profile);
  }
  const tokens = await service.addIosInstallations(app, devices);
  return { app, tokens, id: `apns:${app.appId}:_default` };
}

/** Sends a push and returns its id. */
export async function beginPush(
  service: TestService,
  app: App,
  body: object = {},
): Promise<string> {
  const whole = { data: { alert: 'Hello' }, ...body };
  const reply = await service.api.request('POST', '/1.1/push', { app, master: true, body: whole });
  expect(reply, JSON.stringify(reply.body)).toMatchObject({ status: 200 });
  return reply.body.objectId;
}
