/**
 * Tasks of pushes to one device on their way to a thread and back. A message between threads costs more than such a push, so
 * the tasks of one turn of the event loop share one; so do the results of one turn, and none waits for the others of its
 * group.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Batcher } from '../../../shared/batcher.ts';
import type { DeliverTask, ThreadResult } from '../task.ts';

/** Most tasks of one message. */
const size = 100;

/** Tasks that a thread gets together. */
export interface GroupTask {
  tasks: { id: number; task: DeliverTask }[];
}

/** A task that a thread has ended. */
type Ended = { id: number } & ({ result: ThreadResult } | { error: unknown });

/** Message of a thread. */
interface GroupMessage {
  ended: Ended[];
}

const isGroupMessage = (message: unknown): message is GroupMessage =>
  typeof message === 'object' && message !== null && 'ended' in message;

/** The main thread's side. */
export class TaskGroups {
  readonly #send: (group: GroupTask) => Promise<unknown>;
  readonly #open = new Map<number, PromiseWithResolvers<ThreadResult>>();
  readonly #batcher: Batcher<DeliverTask, { result: Promise<ThreadResult> }>;
  #lastId = 0;

  /** `send` runs a group in a thread (`GroupResults`); it rejects when the thread failed. */
  constructor(send: (group: GroupTask) => Promise<unknown>) {
    this.#send = send;
    this.#batcher = new Batcher({
      ...{ concurrency: Number.POSITIVE_INFINITY, size },
      run: async (tasks) => this.#start(tasks),
    });
  }

  /** Runs one task. Rejects when the task or its thread failed. */
  async run(task: DeliverTask): Promise<ThreadResult> {
    return (await this.#batcher.run(task)).result;
  }

  /** Takes a message of a thread; returns false for one of another kind. */
  take(message: unknown): boolean {
    if (!isGroupMessage(message)) return false;
    for (const ended of message.ended) {
      const open = this.#open.get(ended.id);
      this.#open.delete(ended.id);
      if ('result' in ended) open?.resolve(ended.result);
      else open?.reject(ended.error);
    }
    return true;
  }

  #start(tasks: DeliverTask[]): { result: Promise<ThreadResult> }[] {
    const group = tasks.map((task) => {
      this.#lastId += 1;
      const ended = Promise.withResolvers<ThreadResult>();
      this.#open.set(this.#lastId, ended);
      return { id: this.#lastId, task, result: ended.promise };
    });
    const ids = group.map(({ id }) => id);
    const sent = this.#send({ tasks: group.map(({ id, task }) => ({ id, task })) });
    sent.then(
      () => this.#rejectLost(ids),
      (error: unknown) => this.#reject(ids, error),
    );
    return group.map(({ result }) => ({ result }));
  }

  /** Rejects the tasks whose results were lost with their thread: all were posted before the end of the group. */
  async #rejectLost(ids: number[]): Promise<void> {
    // Messages that are there already are taken in one turn.
    await nextTurn();
    await nextTurn();
    this.#reject(ids, new Error('the thread ended before its results were read'));
  }

  #reject(ids: number[], error: unknown): void {
    for (const id of ids) {
      this.#open.get(id)?.reject(error);
      this.#open.delete(id);
    }
  }
}

/** The thread's side. */
export class GroupResults {
  readonly #post: (message: GroupMessage) => void;
  #ended: Ended[] = [];

  constructor(post: (message: object) => void) {
    this.#post = post;
  }

  /** Runs the tasks of a group. Resolves when the results of all are posted. */
  async run({ tasks }: GroupTask, deliver: (task: DeliverTask) => Promise<ThreadResult>): Promise<void> {
    await Promise.all(
      tasks.map(({ id, task }) =>
        deliver(task).then(
          (result) => this.#add({ id, result }),
          (error: unknown) => this.#add({ id, error }),
        ),
      ),
    );
    this.#flush();
  }

  #add(ended: Ended): void {
    this.#ended.push(ended);
    if (this.#ended.length === 1) setImmediate(() => this.#flush());
  }

  #flush(): void {
    if (this.#ended.length === 0) return;
    const ended = this.#ended;
    this.#ended = [];
    this.#post({ ended });
  }
}
