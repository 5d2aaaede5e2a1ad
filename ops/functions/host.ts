import type { FSWatcher } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Environment } from '../../shared/config/config.ts';
import { equalInConstantTime } from '../../shared/crypto.ts';
import { eventHooks, isInternalName, userHooks } from '../../shared/domain/apps/functions.ts';
import { Refusal } from '../../shared/domain/errors/errors.ts';
import { type ArgumentLimits, ArgumentReader, timing } from './arguments.ts';
import { type Confinement, functionUser } from './confinement.ts';
import { type FunctionFile, readFolder, watchFolder } from './folder.ts';
import type { CallContext } from './messages.ts';
import {
  defaultProcessLimits,
  FunctionProcess,
  type ProcessLimits,
  type ProcessOutcome,
} from './process.ts';
import { openForFunctions, type ReadableFolder } from './readable-folder.ts';

export interface FunctionHostOptions {
  dir: string;
  port: number;
  /** Token that authenticates the api. */
  token: string;
  /** URL of the service that functions call. */
  apiUrl: string;
  log: (line: string) => void;
  limits?: Partial<ProcessLimits>;
  maxProcesses?: number;
  /** Environment from which the variables of functions are selected. */
  env?: Environment;
  /**
   * Runs functions as the current user, even if that is root. Then only the permission model
   * restricts them.
   */
  isSameUser?: boolean;
  /** Time limit of a call (protocol/functions.md#hook-times: 15 s). */
  timeoutMs?: number;
  argumentLimits?: Partial<ArgumentLimits>;
}

const callTimeoutMs = 15_000;
/** Limits on concurrent calls per file and per process. */
const maxLoad = 200;
const loadPerProcess = 50;
/**
 * Limit on the number of processes. If all processes are busy, a call that needs another process is
 * refused.
 */
const defaultMaxProcesses = 64;

type Answer = { status: number; text: string; retryAfterSeconds?: number | undefined };

const refusal = (status: number, code: number, error: string): Answer => ({
  status,
  text: JSON.stringify({ code, error }),
});

/** Names of hook functions by their paths. */
const hookNames = new Map<string, string>([
  ...Object.entries(userHooks).map(([hook, name]) => [`_User/${hook}`, name] as const),
  ...Object.values(eventHooks).map(({ path, name }) => [path, name] as const),
]);

/**
 * Runs a folder of functions with one or more processes per file. Implements the protocol of
 * function hosts (protocol/functions.md#host-protocol). Accepts calls only from the api that has
 * its token.
 */
export class FunctionHost {
  readonly #options: FunctionHostOptions;
  readonly #limits: ProcessLimits;
  readonly #server: Server;
  readonly #user: number | undefined;
  readonly #arguments: ArgumentReader;
  #files: ReadonlyMap<string, FunctionFile> = new Map();
  /** Processes of each file, also those that only finish their calls. */
  readonly #processes = new Map<string, FunctionProcess[]>();
  #watcher: FSWatcher | undefined;
  #folder: ReadableFolder | undefined;
  /** Reloads run one after another, so that the last one reads the last change. */
  #reloads: Promise<void> = Promise.resolve();
  /** Resolves when the copies of earlier folders are removed. */
  #removals: Promise<unknown> = Promise.resolve();
  #lastId = 0;

  constructor(options: FunctionHostOptions) {
    this.#options = options;
    this.#user = options.isSameUser ? undefined : functionUser();
    this.#limits = { ...defaultProcessLimits, ...options.limits };
    this.#server = createServer(timing, (request, response) => void this.#serve(request, response));
    this.#arguments = new ArgumentReader(options.argumentLimits);
  }

