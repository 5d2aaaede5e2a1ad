import type { FSWatcher } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { equalInConstantTime } from '../../shared/crypto.ts';
import { eventHooks, isInternalName, userHooks } from '../../shared/domain/functions.ts';
import { type FunctionFile, readFolder, watchFolder } from './folder.ts';
import type { CallContext } from './messages.ts';
import { defaultThreadLimits, FunctionThread, type ThreadLimits, type ThreadOutcome } from './thread.ts';

export interface FunctionHostOptions {
  dir: string;
  port: number;
  /** What the api says to be believed. */
  token: string;
  /** Where functions reach the service. */
  apiUrl: string;
  say: (line: string) => void;
  limits?: Partial<ThreadLimits>;
  /** A call is given up after this (compat.md 7.2: 15 s). */
  timeoutMs?: number;
}

const maxBodyBytes = 20 * 1024 * 1024;
const callTimeoutMs = 15_000;
/** Calls at a time of one file, and the threads they share. */
const maxLoad = 200;
const loadPerThread = 50;

type Answer = { status: number; text: string };

const refusal = (status: number, code: number, error: string): Answer => ({
  status,
  text: JSON.stringify({ code, error }),
});

/** Paths of hooks and what they are called in the list of names. */
const hookNames = new Map<string, string>([
  ...Object.entries(userHooks).map(([hook, name]) => [`_User/${hook}`, name] as const),
  ...Object.values(eventHooks).map(({ path, name }) => [path, name] as const),
]);

/**
 * Runs a folder of functions, one thread per file, and answers as the function hosts of the field do (compat.md 7.2), but
 * only to the api that holds its token.
 */
export class FunctionHost {
  readonly #options: FunctionHostOptions;
  readonly #limits: ThreadLimits;
  readonly #server: Server;
  #files: ReadonlyMap<string, FunctionFile> = new Map();
  #threads = new Map<string, FunctionThread[]>();
  #watcher: FSWatcher | undefined;
  #lastId = 0;

  constructor(options: FunctionHostOptions) {
    this.#options = options;
    this.#limits = { ...defaultThreadLimits, ...options.limits };
    this.#server = createServer((request, response) => void this.#serve(request, response));
  }

