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

/** Lifetime of a cached list: a new deployment runs its hooks after this time. */
const cacheMs = 5_000;
/** Pause after a failed request. */
const retryAfterMs = 1_000;
const requestMs = 3_000;
const path = '/1.1/functions/_ops/metadatas';

/** Names of all hooks; other names of a list are ignored. */
const hookNames = new Set<string>([
  ...Object.values(userHooks),
  ...Object.values(eventHooks).map(({ name }) => name),
]);

const listShape = z.object({ result: z.array(z.string()).max(10_000) });
/**
 * Result of a function: the host knows no such call, and answers each name as it answers a
 * function.
 */
const otherResult = z.object({ result: jsonValue.refine((result) => !Array.isArray(result)) });

/** Hooks that a host declares, as this process knows them. */
interface HookList {
  names: ReadonlySet<string> | undefined;
  requestedAtMs: number;
  /** The list in the database, as text. */
  storedText: string | undefined;
  /** Why the last request gave no list; undefined where it gave one. */
  failure: PeerError | undefined;
  /** The running request. */
  request: Promise<void> | undefined;
}

/**
 * Requests the hooks that function hosts declare, and caches them for seconds. The last list of a
 * host is also in the database, for a process that starts while the host is unreachable.
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
   * Returns the names of the hooks of a host. An unreachable host has the hooks that it last
   * declared to any process. Throws 503 when it never answered any process: without its hooks,
   * forbidden writes would pass.
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
    // An unreachable host may take long to fail again; its known hooks are returned at once.
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

  /** Stores a list. A failure is ignored: the list is valid, and the next response tries again. */
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

/** Returns the hooks that a response declares; undefined for an invalid response. */
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
