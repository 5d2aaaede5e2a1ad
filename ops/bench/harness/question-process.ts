import { z } from 'zod';
import type { Environment } from '../../../shared/config/config.ts';
import {
  ClosingStack,
  closeOnSignals,
  notifySupervisor,
} from '../../../shared/process/lifecycle.ts';
import { createLogger } from '../../../shared/process/logging.ts';
import { Supervised } from '../../local/supervised.ts';

/** Both ends of the IPC channel between a benchmark and a process that answers its questions. */

const stopMs = 6000;

const question = z.object({ number: z.number(), question: z.unknown() });
const answer = z.object({ number: z.number(), answer: z.unknown(), error: z.string().optional() });
type Answer = z.infer<typeof answer>;

/** Process that answers questions of a benchmark, as the benchmark uses it. */
export class QuestionProcess {
  readonly #child: Supervised;
  readonly #waiting = new Map<number, (answer: Answer) => void>();
  #ready: unknown;
  #questionCount = 0;

  /** `file` is the source file of the process, relative to the project's root. */
  constructor(options: {
    name: string;
    file: string;
    env: Environment;
    log: (line: string) => void;
  }) {
    this.#child = new Supervised({ ...options, onMessage: (message) => this.#receive(message) });
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** Starts the process. Resolves with the first message of the process. */
  async start(): Promise<unknown> {
    await this.#child.start();
    return this.#ready;
  }

  /**
   * Asks a question. Resolves with the answer, parsed by `form`. Rejects if the process reports an
   * error.
   */
  async ask<T>(question: object, form: z.ZodType<T>): Promise<T> {
    this.#questionCount += 1;
    const number = this.#questionCount;
    const { answer, error } = await new Promise<Answer>((resolve) => {
      this.#waiting.set(number, resolve);
      this.#child.send({ number, question });
    });
    if (error !== undefined) throw new Error(error);
    return form.parse(answer);
  }

  stop(): Promise<void> {
    return this.#child.stop(stopMs);
  }

  #receive(message: Record<string, unknown>): void {
    const parsed = answer.safeParse(message);
    if (!parsed.success) {
      this.#ready = message;
      return;
    }
    this.#waiting.get(parsed.data.number)?.(parsed.data);
    this.#waiting.delete(parsed.data.number);
  }
}

/** Functions and names of a process that answers questions. */
export interface AnsweringProcess<Question> {
  /** Name of the process in its title and its log. */
  name: string;
  question: z.ZodType<Question>;
  answer(question: Question): unknown;
  /** First message of the process. It reports that the process is ready. */
  ready: object;
  close(): unknown;
}

/**
 * Answers the questions of the benchmark that started this process, until the process is stopped.
 */
export function answerBenchmark<Question>(own: AnsweringProcess<Question>): void {
  process.title = `carillon bench ${own.name}`;
  const log = createLogger({ level: 'warn', name: `bench ${own.name}` });
  const stack = new ClosingStack(log);
  stack.add(own.name, () => own.close());
  closeOnSignals({ log, stack });
  process.on('message', async (message) => {
    const { number, question: content } = question.parse(message);
    try {
      notifySupervisor({ number, answer: await own.answer(own.question.parse(content)) });
    } catch (error) {
      notifySupervisor({ number, answer: null, error: String(error) });
    }
  });
  notifySupervisor(own.ready);
}
