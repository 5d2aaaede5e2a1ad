import { messageIn, Refusal, refuse } from '../../../shared/domain/errors/errors.ts';
import type { Json, JsonObject } from '../../../shared/domain/json.ts';
import type { ApiDeps } from '../deps.ts';
import {
  failed,
  type InnerCall,
  type InnerFailure,
  type InnerOutcome,
  isListCall,
  parallelGroups,
  type RunBudgeted,
  type RunInnerCall,
  readItem,
  readRequests,
  writeTargets,
} from './calls.ts';
import {
  type BatchBudget,
  type BatchReply,
  listEstimate,
  objectEstimate,
  ReplyBudget,
  type ReplyEstimate,
  type ReplyLimits,
  writeEstimate,
  writeReply,
} from './reply-budget.ts';
import { saveAll } from './save.ts';

/**
 * Number of concurrent calls of one batch. Each call may use one of the process's ten database
 * connections.
 */
const maxParallel = 4;
/** Time after which no further call of a batch starts. The remaining calls get 124. */
const maxMs = 30_000;

/** Batch with its caller, and the function that runs its calls. */
export interface BatchCall {
  app: { appId: string };
  isMaster: boolean;
  body: JsonObject;
  runInnerCall: RunInnerCall;
  language: 'en' | 'zh';
}

/** Runs batches of calls (protocol/objects.md#batches). */
export class BatchService {
  readonly #deps: Pick<ApiDeps, 'clock'>;
  readonly #budget: ReplyBudget;

  constructor(deps: Pick<ApiDeps, 'clock'>, limits?: ReplyLimits) {
    this.#deps = deps;
    this.#budget = new ReplyBudget(limits);
  }

  /** Number of bytes in the unsent replies of all batches. */
  get usedBytes(): number {
    return this.#budget.usedBytes;
  }

  /**
   * Returns a JSON list with one `{"success"}` or `{"error"}` for each of `requests`, in their
   * order. Calls run in parallel if their results do not depend on the order (calls.ts). If the
   * reply of a call may not fit into memory, the call does not run: its item is 116 (batch limit),
   * 429 (app limit) or 503 (process limit). Throws error 107, 116, 429 or 503 for the whole batch.
   */
  run(call: BatchCall): Promise<BatchReply> {
    const items = readRequests(call.body).map(itemOrRefusal);
    return this.#withBudget(call, async (runInnerCall) => {
      const outcomes = items.map((item): InnerOutcome | undefined =>
        item instanceof Refusal ? failed(item) : undefined,
      );
      const calls = items.map((item) => (item instanceof Refusal ? undefined : item));
      for (const indexes of parallelGroups(calls))
        await runTogether(indexes, { calls, outcomes, runInnerCall });
      const { language } = call;
      return [
        '[',
        outcomes.map((outcome, index) => textOf(outcome, { call: calls[index], language })),
        ']',
      ];
    });
  }

  /**
   * Handles `batch/save`. Returns a JSON dictionary from `__internalId` to the reply of the save or
   * `{"error"}`. Throws the first refusal if no object was saved.
   */
  save(call: BatchCall): Promise<BatchReply> {
    const requests = readRequests(call.body);
    const errorOf = (failure: InnerFailure) => errorIn(call.language, failure);
    return this.#withBudget(call, async (runInnerCall) => [
      '{',
      await saveAll(requests, runInnerCall, errorOf),
      '}',
    ]);
  }

  /**
   * Runs `work` with the memory budget of a batch. Frees the memory when the reply is sent or the
   * batch fails.
   */
  async #withBudget(
    call: BatchCall,
    work: (runInnerCall: RunBudgeted) => Promise<[begin: string, parts: string[], end: string]>,
  ): Promise<BatchReply> {
    const budget = this.#budget.open(call.app.appId);
    try {
      const [begin, parts, end] = await work(this.#budgetedRunner(call, budget));
      return writeReply({ begin, parts, end }, () => budget.close());
    } catch (error) {
      budget.close();
      throw error;
    }
  }

  /** Returns a function that runs a call within the time and memory of its batch. */
  #budgetedRunner({ runInnerCall, isMaster }: BatchCall, budget: BatchBudget): RunBudgeted {
    const { clock } = this.#deps;
    const endsAtMs = clock.monotonicMs() + maxMs;
    return async (call) => {
      if (clock.monotonicMs() > endsAtMs) return failed(refuse('timedOut'));
      const reservation = await budget.reserve(estimateOf(call, isMaster));
      if (reservation instanceof Refusal) return failed(reservation);
      try {
        // The reservation may have waited for other batches.
        if (clock.monotonicMs() > endsAtMs) return failed(refuse('timedOut'));
        const outcome = await runInnerCall(call, reservation);
        const full = reservation.keep(bytesOf(outcome));
        return full ? failed(full) : outcome;
      } finally {
        reservation.release();
      }
    };
  }
}