  /** Reads the folder and starts to listen. Returns the port. */
  async start(): Promise<number> {
    const { dir, port, log } = this.#options;
    await this.#read();
    const reload = () => {
      this.#reloads = this.#reloads.then(() => this.#reload());
    };
    this.#watcher = watchFolder(dir, reload, log);
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
    await this.#reloads;
    await Promise.all([...this.#processes.values()].flat().map((process) => process.terminate()));
    await Promise.all([this.#removals, this.#folder?.remove()]);
  }

  async #read(): Promise<void> {
    const { dir, log } = this.#options;
    const folder = await openForFunctions(dir, this.#user, log);
    try {
      this.#files = await readFolder(folder.dir, log);
      this.#folder = folder;
    } catch (error) {
      await folder.remove();
      throw error;
    }
  }

  /** Reads the folder again. Running calls finish with the old files. */
  async #reload(): Promise<void> {
    const { log } = this.#options;
    const folder = this.#folder;
    try {
      await this.#read();
    } catch (error) {
      log(`the folder cannot be read: ${error instanceof Error ? error.message : error}`);
      return;
    }
    const old = [...this.#processes.values()].flat();
    const removal = Promise.all(old.map((process) => process.retire()))
      .then(() => folder?.remove())
      .catch(({ message }: Error) => log(`a copy of the folder remains: ${message}`));
    this.#removals = Promise.all([this.#removals, removal]);
    log(`folder reloaded: ${this.#files.size} functions and hooks`);
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const answer = await this.#answer(request).catch((error: unknown) => this.#failed(error));
    response.writeHead(answer.status, {
      'Content-Type': 'application/json; charset=utf-8',
      'Content-Length': Buffer.byteLength(answer.text),
      ...(answer.retryAfterSeconds === undefined
        ? {}
        : { 'Retry-After': answer.retryAfterSeconds }),
      // Closes the connection without waiting for the rest of an unread body.
      ...(request.complete ? {} : { Connection: 'close' }),
    });
    response.end(answer.text);
  }

  #failed(error: unknown): Answer {
    if (error instanceof Refusal)
      return {
        ...refusal(error.status, error.code, error.message),
        retryAfterSeconds: error.retryAfterSeconds,
      };
    this.#options.log(`a call failed: ${error instanceof Error ? error.message : error}`);
    return refusal(500, 1, 'The cloud function failed.');
  }

  async #answer(request: IncomingMessage): Promise<Answer> {
    const token = headerOf(request, 'x-carillon-functions-token');
    if (!equalInConstantTime(token, this.#options.token)) return refusal(401, 401, 'Unauthorized.');
    const match = /^\/1\.1\/(functions|call)\/([^?]+)$/.exec(request.url ?? '');
    const [, encoding = '', path = ''] = match ?? [];
    const isMaster = headerOf(request, 'x-lc-key').endsWith(',master');
    const isTrusted = isMaster || headerOf(request, 'x-lc-hook-key') !== '';
    if (path === '_ops/metadatas')
      return isTrusted ? this.#list() : refusal(401, 401, 'Unauthorized.');
    const file = this.#fileAt(path);
    if (!file || request.method !== 'POST')
      return refusal(404, 1, `No such cloud function '${path.slice(0, 128)}'`);
    if (file.isInternal && !isTrusted) return refusal(401, 401, 'Unauthorized.');
    const shared = { isTyped: encoding === 'call', context: this.#contextOf(request, isMaster) };
    return this.#arguments.use(request, (text) => this.#call(file, { text, ...shared }));
  }

  #list(): Answer {
    return { status: 200, text: JSON.stringify({ result: [...this.#files.keys()] }) };
  }

  /**
   * Finds the file for a path. Hooks have their own paths; a caller cannot use their function
   * names.
   */
  #fileAt(path: string): FunctionFile | undefined {
    const hook = hookNames.get(path);
    return hook === undefined && isInternalName(path) ? undefined : this.#files.get(hook ?? path);
  }

  async #call(
    file: FunctionFile,
    call: { text: string; isTyped: boolean; context: CallContext },
  ): Promise<Answer> {
    const process = this.#processFor(file);
    if (!process) return refusal(429, 429, 'Too many requests.');
    this.#lastId += 1;
    const message = { id: this.#lastId, kind: file.kind, ...call };
    return answerOf(await process.run(message, this.#options.timeoutMs ?? callTimeoutMs));
  }

  #processFor({ path }: FunctionFile): FunctionProcess | undefined {
    const all = this.#processes.get(path) ?? [];
    const processes = all.filter(({ isRetired }) => !isRetired);
    const load = processes.reduce((sum, process) => sum + process.load, 0);
    if (load >= maxLoad) return undefined;
    const leastLoaded = processes.toSorted((a, b) => a.load - b.load)[0];
    if (leastLoaded && leastLoaded.load < loadPerProcess) return leastLoaded;
    if (!this.#makeRoom()) return undefined;
    const onEnd = () => this.#remove(path, process);
    const process: FunctionProcess = new FunctionProcess(path, { ...this.#confinement(), onEnd });
    this.#processes.set(path, [...all, process]);
    return process;
  }

  /**
   * If the limit on processes is reached, ends an idle process. Returns false if all processes are
   * busy.
   */
  #makeRoom(): boolean {
    const all = [...this.#processes.values()].flat().filter(({ isRetired }) => !isRetired);
    if (all.length < (this.#options.maxProcesses ?? defaultMaxProcesses)) return true;
    const idle = all.find(({ load }) => load === 0);
    void idle?.retire();
    return idle !== undefined;
  }

  #confinement(): Confinement & { limits: ProcessLimits; log: (line: string) => void } {
    const { log, env = {}, dir } = this.#options;
    return { dir: this.#folder?.dir ?? dir, user: this.#user, env, limits: this.#limits, log };
  }

  #remove(path: string, ended: FunctionProcess): void {
    const remaining = (this.#processes.get(path) ?? []).filter((process) => process !== ended);
    if (remaining.length > 0) this.#processes.set(path, remaining);
    else this.#processes.delete(path);
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

function answerOf(outcome: ProcessOutcome): Answer {
  if ('text' in outcome) return { status: 200, text: outcome.text };
  if ('error' in outcome) {
    const { status, code, message } = outcome.error;
    return refusal(status, code, message);
  }
  if (outcome.failure === 'timeout')
    return refusal(503, 124, 'The request timed out on the server.');
  return refusal(
    500,
    1,
    outcome.failure === 'memory'
      ? 'The cloud function took too much memory.'
      : 'The cloud function ended early.',
  );
}

function headerOf({ headers }: IncomingMessage, name: string): string {
  const value = headers[name];
  return typeof value === 'string' ? value : '';
}
