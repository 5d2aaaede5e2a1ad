import { createHmac } from 'node:crypto';
import { z } from 'zod';
import {
  type DeclaringHost,
  findDeclaredHooks,
  keepDeclaredHooks,
} from '../../../shared/db/tables/apps.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import {
  type EventHook,
  eventHooks,
  type HookName,
  userHooks,
} from '../../../shared/domain/apps/functions.ts';
import {
  type ErrorName,
  Refusal,
  type RefusalOptions,
  refuse,
} from '../../../shared/domain/errors/errors.ts';
import { isJsonObject, type JsonObject } from '../../../shared/domain/json.ts';
import { jsonValue } from '../../../shared/domain/json-schema.ts';
import { jsonPost } from '../../../shared/http/client.ts';
import { type HttpResult, type PeerError, peerErrorOf } from '../../../shared/http/result.ts';
import type { ApiDeps } from '../deps.ts';
import { type FunctionCaller, type FunctionHost, type FunctionHosts, hostValue } from './hosts.ts';

/** Caller whose call runs a hook. The defaults are for calls by Carillon itself. */
export type HookCaller = Pick<FunctionCaller, 'app'> & Partial<FunctionCaller>;

/** Time limits of hooks (protocol/functions.md#hook-times). */
const decidingTimeoutMs = 10_000;
const otherTimeoutMs = 3_000;

/**
 * Maximum number of hooks that run in the background, over all apps and for one app. Further hooks
 * are dropped and counted.
 */
const maxInBackground = 1_000;
const maxInBackgroundPerApp = maxInBackground / 2;
/**
 * Maximum number of concurrent deciding hooks of one app that calls from its own host cause. This
 * is half of the connections to a host. The limit stops a hook whose writes trigger the hook again.
 */
const maxNested = 32;
const maxTextLength = 1_000;

const isEvent = (hook: HookName): hook is EventHook => Object.hasOwn(eventHooks, hook);
const nameOf = (hook: HookName): string =>
  isEvent(hook) ? eventHooks[hook].name : userHooks[hook];
const pathOf = (hook: HookName): string =>
  isEvent(hook) ? eventHooks[hook].path : `_User/${hook}`;

/**
 * Runs the hooks of `_User` that the function host of an app declares
 * (protocol/functions.md#hooks).
 */
export class Hooks {
  readonly #hosts: FunctionHosts;
  readonly #declaredHooks: DeclaredHooks;
  readonly #clock: ApiDeps['clock'];
  readonly #metrics: ApiDeps['metrics'];
  readonly #background = new Set<Promise<void>>();
  readonly #backgroundOf = new AppCounts();
  /** Number of running deciding hooks by app. */
  readonly #nested = new AppCounts();

  constructor(deps: Pick<ApiDeps, 'clock' | 'db' | 'metrics'>, hosts: FunctionHosts) {
    this.#hosts = hosts;
    this.#declaredHooks = new DeclaredHooks(hosts, deps);
    this.#clock = deps.clock;
    this.#metrics = deps.metrics;
  }

  /**
   * Returns whether a hook must run: the host declares it, and the body does not exclude it by
   * `__ignore_hooks`. A body may exclude hooks only with the hook or master key. Throws error 503
   * if the host never answered.
   */
  async isNeeded(hook: HookName, caller: HookCaller, body: JsonObject = {}): Promise<boolean> {
    const host = this.#hosts.find(completeCaller(caller));
    if (!host || isIgnored(hook, caller, body)) return false;
    return (await this.#declaredHooks.get(host, completeCaller(caller))).has(nameOf(hook));
  }

  /**
   * Runs a deciding hook and returns its response. If the hook refuses, throws error 142 with its
   * message, or error 401 at a login. Throws error 141 on a timeout, error 431 if hooks trigger
   * themselves, error 502 if the response is not JSON, error 503 if the host is unreachable.
   */
  async run(hook: HookName, caller: HookCaller, message: JsonObject): Promise<JsonObject> {
    if (!caller.hasHookKey) return this.#run(hook, caller, message);
    const { appId } = caller.app;
    if (this.#nested.of(appId) >= maxNested) {
      this.#count(hook, 'refused');
      throw refuse('tooManyHooks', `Too many hooks at a time: does ${hook} of _User call itself?`);
    }
    this.#nested.add(appId, 1);
    try {
      return await this.#run(hook, caller, message);
    } finally {
      this.#nested.add(appId, -1);
    }
  }

  async #run(hook: HookName, caller: HookCaller, message: JsonObject): Promise<JsonObject> {
    const host = this.#hosts.find(completeCaller(caller));
    if (!host) return {};
    try {
      const answer = await this.#request(hook, { host, caller: completeCaller(caller), message });
      this.#count(hook, 'ok');
      return answer;
    } catch (error) {
      const isRefusal =
        error instanceof Refusal && (error.kind === 'hookRefused' || error.kind === 'loginRefused');
      this.#count(hook, isRefusal ? 'refused' : 'failed');
      throw error;
    }
  }

