import { randomBytes } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { z } from 'zod';
import { sleep } from '../../../shared/clock.ts';
import { retryDuringOutage } from '../../../shared/db/outage.ts';
import { createLogger } from '../../../shared/process/logging.ts';
import type { Bench } from './bench-service.ts';

const pollMs = 10;

const record = z.object({ status: z.string(), devices: z.number(), successes: z.number() });

const createdApp = z.object({ appId: z.string(), masterKey: z.string() });
export type BenchApp = z.infer<typeof createdApp>;

/**
 * Maximum time that a benchmark waits for an unavailable database. It is longer than a failover.
 */
const outagePatienceMs = 120_000;
const outage = {
  log: createLogger({ level: 'error', name: 'bench' }),
  message: 'the database is away',
  patienceMs: outagePatienceMs,
};

/**
 * Sends an HTTP request and parses the reply. Repeats the request while the service is unavailable,
 * so the request must be idempotent. Throws an error with the body of the reply if the request
 * fails.
 */
export async function call<T>(url: string, init: RequestInit, shape: z.ZodType<T>): Promise<T> {
  const endsAtMs = performance.now() + outagePatienceMs;
  let response = await fetch(url, init);
  for (
    ;
    response.status === 503 && performance.now() < endsAtMs;
    response = await fetch(url, init)
  ) {
    await response.body?.cancel();
    await sleep(Number(response.headers.get('retry-after') ?? 1) * 1000);
  }
  const body = await response.text();
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${body}`);
  return shape.parse(body === '' ? null : JSON.parse(body));
}

/** Returns the headers of a call of the admin API. */
export const adminHeaders = ({ adminToken }: Bench) => ({
  authorization: `Bearer ${adminToken}`,
  'content-type': 'application/json',
});

export const masterHeaders = (app: BenchApp) => ({
  'x-lc-id': app.appId,
  'x-lc-key': `${app.masterKey},master`,
  'content-type': 'application/json',
});

/** Creates an app with a profile for the APNs of the benchmark. */
export async function createApp(bench: Bench): Promise<BenchApp> {
  const { url, gateway } = bench;
  const headers = adminHeaders(bench);
  const options = { pushCallsPerMinute: 9600, dailyRecipientCap: 1_000_000_000 };
  const body = JSON.stringify({ name: 'Benchmark', options });
  const app = await call(`${url}/console/api/apps`, { method: 'POST', headers, body }, createdApp);
  const { url: endpoint, ...own } = gateway.apns;
  const profile = JSON.stringify({ auth: 'token', ...own, endpoint });
  const path = `/console/api/apps/${app.appId}/profiles/apns/_default`;
  await call(`${url}${path}`, { method: 'PUT', headers, body: profile }, z.unknown());
  return app;
}

/**
 * Sends a push and returns its object id. Each push has a random `req_id`, so that a repeated call
 * does not send it again.
 */
export async function push(bench: Bench, app: BenchApp, body: object): Promise<string> {
  const req_id = randomBytes(8).toString('hex');
  const whole = JSON.stringify({ data: { alert: 'Benchmark' }, req_id, ...body });
  const init = { method: 'POST', headers: masterHeaders(app), body: whole };
  return (await call(`${bench.url}/1.1/push`, init, z.object({ objectId: z.string() }))).objectId;
}

/** Calls the public API with the master key. Uses POST if there is a body. */
export function callAsMaster<T>(
  bench: Bench,
  app: BenchApp,
  { path, body }: { path: string; body?: object },
  shape: z.ZodType<T>,
): Promise<T> {
  const sent = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
  return call(`${bench.url}${path}`, { headers: masterHeaders(app), ...sent }, shape);
}

/** Pauses, resumes or cancels a push. */
export async function control(
  bench: Bench,
  app: BenchApp,
  objectId: string,
  verb: 'pause' | 'resume' | 'cancel',
): Promise<void> {
  const path = `/console/api/apps/${app.appId}/notifications/${objectId}/${verb}`;
  await call(`${bench.url}${path}`, { method: 'POST', headers: adminHeaders(bench) }, z.unknown());
}

/** Freezes the service. */
export async function freezeService(bench: Bench): Promise<void> {
  const init = { method: 'PUT', headers: adminHeaders(bench), body: '{}' };
  await call(`${bench.url}/console/api/freeze`, init, z.unknown());
}

/** Ends the freeze of the service. */
export async function releaseService(bench: Bench): Promise<void> {
  const init = { method: 'DELETE', headers: adminHeaders(bench) };
  await call(`${bench.url}/console/api/freeze`, init, z.unknown());
}

/** Waits until a push is done. Returns its record from the api. */
export async function untilDone(
  bench: Bench,
  app: BenchApp,
  objectId: string,
): Promise<z.infer<typeof record>> {
  await untilEnded(bench, app, objectId);
  return readRecord(bench, app, objectId);
}

/**
 * Waits until a push is done. Polls the table, because the api adds up the batches at each call.
 */
export async function untilEnded(bench: Bench, app: BenchApp, objectId: string): Promise<void> {
  for (;;) {
    const { rows } = await retryDuringOutage(outage, () =>
      bench.db.query<{ state: string }>(
        'SELECT state FROM notification WHERE app_id = $1 AND object_id = $2',
        [app.appId, objectId],
      ),
    );
    const state = rows[0]?.state;
    if (state === 'done') return;
    if (state === undefined || state === 'failed' || state === 'cancelled')
      throw new Error(`the push ended as ${state}`);
    await sleep(pollMs);
  }
}

/** Returns the record of a push from the api. */
export function readRecord(
  bench: Bench,
  app: BenchApp,
  objectId: string,
): Promise<z.infer<typeof record>> {
  const path = `${bench.url}/1.1/tables/Notifications/${objectId}`;
  return call(path, { headers: masterHeaders(app) }, record);
}

/** Waits until all recipients of a push are in batches. */
export async function untilPlanned(
  { db }: Bench,
  { appId }: BenchApp,
  objectId: string,
): Promise<void> {
  for (;;) {
    const { rows } = await db.query<{ is_planned: boolean }>(
      'SELECT is_planned FROM notification WHERE app_id = $1 AND object_id = $2',
      [appId, objectId],
    );
    if (rows[0]?.is_planned) return;
    await sleep(pollMs);
  }
}

/** Returns the query plan for the recipients of a push, from a dry run. */
export async function planOf(bench: Bench, app: BenchApp, body: object): Promise<string[]> {
  const path = `${bench.url}/console/api/apps/${app.appId}/push/explain`;
  const whole = JSON.stringify({ data: { alert: 'Benchmark' }, ...body });
  const init = { method: 'POST', headers: adminHeaders(bench), body: whole };
  return (await call(path, init, z.object({ plan: z.array(z.string()) }))).plan;
}

/**
 * Sends a push and waits until it is done. Returns the seconds from the reply until the push is
 * done.
 */
export async function pushAndWait(
  bench: Bench,
  app: BenchApp,
  body: object,
): Promise<{ seconds: number; successes: number }> {
  const objectId = await push(bench, app, body);
  const answeredAtMs = performance.now();
  const { successes } = await untilDone(bench, app, objectId);
  return { seconds: (performance.now() - answeredAtMs) / 1000, successes };
}

/** Path, headers and body of a call. */
export interface KeepAliveCall {
  path: string;
  headers: Record<string, string>;
  /** Sent as JSON with POST. Absent: the call is a GET. */
  body?: object;
}

/** Status and body of a reply. */
interface KeepAliveReply {
  status: number;
  text: string;
}

/** Call that waits for its reply. */
interface PendingCall {
  resolve(reply: KeepAliveReply): void;
  reject(error: Error): void;
}

const endOfHead = Buffer.from('\r\n\r\n');

/**
 * Connection that makes one call at a time. It reads only replies with a `Content-Length`, as the
 * api sends them.
 */
class KeepAliveConnection {
  readonly #socket: Socket;
  #pending: PendingCall | undefined;
  #read: Buffer = Buffer.alloc(0);
  #isClosed = false;

  constructor(host: string, port: number) {
    this.#socket = connect({ host, port, noDelay: true });
    this.#socket.on('data', (chunk: Buffer) => this.#take(chunk));
    this.#socket.on('error', (error) => this.#fail(error));
    this.#socket.on('close', () => this.#fail(new Error('the connection closed before the reply')));
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  exchange(request: string): Promise<KeepAliveReply> {
    return new Promise((resolve, reject) => {
      this.#pending = { resolve, reject };
      this.#socket.write(request);
    });
  }

  close(): void {
    this.#socket.destroy();
  }

  #take(chunk: Buffer): void {
    this.#read = this.#read.length === 0 ? chunk : Buffer.concat([this.#read, chunk]);
    const headLength = this.#read.indexOf(endOfHead);
    if (headLength < 0) return;
    const head = this.#read.toString('latin1', 0, headLength);
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
    if (length === undefined) {
      this.#fail(new Error('the reply has no Content-Length'));
      return;
    }
    const bodyAt = headLength + endOfHead.length;
    const end = bodyAt + Number(length);
    if (this.#read.length < end) return;
    const text = this.#read.toString('utf8', bodyAt, end);
    this.#read = this.#read.subarray(end);
    const pending = this.#pending;
    this.#pending = undefined;
    pending?.resolve({
      status: Number(head.slice('HTTP/1.1 '.length, 'HTTP/1.1 200'.length)),
      text,
    });
  }

  #fail(error: Error): void {
    this.#isClosed = true;
    this.#socket.destroy();
    this.#pending?.reject(error);
    this.#pending = undefined;
  }
}

/**
 * HTTP/1.1 client over connections that stay open. It needs a quarter of the CPU time of
 * `node:http`, which would use as much as the measured api.
 */
export class KeepAliveClient {
  readonly #url: URL;
  readonly #maxConnections: number;
  readonly #all = new Set<KeepAliveConnection>();
  readonly #free: KeepAliveConnection[] = [];
  readonly #waiting: ((connection: KeepAliveConnection) => void)[] = [];

  constructor(url: string, connections: number) {
    this.#url = new URL(url);
    this.#maxConnections = connections;
  }

  /**
   * Sends a call. Returns the text of the reply. Throws an error with this text if the call fails.
   */
  async send(call: KeepAliveCall): Promise<string> {
    const connection = await this.#connection();
    try {
      const { status, text } = await connection.exchange(this.#requestText(call));
      if (status < 200 || status > 299) throw new Error(`${call.path} answered ${status}: ${text}`);
      return text;
    } finally {
      this.#release(connection);
    }
  }

  close(): void {
    for (const connection of this.#all) connection.close();
  }

  #requestText({ path, headers, body }: KeepAliveCall): string {
    const text = body === undefined ? '' : JSON.stringify(body);
    let head = `${body === undefined ? 'GET' : 'POST'} ${path} HTTP/1.1\r\nhost: ${this.#url.host}\r\n`;
    for (const name in headers) head += `${name}: ${headers[name]}\r\n`;
    return `${head}content-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`;
  }

  /** Returns a free connection, opens a new connection, or waits until a connection is free. */
  async #connection(): Promise<KeepAliveConnection> {
    for (let free = this.#free.pop(); free; free = this.#free.pop()) {
      if (!free.isClosed) return free;
      this.#all.delete(free);
    }
    if (this.#all.size >= this.#maxConnections)
      return new Promise((resolve) => void this.#waiting.push(resolve));
    return this.#open();
  }

  #open(): KeepAliveConnection {
    const connection = new KeepAliveConnection(this.#url.hostname, Number(this.#url.port));
    this.#all.add(connection);
    return connection;
  }

  #release(connection: KeepAliveConnection): void {
    const next = this.#waiting.shift();
    if (connection.isClosed) this.#all.delete(connection);
    if (next) next(connection.isClosed ? this.#open() : connection);
    else if (!connection.isClosed) this.#free.push(connection);
  }
}
