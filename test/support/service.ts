import { afterAll, beforeAll } from 'vitest';
import {
  type DispatcherOptions,
  type RunningDispatcher,
  startDispatcher,
} from '../../dispatcher/start.ts';
import { freePort } from '../../ops/local/ports.ts';
import {
  type ApnsCredentials,
  type ApnsGateway,
  type ApnsGatewayOptions,
  createApnsCredentials,
  startApnsGateway,
} from '../../ops/sandbox/apns/server.ts';
import type { Clock } from '../../shared/clock.ts';
import { Vault } from '../../shared/crypto.ts';
import { Database } from '../../shared/db/pool.ts';
import { putProfile } from '../../shared/db/tables/profiles.ts';
import type { App } from '../../shared/domain/apps/app.ts';
import { silentLog, startTestApi, type TestApi, testConfig } from './api.ts';
import { createTestDatabase } from './database.ts';
import { loopbackIdentity } from './gateways/identity.ts';

export interface TestService {
  api: TestApi;
  db: Database;
  databaseUrl: string;
  apns: ApnsGateway;
  /** Starts a dispatcher in this process. It is closed with the service. */
  dispatch(
    options?: Pick<DispatcherOptions, 'clock' | 'breakers' | 'webhooks'>,
  ): Promise<RunningDispatcher>;
  /** Adds a token profile for the APNs sandbox to an app. */
  addApnsProfile(app: App, name?: string): Promise<void>;
  /** Inserts iOS installations directly into the table. Returns their tokens. */
  addIosInstallations(app: App, count: number, fields?: Record<string, unknown>): Promise<string[]>;
  /** Polls the record until the push is done. */
  untilDone(app: App, objectId: string, timeoutMs?: number): Promise<Record<string, unknown>>;
  close(): Promise<void>;
}

/**
 * Starts an api whose public URL contains its port, because devices find the channel by this URL.
 */
async function startApiOnFreePort(
  options: { databaseUrl: string; clock?: Clock },
  requested: Record<string, string> | undefined,
  triesLeft = 5,
): Promise<{ api: TestApi; publicUrl: string }> {
  const port = await freePort();
  const publicUrl = `http://127.0.0.1:${port}`;
  const env = { ...requested, PORT: String(port), PUBLIC_URL: publicUrl };
  try {
    return { api: await startTestApi({ ...options, env }), publicUrl };
  } catch (error) {
    // Another process may take the port before the api.
    const isTaken = error instanceof Error && 'code' in error && error.code === 'EADDRINUSE';
    if (!isTaken || triesLeft === 0) throw error;
    return startApiOnFreePort(options, requested, triesLeft - 1);
  }
}

/**
 * Starts an api and an APNs gateway on loopback. Uses a new database unless one is given.
 * Dispatchers are started on request.
 */
export async function startTestService(
  options: {
    clock?: Clock;
    gateway?: ApnsGatewayOptions;
    databaseUrl?: string;
    /** Additional variables for the api and the dispatchers. */
    env?: Record<string, string>;
  } = {},
): Promise<TestService> {
  const database = options.databaseUrl
    ? { url: options.databaseUrl, drop: () => Promise.resolve() }
    : await createTestDatabase();
  const credentials: ApnsCredentials = createApnsCredentials();
  const { gateway, databaseUrl: _, env: asked, ...apiOptions } = options;
  const apns = await startApnsGateway({
    keys: [credentials],
    ...(await loopbackIdentity()),
    ...gateway,
  });
  const { api, publicUrl } = await startApiOnFreePort(
    { databaseUrl: database.url, ...apiOptions },
    asked,
  );
  const db = new Database({ url: database.url, applicationName: 'test' });
  const dispatchers: RunningDispatcher[] = [];
  return {
    api,
    db,
    databaseUrl: database.url,
    apns,
    async dispatch(options = {}) {
      // Gateways send receipts to the public URL.
      const config = testConfig(database.url, { ...asked, PUBLIC_URL: publicUrl });
      const dispatcher = await startDispatcher(config, silentLog, options);
      dispatchers.push(dispatcher);
      return dispatcher;
    },
    addApnsProfile: (app, name = '_default') =>
      putApnsProfile(db, app, { name, credentials, gateway: apns }),
    addIosInstallations: (app, count, fields = {}) => insertIos(db, app, count, fields),
    untilDone: (app, objectId, timeoutMs = 60_000) => untilDone(api, app, { objectId, timeoutMs }),
    async close() {
      await Promise.all(dispatchers.map((dispatcher) => dispatcher.stack.close()));
      await api.close();
      await db.close();
      await apns.close();
      await database.drop();
    },
  };
}

/**
 * Starts a service before the tests of a file and closes it after them. Its members can be used in
 * hooks and tests.
 */
export function useTestService(options: Parameters<typeof startTestService>[0] = {}): TestService {
  let service: TestService;
  beforeAll(async () => {
    service = await startTestService(options);
  });
  afterAll(() => service?.close());
  return {
    get api() {
      return service.api;
    },
    get db() {
      return service.db;
    },
    get databaseUrl() {
      return service.databaseUrl;
    },
    get apns() {
      return service.apns;
    },
    dispatch: (...args) => service.dispatch(...args),
    addApnsProfile: (...args) => service.addApnsProfile(...args),
    addIosInstallations: (...args) => service.addIosInstallations(...args),
    untilDone: (...args) => service.untilDone(...args),
    close: () => service.close(),
  };
}

async function putApnsProfile(
  db: Database,
  app: App,
  {
    name,
    credentials,
    gateway,
  }: { name: string; credentials: ApnsCredentials; gateway: ApnsGateway },
): Promise<void> {
  const { publicKey: _, ...own } = credentials;
  await putProfile(db, new Vault(testConfig(db.url).secrets), {
    appId: app.appId,
    connector: 'apns',
    name,
    credentials: {
      auth: 'token',
      ...own,
      endpoint: gateway.url,
      managementEndpoint: gateway.channels.url,
      ca: gateway.ca,
    },
  });
}

/** Inserts iOS installations directly into the table. Returns their tokens. */
export async function insertIos(
  db: Database,
  app: Pick<App, 'appId'>,
  count: number,
  fields: Record<string, unknown> = {},
): Promise<string[]> {
  const { rows } = await db.query<{ device_token: string }>(
    `INSERT INTO installation (app_id, object_id, device_type, device_token, topic, fields)
     SELECT $1, encode(sha256((random()::text || i)::bytea), 'hex')::varchar(24), 'ios',
            encode(sha256((random()::text || i)::bytea), 'hex'), 'com.example.app', $3
       FROM generate_series(1, $2::int) AS i
     RETURNING device_token`,
    [app.appId, count, fields],
  );
  return rows.map((row) => row.device_token);
}

async function untilDone(
  api: TestApi,
  app: App,
  { objectId, timeoutMs }: { objectId: string; timeoutMs: number },
): Promise<Record<string, unknown>> {
  const endsAtMs = performance.now() + timeoutMs;
  // The poll interval grows, because each poll is as expensive as sending to ten devices.
  for (let pauseMs = 20; ; pauseMs = Math.min(pauseMs * 1.3, 200)) {
    const { body } = await api.request('GET', `/1.1/tables/Notifications/${objectId}`, { app });
    if (body.status !== 'in-queue' && body.status !== 'scheduled') return body;
    if (performance.now() > endsAtMs) throw new Error(`the push is still ${JSON.stringify(body)}`);
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}
