import { z } from 'zod';
import type { Clock } from '../../../shared/clock.ts';
import { Refusal } from '../../../shared/domain/errors.ts';
import type { FunctionCaller, FunctionHost, FunctionHosts } from './hosts.ts';

/** How long a list counts: what is deployed anew runs its hooks this much later. */
const lifeMs = 5_000;
/** After a host could not be asked it is left alone for so long. */
const restMs = 1_000;
const askMs = 3_000;
const path = '/1.1/functions/_ops/metadatas';

const listShape = z.object({ result: z.array(z.string()).max(10_000) });

interface Declared {
  names: ReadonlySet<string> | undefined;
  askedAtMs: number;
  /** The question that is under way. */
  asking: Promise<void> | undefined;
}

/** What function hosts say that they have, asked of them and kept for seconds. */
export class DeclaredNames {
  readonly #hosts: FunctionHosts;
  readonly #clock: Clock;
  readonly #byHost = new WeakMap<FunctionHost, Declared>();

  constructor(hosts: FunctionHosts, clock: Clock) {
    this.#hosts = hosts;
    this.#clock = clock;
  }

  /**
   * Names of the functions and hooks of a host. One that cannot be asked has those that it had. Throws 503 when it never
   * could be asked: to go on without its hooks would let through what they are there to stop.
   */
  async of(host: FunctionHost, caller: FunctionCaller): Promise<ReadonlySet<string>> {
    const known = this.#byHost.get(host) ?? {
      names: undefined,
      askedAtMs: Number.NEGATIVE_INFINITY,
      asking: undefined,
    };
    this.#byHost.set(host, known);
    const ageMs = this.#clock.monotonicMs() - known.askedAtMs;
    if (ageMs >= (known.names ? lifeMs : restMs))
      known.asking ??= this.#ask(host, caller, known).finally(() => {
        known.asking = undefined;
      });
    await known.asking;
    if (known.names) return known.names;
    throw new Refusal('unavailable', {
      text: 'The function host cannot be asked for its hooks.',
      retryAfterSeconds: 1,
    });
  }

  async #ask(host: FunctionHost, caller: FunctionCaller, declared: Declared): Promise<void> {
    const headers = this.#hosts.headers({ ...caller, isMaster: true, sessionToken: undefined }, host);
    const reply = await host.asker.request({ method: 'GET', path, headers, timeoutMs: askMs });
    declared.askedAtMs = this.#clock.monotonicMs();
    if (reply.kind !== 'response') return;
    // A host that knows no such list has no hooks.
    if (reply.status === 404 || reply.status === 405) declared.names = new Set();
    else if (reply.status === 200) declared.names = namesIn(reply.body) ?? declared.names;
  }
}

function namesIn(body: string): ReadonlySet<string> | undefined {
  try {
    const list = listShape.safeParse(JSON.parse(body));
    return list.success ? new Set(list.data.result) : undefined;
  } catch {
    return undefined;
  }
}
