import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import {
  createServer,
  type IncomingMessage,
  request as requestTo,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { App } from '../../../shared/domain/apps/app.ts';

/**
 * Function hosts that behave like each engine: the type of the replies, the request for a session,
 * the check of a hook, and the form of errors.
 */

export type EngineName = 'node' | 'go' | 'python' | 'php' | 'java';
export const engineNames: readonly EngineName[] = ['node', 'go', 'python', 'php', 'java'];

// Free-form JSON, and tests assert on it.
// biome-ignore lint/suspicious/noExplicitAny: see above
type Message = any;

/** Request that the host ran, with the user that its code got. */
export interface EngineRun {
  path: string;
  message: Message;
  hasSession: boolean;
}

interface Engine {
  /** `Content-Type` of a reply. Undefined for none. */
  type: string | undefined;
  asksForSession: boolean;
  checksHookKey: boolean;
  checksSign: boolean;
  /** True if the host compares the master key itself before it lists its hooks. */
  needsMasterKey: boolean;
}

const json = 'application/json';
const none = {
  asksForSession: false,
  checksHookKey: false,
  checksSign: false,
  needsMasterKey: false,
};
export const engines: Record<EngineName, Engine> = {
  node: { ...none, type: json, checksHookKey: true },
  go: { ...none, type: 'text/plain; charset=utf-8', asksForSession: true, needsMasterKey: true },
  python: { ...none, type: `${json}; charset=utf-8`, asksForSession: true, checksHookKey: true },
  php: { ...none, type: 'application; charset=utf-8;', checksSign: true },
  java: { ...none, type: json, asksForSession: true, needsMasterKey: true },
};

/** Hooks that every engine declares. */
const hookNames = [
  ...[
    'before_save',
    'after_save',
    'before_update',
    'after_update',
    'before_delete',
    'after_delete',
  ].map((name) => `__${name}_for__User`),
  '__on_login__User',
  '__on_authdata__User',
  '__on_verified_sms',
  '__on_verified_email',
];

/** Signed member and signed text of the hooks that the PHP engine checks. */
const signatures: [pattern: RegExp, member: string, text: string][] = [
  [/_User\/before/, '__before', '__before_for__User'],
  [/_User\/after/, '__after', '__after_for__User'],
  [/_User\/onLogin$/, '__sign', '__on_login__User'],
  [/onVerified\/sms$/, '__sign', '__on_verified_sms'],
  [/onVerified\/email$/, '__sign', '__on_verified_email'],
];

export interface EngineHost {
  url: string;
  runs: EngineRun[];
  /** Resolves with the first run of a path that matches. */
  waitFor(path: string, isRun?: (run: EngineRun) => boolean): Promise<EngineRun>;
  close(): Promise<void>;
}

interface Answer {
  status: number;
  body: unknown;
}

/** Requests that a host ran, in order. */
export class EngineRuns {
  readonly all: EngineRun[] = [];
  readonly #waiting = new Set<() => void>();

  add(run: EngineRun): void {
    this.all.push(run);
    for (const wake of this.#waiting) wake();
  }

  /** Resolves with the first run of a path that matches. */
  async first(path: string, isRun: (run: EngineRun) => boolean = () => true): Promise<EngineRun> {
    for (;;) {
      const run = this.all.find((one) => one.path === path && isRun(one));
      if (run) return run;
      await new Promise<void>((resolve) => this.#waiting.add(resolve));
    }
  }
}

/** Starts a host. `app` returns the app whose keys it checks. */
export async function startEngineHost(
  name: EngineName,
  { app, apiUrl }: { app: () => App; apiUrl: string },
): Promise<EngineHost> {
  const engine = engines[name];
  const runs = new EngineRuns();
  const handle = async (request: IncomingMessage): Promise<Answer> => {
    const path = (request.url ?? '').replace(/^\/1\.1\//, '');
    const sent = await text(request);
    const message: Message = sent === '' ? {} : JSON.parse(sent);
    const refusal = await refusalOf(engine, { request, path, message, app: app(), apiUrl });
    if (refusal) return refusal;
    runs.add({ path, message, hasSession: request.headers['x-lc-session'] !== undefined });
    return answerOf(name, path, message);
  };
  const server = createServer((request, response) => {
    void handle(request).then((answer) => write(engine, response, answer));
  });
  return hostOf(server, runs);
}

/** Listens on loopback. Returns the host with its runs. */
async function hostOf(server: Server, runs: EngineRuns): Promise<EngineHost> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    runs: runs.all,
    waitFor: (path, isRun) => runs.first(path, isRun),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/**
 * Starts a proxy in front of an engine that runs in a separate process. It passes each request on
 * unchanged, and records the requests that the engine did not refuse.
 */
export function startRecordedHost(engineUrl: string): Promise<EngineHost> {
  const runs = new EngineRuns();
  const server = createServer(async (incoming, response) => {
    const { method, url = '', headers } = incoming;
    const sent = await text(incoming);
    const onward = requestTo(new URL(url, engineUrl), { method, headers }, (answer) => {
      const { statusCode = 502 } = answer;
      response.writeHead(statusCode, answer.rawHeaders);
      answer.pipe(response);
      if (statusCode >= 400) return;
      const path = url.replace(/^\/1\.1\//, '');
      runs.add({
        path,
        message: sent === '' ? {} : JSON.parse(sent),
        hasSession: headers['x-lc-session'] !== undefined,
      });
    });
    onward.once('error', () => response.destroy());
    onward.end(sent);
  });
  return hostOf(server, runs);
}

function write({ type }: Engine, response: ServerResponse, { status, body }: Answer): void {
  const isPage = typeof body === 'string';
  const shownType = isPage ? 'text/html; charset=utf-8' : type;
  response.writeHead(status, shownType === undefined ? {} : { 'content-type': shownType });
  response.end(isPage ? body : JSON.stringify(body));
}

interface Incoming {
  request: IncomingMessage;
  path: string;
  message: Message;
  app: App;
  apiUrl: string;
}

const isHook = (path: string): boolean => /^functions\/(?:_User\/|onVerified\/)/.test(path);

async function refusalOf(engine: Engine, incoming: Incoming): Promise<Answer | undefined> {
  const { request, path, message, app, apiUrl } = incoming;
  if (path === 'functions/_ops/metadatas') return listRefusal(engine, request, app);
  if (engine.asksForSession) {
    const session = request.headers['x-lc-session'];
    const headers = {
      'X-LC-Id': app.appId,
      'X-LC-Key': app.appKey,
      'X-LC-Session': String(session),
    };
    const me =
      session === undefined ? undefined : await fetch(`${apiUrl}/1.1/users/me`, { headers });
    if (me && !me.ok)
      return { status: 500, body: { code: 1, error: `211 Could not find user (${me.status}).` } };
  }
  if (!isHook(path)) return undefined;
  if (engine.checksHookKey && request.headers['x-lc-hook-key'] !== app.hookKey)
    return { status: 401, body: { code: 401, error: 'Hook key check failed' } };
  return engine.checksSign ? signRefusal(path, message, app) : undefined;
}

function listRefusal(
  { needsMasterKey }: Engine,
  { headers }: IncomingMessage,
  app: App,
): Answer | undefined {
  const hasMasterKey = headers['x-lc-key'] === `${app.masterKey},master`;
  if (hasMasterKey || (!needsMasterKey && String(headers['x-lc-sign']).endsWith(',master')))
    return undefined;
  return { status: 401, body: { code: 401, error: 'Unauthorized.' } };
}

function signRefusal(path: string, message: Message, { masterKey }: App): Answer | undefined {
  const expected = signatures.find(([pattern]) => pattern.test(path));
  if (!expected) return undefined;
  const [, member, signed] = expected;
  const [time, digest] = String(message.object?.[member]).split(',');
  if (createHmac('sha1', masterKey).update(`${signed}:${time}`).digest('hex') === digest)
    return undefined;
  return { status: 401, body: { code: 142, error: `${member} of the hook is wrong` } };
}

function answerOf(name: EngineName, path: string, message: Message): Answer {
  if (path === 'functions/_ops/metadatas')
    return { status: 200, body: { result: ['hello', ...hookNames] } };
  if (path.endsWith('/hello'))
    return { status: 200, body: { result: { hello: message.name ?? null } } };
  if (path.endsWith('/fails'))
    return {
      status: name === 'php' || name === 'go' ? 500 : 400,
      body: { code: 4711, error: 'This function fails.' },
    };
  if (path.endsWith('/unknown'))
    return {
      status: 404,
      body: { code: name === 'java' ? '400' : 1, error: 'No such cloud function' },
    };
  if (path.endsWith('/crashes')) return { status: 500, body: '<h1>Internal Server Error</h1>' };
  return hookAnswer(name, path, message);
}

function hookAnswer(name: EngineName, path: string, { object, authData }: Message): Answer {
  if (object?.nickname === 'refused')
    return { status: name === 'node' ? 400 : 500, body: { code: 1, error: 'no such nickname' } };
  if (path.endsWith('onAuthData')) return { status: 200, body: { result: authData } };
  if (path.endsWith('beforeDelete')) return { status: 200, body: name === 'php' ? [] : {} };
  if (!path.includes('/before')) return { status: 200, body: { result: 'ok' } };
  const whole = { ...object, ...(path.endsWith('beforeSave') ? { seenBy: name } : {}) };
  return { status: 200, body: name === 'php' ? phpForm(whole) : whole };
}

/** Converts a value as PHP does: PHP reads an empty object as a list and writes a list. */
function phpForm(value: Message): Message {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const entries = Object.entries(value);
  return entries.length === 0
    ? []
    : Object.fromEntries(entries.map(([name, member]) => [name, phpForm(member)]));
}