  /** Reads the folder and listens; gives the port. */
  async start(): Promise<number> {
    const { dir, port, say } = this.#options;
    this.#files = await readFolder(dir, say);
    this.#watcher = watchFolder(dir, () => void this.#reload(), say);
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject).listen(port, '127.0.0.1', () => resolve());
    });
    const address = this.#server.address() as AddressInfo;
    return address.port;
  }

  async close(): Promise<void> {
    this.#watcher?.close();
    this.#server.close();
    this.#server.closeAllConnections();
    await Promise.all([...this.#threads.values()].flat().map((thread) => thread.terminate()));
  }

  /** New calls see the folder as it is now; those under way end as they began. */
  async #reload(): Promise<void> {
    const { dir, say } = this.#options;
    try {
      this.#files = await readFolder(dir, say);
    } catch (error) {
      say(`the folder cannot be read: ${error instanceof Error ? error.message : error}`);
      return;
    }
    const old = [...this.#threads.values()].flat();
    this.#threads = new Map();
    for (const thread of old) thread.retire();
    say(`read again: ${this.#files.size} functions and hooks`);
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const answer = await this.#answer(request).catch((error: unknown) => {
      this.#options.say(`a call failed: ${error instanceof Error ? error.message : error}`);
      return refusal(500, 1, 'The cloud function failed.');
    });
    response.writeHead(answer.status, {
      'Content-Type': 'application/json; charset=utf-8',
      'Content-Length': Buffer.byteLength(answer.text),
    });
    response.end(answer.text);
  }

  async #answer(request: IncomingMessage): Promise<Answer> {
    const token = headerOf(request, 'x-carillon-functions-token');
    if (!equalInConstantTime(token, this.#options.token)) return refusal(401, 401, 'Unauthorized.');
    const match = /^\/1\.1\/(functions|call)\/([^?]+)$/.exec(request.url ?? '');
    const [, encoding = '', path = ''] = match ?? [];
    const isMaster = headerOf(request, 'x-lc-key').endsWith(',master');
    if (path === '_ops/metadatas') return isMaster ? this.#list() : refusal(401, 401, 'Unauthorized.');
    const file = this.#fileAt(path);
    if (!file || request.method !== 'POST')
      return refusal(404, 1, `No such cloud function '${path.slice(0, 128)}'`);
    if (file.isInternal && !isMaster && headerOf(request, 'x-lc-hook-key') === '')
      return refusal(401, 401, 'Unauthorized.');
    const text = await readText(request);
    if (text === undefined) return refusal(413, 413, 'Payload Too Large.');
    if (!isJson(text)) return refusal(400, 107, 'Malformed json object. A json dictionary is expected.');
    return this.#call(file, {
      text,
      isTyped: encoding === 'call',
      context: this.#contextOf(request, isMaster),
    });
  }

  #list(): Answer {
    return { status: 200, text: JSON.stringify({ result: [...this.#files.keys()] }) };
  }

  /** Hooks have paths of their own, and go by no name that callers could send. */
  #fileAt(path: string): FunctionFile | undefined {
    const hook = hookNames.get(path);
    return hook === undefined && isInternalName(path) ? undefined : this.#files.get(hook ?? path);
  }

  async #call(
    file: FunctionFile,
    call: { text: string; isTyped: boolean; context: CallContext },
  ): Promise<Answer> {
    const thread = this.#threadFor(file);
    if (!thread) return refusal(429, 429, 'Too many requests.');
    this.#lastId += 1;
    const message = { id: this.#lastId, kind: file.kind, ...call };
    return answerOf(await thread.run(message, this.#options.timeoutMs ?? callTimeoutMs));
  }

  #threadFor({ path }: FunctionFile): FunctionThread | undefined {
    const threads = (this.#threads.get(path) ?? []).filter(({ isRetired }) => !isRetired);
    const load = threads.reduce((sum, thread) => sum + thread.load, 0);
    if (load >= maxLoad) return undefined;
    const least = threads.toSorted((a, b) => a.load - b.load)[0];
    if (least && least.load < loadPerThread) return least;
    const { say } = this.#options;
    const onEnd = () => this.#forget(path, thread);
    const thread: FunctionThread = new FunctionThread(path, { limits: this.#limits, say, onEnd });
    this.#threads.set(path, [...threads, thread]);
    return thread;
  }

  #forget(path: string, ended: FunctionThread): void {
    const left = (this.#threads.get(path) ?? []).filter((thread) => thread !== ended);
    if (left.length > 0) this.#threads.set(path, left);
    else this.#threads.delete(path);
  }

  #contextOf(request: IncomingMessage, isMaster: boolean): CallContext {
    return {
      appId: headerOf(request, 'x-lc-id'),
      appKey: headerOf(request, 'x-carillon-app-key'),
      masterKey: headerOf(request, 'x-carillon-master-key'),
      apiUrl: this.#options.apiUrl,
      stage: headerOf(request, 'x-lc-prod') === '0' ? 'staging' : 'production',
      isMaster,
      remoteAddress: headerOf(request, 'x-real-ip'),
      sessionToken: headerOf(request, 'x-lc-session') || undefined,
    };
  }
}

function answerOf(outcome: ThreadOutcome): Answer {
  if ('text' in outcome) return { status: 200, text: outcome.text };
  if ('error' in outcome) {
    const { status, code, message } = outcome.error;
    return refusal(status, code, message);
  }
  if (outcome.gone === 'timeout') return refusal(503, 124, 'The request timed out on the server.');
  return refusal(
    500,
    1,
    outcome.gone === 'memory'
      ? 'The cloud function took too much memory.'
      : 'The cloud function ended early.',
  );
}

function headerOf({ headers }: IncomingMessage, name: string): string {
  const value = headers[name];
  return typeof value === 'string' ? value : '';
}

/** Undefined when it is too long. */
async function readText(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += chunk.length;
    if (bytes > maxBodyBytes) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8') || '{}';
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
