import { z } from 'zod';
import {
  type DeclaringHost,
  findDeclaredHooks,
  keepDeclaredHooks,
} from '../../../shared/db/tables/apps.ts';
import { eventHooks, userHooks } from '../../../shared/domain/apps/functions.ts';
import { Refusal } from '../../../shared/domain/errors/errors.ts';
import { jsonValue } from '../../../shared/domain/json-schema.ts';
import { type HttpResult, type PeerError, peerErrorOf } from '../../../shared/http/result.ts';
import type { ApiDeps } from '../deps.ts';
import { type FunctionCaller, type FunctionHost, type FunctionHosts, hostValue } from './hosts.ts';

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
export class DeclaredHooks {
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
    const names = namesIn(reply);
    list.failure = names ? undefined : peerErrorOf(host.url, reply);
    const declaringHost = this.#hosts.declaringHostOf(host, caller);
    if (names) {
      list.names = names;
      await this.#store(declaringHost, list, [...names].sort());
    } else if (!list.names) {
      const stored = await findDeclaredHooks(this.#deps.db, declaringHost);
      if (stored) list.names = new Set(stored);
    }
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

function hooksIn(body: string): ReadonlySet<string> | undefined {
  const answer = hostValue(body);
  const list = listShape.safeParse(answer);
  if (list.success) return new Set(list.data.result.filter((name) => hookNames.has(name)));
  return otherResult.safeParse(answer).success ? new Set() : undefined;
}