function estimateOf(call: InnerCall, isMaster: boolean): ReplyEstimate {
  if (isListCall(call)) return listEstimate(isMaster);
  return call.method === 'GET' ? objectEstimate : writeEstimate;
}

/** Returns the memory that an outcome uses. Refusals by Carillon are short and count as 0. */
function bytesOf(outcome: InnerOutcome): number {
  if (outcome.ok) return Buffer.byteLength(outcome.text);
  return outcome.refusal ? 0 : Buffer.byteLength(outcome.error.error);
}

function itemOrRefusal(item: Json): InnerCall | Refusal {
  try {
    return readItem(item);
  } catch (error) {
    if (error instanceof Refusal) return error;
    throw error;
  }
}

/** Calls of a batch by index, and the outcomes of the calls that have ended. */
interface ParallelRun {
  calls: (InnerCall | undefined)[];
  outcomes: (InnerOutcome | undefined)[];
  runInnerCall: RunBudgeted;
}

/**
 * Runs calls of one group in parallel. Calls that write to the same object run one after another.
 */
async function runTogether(
  indexes: number[],
  { calls, outcomes, runInnerCall }: ParallelRun,
): Promise<void> {
  const waiting = [...indexes];
  const lastOf = new Map<string, Promise<void>>();
  const runOne = async (index: number, call: InnerCall): Promise<void> => {
    outcomes[index] = await runInnerCall(call);
  };
  const work = async (): Promise<void> => {
    for (let index = waiting.shift(); index !== undefined; index = waiting.shift()) {
      const call = calls[index];
      if (!call) continue;
      const [at, targets] = [index, writeTargets(call)];
      const before = targets.flatMap((target) => lastOf.get(target) ?? []);
      // A call waits only for earlier calls, which excludes deadlocks.
      const done = Promise.all(before).then(() => runOne(at, call));
      for (const target of targets) lastOf.set(target, done);
      await done;
      // A batch may name millions of objects.
      for (const target of targets) if (lastOf.get(target) === done) lastOf.delete(target);
    }
  };
  await Promise.all(Array.from({ length: maxParallel }, work));
}

/** Returns a failure in the form that clients get. */
function errorIn(language: 'en' | 'zh', { refusal, ...failure }: InnerFailure): JsonObject {
  if (refusal) return { code: refusal.code, error: messageIn(language, refusal) };
  return 'error' in failure ? failure.error : {};
}

/**
 * Returns the text of an item. An unknown object is `null` in a batch
 * (protocol/objects.md#batches), but `{}` in a single call.
 */
function textOf(
  outcome: InnerOutcome | undefined,
  { call, language }: { call: InnerCall | undefined; language: 'en' | 'zh' },
): string {
  if (!outcome) throw new Error('a call of a batch has no outcome');
  if (!outcome.ok) return JSON.stringify({ error: errorIn(language, outcome) });
  return `{"success":${call?.method === 'GET' && outcome.text === '{}' ? 'null' : outcome.text}}`;
}
