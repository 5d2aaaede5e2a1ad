import { randomBytes } from 'node:crypto';
import type { Services } from '../../api/services/services.ts';
import { type ApiOptions, type RunningApi, startApi } from '../../api/start.ts';
import type { Clock } from '../../shared/clock.ts';
import { type Config, readConfig } from '../../shared/config/config.ts';
import { loopbackNetworks } from '../../shared/config/private-hosts.ts';
import type { App, AppOptionsPatch, Plan } from '../../shared/domain/apps/app.ts';
import { parseExactly } from '../../shared/domain/json.ts';
import { createLogger } from '../../shared/process/logging.ts';
import { DeclaredReplies } from './openapi/declared-replies.ts';

/** Keys of a test run. Processes on the same database share them. */
const adminToken = randomBytes(24).toString('base64url');
const secret = randomBytes(32).toString('base64');

/** Reads the configuration of a process under test. It uses free ports. */
export function testConfig(databaseUrl: string, env: Record<string, string> = {}): Config {
  return readConfig({ ...testEnvironment(databaseUrl), ...env });
}

/** Returns the environment of a process under test. */
export function testEnvironment(databaseUrl: string): Record<string, string> {
  return {
    PORT: '0',
    METRICS_PORT: '0',
    HOST: '127.0.0.1',
    PUBLIC_URL: 'http://carillon.test',
    DATABASE_URL: databaseUrl,
    CARILLON_ADMIN_TOKEN: adminToken,
    CARILLON_SECRET: secret,
    DISPATCHER_THREADS: '1',
    CARILLON_PRIVATE_HOSTS: loopbackNetworks,
    LOG_LEVEL: 'silent',
    NODE_ENV: 'test',
  };
}

export interface TestRequest {
  /** App whose id and key are sent. With `master`, the master key is sent. */
  app?: Pick<App, 'appId' | 'appKey' | 'masterKey'>;
  master?: boolean;
  /** True to send the operator's token. */
  admin?: boolean;
  /** Body, sent as JSON. A string is sent unchanged. */
  body?: unknown;
  headers?: Record<string, string>;
}

export interface TestResponse {
  status: number;
  headers: Headers;
  // Replies are free-form JSON, and tests assert on them.
  // biome-ignore lint/suspicious/noExplicitAny: see above
  body: any;
}

export interface TestApi {
  url: string;
  services: Services;
  createApp(options?: AppOptionsPatch, plan?: Plan): Promise<App>;
  request(method: string, path: string, request?: TestRequest): Promise<TestResponse>;
  close(): Promise<void>;
}

export const silentLog = createLogger({ level: 'silent', name: 'test' });

/**
 * Starts an api in this process on a free port. `request` and `close` throw if a reply differs from
 * the declaration of its route.
 */
export async function startTestApi(options: {
  databaseUrl: string;
  clock?: Clock;
  env?: Record<string, string>;
  channelLimits?: ApiOptions['channelLimits'];
  bodyLimits?: ApiOptions['bodyLimits'];
  serverLimits?: ApiOptions['serverLimits'];
  consoleFolders?: ApiOptions['consoleFolders'];
}): Promise<TestApi> {
  const { databaseUrl, env, ...chosen } = options;
  const declared = new DeclaredReplies();
  const api: RunningApi = await startApi(testConfig(databaseUrl, env), silentLog, {
    ...chosen,
    onExchange: declared.check,
  });
  const url = `http://127.0.0.1:${api.port}`;
  return {
    url,
    services: api.services,
    createApp: (appOptions = {}, plan = 'commercial') =>
      api.services.apps.create({ name: 'Test app', plan, options: appOptions }),
    async request(method, path, request = {}) {
      const response = await send(url + path, method, request);
      declared.throwIfAny();
      return response;
    },
    async close() {
      await api.stack.close();
      declared.throwIfAny();
    },
  };
}

/** Calls an api that runs in another process. */
export async function send(
  url: string,
  method: string,
  request: TestRequest,
): Promise<TestResponse> {
  const { app, master, admin, body } = request;
  const headers: Record<string, string> = {
    ...(app
      ? { 'X-LC-Id': app.appId, 'X-LC-Key': master ? `${app.masterKey},master` : app.appKey }
      : {}),
    ...(admin ? { Authorization: `Bearer ${adminToken}` } : {}),
    ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
    ...request.headers,
  };
  const response = await fetch(url, {
    method,
    headers,
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, body: parse(text) };
}

function parse(text: string): unknown {
  try {
    return parseExactly(text);
  } catch {
    return text;
  }
}
