import { Refusal, refuse } from '../../../shared/domain/errors.ts';
import { messageIn } from '../../../shared/domain/errors-zh.ts';
import type { Json, JsonObject } from '../../../shared/domain/json.ts';
import type { Means } from '../means.ts';
import { failed, type InnerCall, type InnerOutcome, type Perform } from './calls.ts';
import { readItem, readRequests } from './items.ts';
import { runsOf, targetsOf } from './order.ts';
import { saveAll } from './save.ts';

/** Calls of one batch at the same time: each may hold one of the process's ten database connections. */
const maxParallel = 4;
/** No call of a batch begins later than this; it is answered with 124 instead. */
const maxMs = 30_000;
/** Reads end where their replies, in characters, are more than this together. */
const maxReplyLength = 64 * 1024 * 1024;

/** Several calls in one (compat.md 3.5). */
export class BatchService {
  readonly #means: Pick<Means, 'clock'>;

  constructor(means: Pick<Means, 'clock'>) {
    this.#means = means;
  }

  /**
   * The JSON text of a list of `{"success"}` and `{"error"}`, one for each of `requests`, in their order. Calls run at
   * the same time as far as that cannot be told (order.ts). Throws 107 or 116 for the batch as a whole.
   */
  async run(body: JsonObject, perform: Perform, language: 'en' | 'zh'): Promise<string> {
    const read = readRequests(body).map(itemOrRefusal);
    const outcomes = read.map((item): InnerOutcome | undefined =>
      item instanceof Refusal ? failed(item) : undefined,
    );
    const calls = read.map((item) => (item instanceof Refusal ? undefined : item));
    const limited = this.#limited(perform);
    for (const places of runsOf(calls)) await runTogether(places, { calls, outcomes, perform: limited });
    return `[${outcomes.map((outcome, place) => textOf(outcome, { call: calls[place], language })).join(',')}]`;
  }

  /**
   * `batch/save`: the JSON text of a dictionary from `__internalId` to what was saved. Throws the first refusal: what
   * was saved before it stays, and may be saved again.
   */
  save(body: JsonObject, perform: Perform): Promise<string> {
    return saveAll(readRequests(body), this.#limited(perform));
  }

  #limited(perform: Perform): Perform {
    const endsAtMs = this.#means.clock.monotonicMs() + maxMs;
    let replyLength = 0;
    return async (call) => {
      if (this.#means.clock.monotonicMs() > endsAtMs) return failed(refuse('timedOut'));
      if (call.method === 'GET' && replyLength > maxReplyLength)
        return failed(refuse('tooLarge', 'The replies of this batch are too large.'));
      const outcome = await perform(call);
      if (outcome.ok) replyLength += outcome.text.length;
      return outcome;
    };
  }
}

function itemOrRefusal(item: Json): InnerCall | Refusal {
  try {
    return readItem(item);
  } catch (error) {
    if (error instanceof Refusal) return error;
    throw error;
  }
}

interface Running {
  calls: (InnerCall | undefined)[];
  outcomes: (InnerOutcome | undefined)[];
  perform: Perform;
}

/** Runs calls of one kind, a few at a time; those that write to the same object one after the other. */
async function runTogether(places: number[], { calls, outcomes, perform }: Running): Promise<void> {
  const waiting = [...places];
  const lastOf = new Map<string, Promise<void>>();
  const runOne = async (place: number, call: InnerCall): Promise<void> => {
    outcomes[place] = await perform(call);
  };
  const work = async (): Promise<void> => {
    for (let place = waiting.shift(); place !== undefined; place = waiting.shift()) {
      const call = calls[place];
      if (!call) continue;
      const [at, targets] = [place, targetsOf(call)];
      const before = targets.flatMap((target) => lastOf.get(target) ?? []);
      // A call waits only for such as were taken before it, so that somebody can always go on.
      const done = Promise.all(before).then(() => runOne(at, call));
      for (const target of targets) lastOf.set(target, done);
      await done;
    }
  };
  await Promise.all(Array.from({ length: maxParallel }, work));
}

/** An object that is not there is `null` (compat.md 3.5), where a call by itself answers `{}`. */
function textOf(
  outcome: InnerOutcome | undefined,
  { call, language }: { call: InnerCall | undefined; language: 'en' | 'zh' },
): string {
  if (!outcome) throw new Error('a call of a batch has no outcome');
  if (!outcome.ok) {
    const { refusal } = outcome;
    const error = refusal ? { code: refusal.code, error: messageIn(language, refusal) } : outcome.error;
    return JSON.stringify({ error });
  }
  return `{"success":${call?.method === 'GET' && outcome.text === '{}' ? 'null' : outcome.text}}`;
}
