import { z } from 'zod';
import {
  type DeclaringHost,
  findDeclaredHooks,
  keepDeclaredHooks,
} from '../../../shared/db/tables/apps/declared-hooks.ts';
import { eventHooks, userHooks } from '../../../shared/domain/apps/functions.ts';
import { Refusal } from '../../../shared/domain/errors/errors.ts';
import { parseJson } from '../../../shared/domain/json.ts';
import type { HttpResult } from '../../../shared/http/client.ts';
import type { ApiDeps } from '../deps.ts';
import type { FunctionCaller, FunctionHost, FunctionHosts } from './hosts.ts';

/** How long a list counts: what is deployed anew runs its hooks this much later. */
const cacheMs = 5_000;
/** After a host could not be asked it is left alone for so long. */
const retryAfterMs = 1_000;
const requestMs = 3_000;
const path = '/1.1/functions/_ops/metadatas';

/** Names of the hooks that there are: of a list no more is kept. */
const hookNames = new Set<string>([
  ...Object.values(userHooks),
  ...Object.values(eventHooks).map(({ name }) => name),
]);

const listShape = z.object({ result: z.array(z.string()).max(10_000) });

interface HookList {
  names: ReadonlySet<string> | undefined;
  requestedAtMs: number;
  /** The last question had no answer. */
  isUnreachable: boolean;
  /** What the database holds of it, as text. */
  storedText: string | undefined;
  /** The question that is under way. */
  request: Promise<void> | undefined;
}

/**
 * The hooks that function hosts say that they have, asked of them and kept for seconds. The last list of a host is
 * in the database too, for a process that starts while the host is away.
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
   * Names of the hooks of a host. One that cannot be asked has those that it last declared to any process. Throws 503
   * when it never could be asked by any: to go on without its hooks would let through what they are there to stop.
   */
  async of(host: FunctionHost, caller: FunctionCaller): Promise<ReadonlySet<string>> {
    const known = this.#byHost.get(host) ?? {
      names: undefined,
      requestedAtMs: Number.NEGATIVE_INFINITY,
      isUnreachable: false,
      storedText: undefined,
      request: undefined,
    };
    this.#byHost.set(host, known);
    const ageMs = this.#deps.clock.monotonicMs() - known.requestedAtMs;
    if (ageMs >= (known.names ? cacheMs : retryAfterMs))
      known.request ??= this.#request(host, caller, known).finally(() => {
        known.request = undefined;
      });
    // A host that was away may take long to fail again; its hooks are known without it.
    if (!known.names || !known.isUnreachable) await known.request;
    if (known.names) return known.names;
    throw new Refusal('unavailable', {
      text: 'The function host cannot be asked for its hooks.',
      retryAfterSeconds: 1,
    });
  }

  async #request(host: FunctionHost, caller: FunctionCaller, declared: HookList): Promise<void> {
    const headers = this.#hosts.headers({ ...caller, isMaster: true, sessionToken: undefined }, host);
    const reply = await host.httpClient.request({ method: 'GET', path, headers, timeoutMs: requestMs });
    declared.requestedAtMs = this.#deps.clock.monotonicMs();
    const names = namesIn(reply);
    declared.isUnreachable = names === undefined;
    const declaringHost = this.#hosts.declaringHostOf(host, caller);
    if (names) {
      declared.names = names;
      await this.#store(declaringHost, declared, [...names].sort());
    } else if (!declared.names) {
      const kept = await findDeclaredHooks(this.#deps.db, declaringHost);
      if (kept) declared.names = new Set(kept);
    }
  }

  /** A list that cannot be kept counts all the same; the next answer is another chance. */
  async #store(host: DeclaringHost, declared: HookList, names: string[]): Promise<void> {
    const text = names.join();
    if (declared.storedText === text) return;
    try {
      await keepDeclaredHooks(this.#deps.db, host, names);
      declared.storedText = text;
    } catch {
      declared.storedText = undefined;
    }
  }
}

/** The hooks that an answer declares; undefined where it is no answer to the question. */
function namesIn(reply: HttpResult): ReadonlySet<string> | undefined {
  if (reply.kind !== 'response') return undefined;
  // A host that knows no such list has no hooks.
  if (reply.status === 404 || reply.status === 405) return new Set();
  return reply.status === 200 ? hooksIn(reply.body) : undefined;
}

function hooksIn(body: string): ReadonlySet<string> | undefined {
  try {
    const list = listShape.safeParse(parseJson(body));
    return list.success ? new Set(list.data.result.filter((name) => hookNames.has(name))) : undefined;
  } catch {
    return undefined;
  }
}
