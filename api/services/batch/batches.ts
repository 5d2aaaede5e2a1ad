import { Refusal, refuse } from '../../../shared/domain/errors/errors.ts';
import { messageIn } from '../../../shared/domain/errors/errors-zh.ts';
import type { Json, JsonObject } from '../../../shared/domain/json.ts';
import type { ApiDeps } from '../deps.ts';
import {
  failed,
  type InnerCall,
  type InnerFailure,
  type InnerOutcome,
  type RunBudgeted,
  type RunInnerCall,
} from './inner-call.ts';
import { readItem, readRequests } from './items.ts';
import { isList, runsOf, targetsOf } from './order.ts';
import { type BatchReply, replyOf } from './reply.ts';
import {
  type BatchBudget,
  listEstimate,
  objectEstimate,
  ReplyBudget,
  type ReplyEstimate,
  type ReplyLimits,
  writeEstimate,
} from './reply-budget.ts';
import { saveAll } from './save.ts';

/** Calls of one batch at the same time: each may hold one of the process's ten database connections. */
const maxParallel = 4;
/** No call of a batch begins later than this; it is answered with 124 instead. */
const maxMs = 30_000;

/** Who sends a batch, and how its calls are answered. */
export interface BatchCall {
  app: { appId: string };
  isMaster: boolean;
  body: JsonObject;
  runInnerCall: RunInnerCall;
  language: 'en' | 'zh';
}

/** Several calls in one (protocol/objects.md#batches). */
export class BatchService {
  readonly #deps: Pick<ApiDeps, 'clock'>;
  readonly #budget: ReplyBudget;

  constructor(deps: Pick<ApiDeps, 'clock'>, limits?: ReplyLimits) {
    this.#deps = deps;
    this.#budget = new ReplyBudget(limits);
  }

  /** Bytes that replies of batches take now; none when all were sent. */
  get heldBytes(): number {
    return this.#budget.heldBytes;
  }

  /**
   * The JSON text of a list of `{"success"}` and `{"error"}`, one for each of `requests`, in their order. Calls run at
   * the same time as far as that cannot be told (order.ts). A call whose reply may have no room does not run: its item
   * is 116 (the batch is full), 429 (the app) or 503 (the process). Throws 107, 116, 429 or 503 for the batch as a whole.
   */
  run(call: BatchCall): Promise<BatchReply> {
    const read = readRequests(call.body).map(itemOrRefusal);
    return this.#withBudget(call, async (runInnerCall) => {
      const outcomes = read.map((item): InnerOutcome | undefined =>
        item instanceof Refusal ? failed(item) : undefined,
      );
      const calls = read.map((item) => (item instanceof Refusal ? undefined : item));
      for (const indexes of runsOf(calls)) await runTogether(indexes, { calls, outcomes, runInnerCall });
      const { language } = call;
      return ['[', outcomes.map((outcome, index) => textOf(outcome, { call: calls[index], language })), ']'];
    });
  }

  /**
   * `batch/save`: the JSON text of a dictionary from `__internalId` to what was saved, or to `{"error"}`. Throws the first
   * refusal where nothing was saved.
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

  /** The memory of a batch is free again when its reply was sent, or when it has none. */
  async #withBudget(
    call: BatchCall,
    work: (runInnerCall: RunBudgeted) => Promise<[begin: string, parts: string[], end: string]>,
  ): Promise<BatchReply> {
    const budget = this.#budget.open(call.app.appId);
    try {
      const [begin, parts, end] = await work(this.#budgetedRunner(call, budget));
      return replyOf({ begin, parts, end }, () => budget.close());
    } catch (error) {
      budget.close();
      throw error;
    }
  }

  #budgetedRunner({ runInnerCall, isMaster }: BatchCall, budget: BatchBudget): RunBudgeted {
    const { clock } = this.#deps;
    const endsAtMs = clock.monotonicMs() + maxMs;
    return async (call) => {
      if (clock.monotonicMs() > endsAtMs) return failed(refuse('timedOut'));
      const reservation = await budget.reserve(estimateOf(call, isMaster));
      if (reservation instanceof Refusal) return failed(reservation);
      try {
        // It may have waited for other batches.
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
  if (isList(call)) return listEstimate(isMaster);
  return call.method === 'GET' ? objectEstimate : writeEstimate;
}

/** What an outcome takes in memory; our own refusals are short. */
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

interface ParallelRun {
  calls: (InnerCall | undefined)[];
  outcomes: (InnerOutcome | undefined)[];
  runInnerCall: RunBudgeted;
}

/** Runs calls of one kind, a few at a time; those that write to the same object one after the other. */
async function runTogether(indexes: number[], { calls, outcomes, runInnerCall }: ParallelRun): Promise<void> {
  const waiting = [...indexes];
  const lastOf = new Map<string, Promise<void>>();
  const runOne = async (index: number, call: InnerCall): Promise<void> => {
    outcomes[index] = await runInnerCall(call);
  };
  const work = async (): Promise<void> => {
    for (let index = waiting.shift(); index !== undefined; index = waiting.shift()) {
      const call = calls[index];
      if (!call) continue;
      const [at, targets] = [index, targetsOf(call)];
      const before = targets.flatMap((target) => lastOf.get(target) ?? []);
      // A call waits only for such as were taken before it, so that somebody can always go on.
      const done = Promise.all(before).then(() => runOne(at, call));
      for (const target of targets) lastOf.set(target, done);
      await done;
    }
  };
  await Promise.all(Array.from({ length: maxParallel }, work));
}

/** A failure as clients get it. */
function errorIn(language: 'en' | 'zh', { refusal, ...failure }: InnerFailure): JsonObject {
  if (refusal) return { code: refusal.code, error: messageIn(language, refusal) };
  return 'error' in failure ? failure.error : {};
}

/** An object that is not there is `null` (protocol/objects.md#batches), where a call by itself answers `{}`. */
function textOf(
  outcome: InnerOutcome | undefined,
  { call, language }: { call: InnerCall | undefined; language: 'en' | 'zh' },
): string {
  if (!outcome) throw new Error('a call of a batch has no outcome');
  if (!outcome.ok) return JSON.stringify({ error: errorIn(language, outcome) });
  return `{"success":${call?.method === 'GET' && outcome.text === '{}' ? 'null' : outcome.text}}`;
}