  /**
   * Runs a hook that does not decide, in the background. A failure is counted. The hook is not
   * repeated.
   */
  runInBackground(
    hook: HookName,
    caller: HookCaller,
    { body, message }: { body?: JsonObject; message: JsonObject },
  ): void {
    if (!this.#hosts.find(completeCaller(caller))) return;
    const { appId } = caller.app;
    const isFull =
      this.#background.size >= maxInBackground ||
      this.#backgroundOf.of(appId) >= maxInBackgroundPerApp;
    if (isFull) {
      this.#count(hook, 'dropped');
      return;
    }
    const work = this.#runIfNeeded(hook, caller, { body, message }).finally(() => {
      this.#background.delete(work);
      this.#backgroundOf.add(appId, -1);
    });
    this.#background.add(work);
    this.#backgroundOf.add(appId, 1);
  }

  async #runIfNeeded(
    hook: HookName,
    caller: HookCaller,
    { body, message }: { body: JsonObject | undefined; message: JsonObject },
  ): Promise<void> {
    try {
      if (await this.isNeeded(hook, caller, body)) await this.#run(hook, caller, message);
    } catch {
      // `#run` counted the failure.
    }
  }

  async #request(
    hook: HookName,
    { host, caller, message }: { host: FunctionHost; caller: FunctionCaller; message: JsonObject },
  ): Promise<JsonObject> {
    // Sends no session: engines would request its user, and an outdated session would fail the
    // call. The message contains the caller.
    const asService = { ...caller, isMaster: false, hasHookKey: true, sessionToken: undefined };
    const headers = this.#hosts.headers(asService, host);
    const signed = signedMessage(hook, message, { app: caller.app, nowMs: this.#clock.now() });
    const reply = await host.httpClient.request({
      ...jsonPost(`/1.1/functions/${pathOf(hook)}`, signed, headers),
      timeoutMs: hook.startsWith('before') ? decidingTimeoutMs : otherTimeoutMs,
    });
    const failed = (kind: ErrorName, options: RefusalOptions) =>
      new Refusal(kind, { ...options, cause: peerErrorOf(host.url, reply) });
    if (reply.kind !== 'response') {
      if (reply.reason === 'timeout' || reply.reason === 'queue_timeout')
        throw failed('hookTimedOut', { text: timedOutText(hook) });
      if (reply.kind === 'not_sent')
        throw failed('unavailable', {
          text: 'The function host is not there.',
          retryAfterSeconds: 5,
        });
    }
    const value = reply.kind === 'response' ? hostValue(reply.body) : undefined;
    // Without a complete JSON text, such as in the page of a proxy, the decision is unknown.
    if (reply.kind !== 'response' || value === undefined)
      throw failed('badGateway', {
        text: `The function host gave no JSON for the hook ${hook} of _User.`,
      });
    const answer = isJsonObject(value) ? value : undefined;
    // The PHP engine writes an empty object as a list.
    if (reply.status >= 200 && reply.status < 300) return answer ?? {};
    if (reply.status === 503 && answer?.code === 124)
      throw failed('hookTimedOut', { text: timedOutText(hook) });
    throw refusalOfHook(hook, answer);
  }

  #count(hook: HookName, outcome: 'ok' | 'refused' | 'failed' | 'dropped'): void {
    this.#metrics.hooks.inc({ hook, outcome });
  }

  /** Resolves when the hooks in the background have ended. */
  async close(): Promise<void> {
    await Promise.all(this.#background);
  }
}

/** Numbers by app. Apps with 0 use no memory. */
class AppCounts {
  readonly #counts = new Map<string, number>();

  of(appId: string): number {
    return this.#counts.get(appId) ?? 0;
  }

  add(appId: string, n: number): void {
    const count = this.of(appId) + n;
    if (count > 0) this.#counts.set(appId, count);
    else this.#counts.delete(appId);
  }
}

const refusedBy = 'Cloud Code validation failed. Error detail : ';
const loginRefusedBy = 'Unauthorized. Error detail : ';

const timedOutText = (hook: HookName): string =>
  `LeanEngine request timeout. The hook is ${hook} of _User.`;

/**
 * Returns the refusal of a hook, with its message in the form that clients expect
 * (protocol/functions.md#hooks).
 */
function refusalOfHook(hook: HookName, answer: JsonObject | undefined): Refusal {
  const message = typeof answer?.error === 'string' ? answer.error : 'the hook failed';
  // The error of a nested hook already has the prefix.
  const own = message.replaceAll(refusedBy, '');
  const detail = own.replace(/\p{Cc}+/gu, ' ').slice(0, maxTextLength);
  const kind: ErrorName = hook === 'onLogin' ? 'loginRefused' : 'hookRefused';
  return refuse(kind, `${kind === 'loginRefused' ? loginRefusedBy : refusedBy}${detail}`);
}

/**
 * Adds the member by which the PHP engine recognizes a hook call from Carillon, because that engine
 * does not know the hook key (protocol/functions.md#signed-members). The member contains the time
 * in milliseconds and the HMAC-SHA1 of `<text>:<time>` with the master key. Messages without an
 * object are not signed.
 */
function signedMessage(
  hook: HookName,
  message: JsonObject,
  { app, nowMs }: { app: App; nowMs: number },
): JsonObject {
  const { object } = message;
  if (!isJsonObject(object)) return message;
  const [member, text] = signatureOf(hook);
  const digest = createHmac('sha1', app.masterKey).update(`${text}:${nowMs}`).digest('hex');
  return { ...message, object: { ...object, [member]: `${nowMs},${digest}` } };
}

/** Returns the name of the signature member, and the text to sign. */
function signatureOf(hook: HookName): [member: string, text: string] {
  if (isEvent(hook)) return ['__sign', nameOf(hook)];
  return hook.startsWith('before')
    ? ['__before', '__before_for__User']
    : ['__after', '__after_for__User'];
}

const completeCaller = (caller: HookCaller): FunctionCaller => ({
  isMaster: false,
  hasHookKey: false,
  stage: 'production',
  sessionToken: undefined,
  remoteAddress: '',
  ...caller,
});

/**
 * Returns whether the body excludes the hook. Hosts exclude hooks when they write users inside a
 * hook, to end the recursion.
 */
function isIgnored(
  hook: HookName,
  { isMaster, hasHookKey }: HookCaller,
  body: JsonObject,
): boolean {
  if (!isMaster && !hasHookKey) return false;
  const { __ignore_hooks: ignored } = body;
  return Array.isArray(ignored) && ignored.includes(hook);
}

/** Lifetime of a cached list. The hooks of a new deployment run after this time at the latest. */
const cacheMs = 5_000;
/** Pause after a failed request. */
const retryAfterMs = 1_000;
const requestMs = 3_000;
const path = '/1.1/functions/_ops/metadatas';

/** Names of all hooks. Other names in a list are ignored. */
const hookNames = new Set<string>([
  ...Object.values(userHooks),
  ...Object.values(eventHooks).map(({ name }) => name),
]);

const listShape = z.object({ result: z.array(z.string()).max(10_000) });
/** Result of a function: the host does not know this call and treats every name as a function. */
const otherResult = z.object({ result: jsonValue.refine((result) => !Array.isArray(result)) });

/** Hooks that a host declares, as cached in this process. */
interface HookList {
  names: ReadonlySet<string> | undefined;
  requestedAtMs: number;
  /** Text of the list in the database. */
  storedText: string | undefined;
  /** Why the last request returned no list. Undefined if it returned a list. */
  failure: PeerError | undefined;
  /** The request in progress. */
  request: Promise<void> | undefined;
}

/**
 * Requests the hooks that function hosts declare and caches them for seconds. The database also
 * contains the last list of a host, for processes that start while the host is unreachable.
 */
class DeclaredHooks {
  readonly #hosts: FunctionHosts;
  readonly #deps: Pick<ApiDeps, 'clock' | 'db'>;
  readonly #byHost = new WeakMap<FunctionHost, HookList>();

  constructor(hosts: FunctionHosts, deps: Pick<ApiDeps, 'clock' | 'db'>) {
    this.#hosts = hosts;
    this.#deps = deps;
  }

  /**
   * Returns the names of a host's hooks. For an unreachable host, returns the last list that any
   * process received. Throws error 503 if no process ever received a list: without the hooks,
   * forbidden writes would be accepted.
   */
  async get(host: FunctionHost, caller: FunctionCaller): Promise<ReadonlySet<string>> {
    const list = this.#byHost.get(host) ?? {
      names: undefined,
      requestedAtMs: Number.NEGATIVE_INFINITY,
      storedText: undefined,
      request: undefined,
      failure: undefined,
    };
    this.#byHost.set(host, list);
    const ageMs = this.#deps.clock.monotonicMs() - list.requestedAtMs;
    if (ageMs >= (list.names ? cacheMs : retryAfterMs))
      list.request ??= this.#request(host, caller, list).finally(() => {
        list.request = undefined;
      });
    // An unreachable host may take long to fail again. The cached hooks are returned at once.
    if (!list.names || !list.failure) await list.request;
    if (list.names) return list.names;
    throw new Refusal('unavailable', {
      text: 'The function host cannot be asked for its hooks.',
      retryAfterSeconds: 1,
      cause: list.failure,
    });
  }

  async #request(host: FunctionHost, caller: FunctionCaller, list: HookList): Promise<void> {
    const headers = this.#hosts.listHeaders(caller, host);
    const reply = await host.httpClient.request({
      method: 'GET',
      path,
      headers,
      timeoutMs: requestMs,
    });
    list.requestedAtMs = this.#deps.clock.monotonicMs();
    const declaringHost = this.#hosts.declaringHostOf(host, caller);
    const answered = namesIn(reply);
    if (!answered || isPage(reply)) list.names ??= await this.#stored(declaringHost);
    // A proxy answers 404 with a page while the host restarts.
    const names = isPage(reply) && list.names?.size ? undefined : answered;
    list.failure = names ? undefined : peerErrorOf(host.url, reply);
    if (!names) return;
    list.names = names;
    await this.#store(declaringHost, list, [...names].sort());
  }

  /** Returns the last list of a host that any process received. */
  async #stored(host: DeclaringHost): Promise<ReadonlySet<string> | undefined> {
    const stored = await findDeclaredHooks(this.#deps.db, host);
    return stored && new Set(stored);
  }

  /** Stores a list. Ignores a failure: the list is valid, and the next response stores it again. */
  async #store(host: DeclaringHost, list: HookList, names: string[]): Promise<void> {
    const text = names.join();
    if (list.storedText === text) return;
    try {
      await keepDeclaredHooks(this.#deps.db, host, names);
      list.storedText = text;
    } catch {
      list.storedText = undefined;
    }
  }
}

/** Returns the hooks that a response declares. Returns undefined if the response is invalid. */
function namesIn(reply: HttpResult): ReadonlySet<string> | undefined {
  if (reply.kind !== 'response') return undefined;
  // A host without this endpoint has no hooks.
  if (reply.status === 404 || reply.status === 405) return new Set();
  return reply.status === 200 ? hooksIn(reply.body) : undefined;
}

/** True for a response that is no JSON, such as the page of a proxy. */
const isPage = (reply: HttpResult): boolean =>
  reply.kind === 'response' && hostValue(reply.body) === undefined;

function hooksIn(body: string): ReadonlySet<string> | undefined {
  const answer = hostValue(body);
  const list = listShape.safeParse(answer);
  if (list.success) return new Set(list.data.result.filter((name) => hookNames.has(name)));
  return otherResult.safeParse(answer).success ? new Set() : undefined;
}
