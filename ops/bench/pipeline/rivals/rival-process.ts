import { createHash } from 'node:crypto';
import { z } from 'zod';
import { answerBenchmark } from '../../harness/asked-process.ts';

/** Order to a rival: one push to devices 1 to `devices` of the gateway at `url`. */
export const rivalOrder = z.object({
  url: z.string(),
  /** Certificate of the gateway's authority, PEM. */
  ca: z.string(),
  topic: z.string(),
  devices: z.number(),
  /** Database of its own, for a rival that stores devices; `host` is a directory of sockets. */
  database: z.object({ host: z.string(), user: z.string(), name: z.string() }),
  /** Folder with the rival's packages in `node_modules`; empty for one that has none. */
  packages: z.string(),
});

export type RivalOrder = z.infer<typeof rivalOrder>;

/** Answer to an order: the time that the push took, or why it failed. */
export const rivalAnswer = z.union([
  z.object({ seconds: z.number() }),
  z.object({ error: z.string() }),
]);
export type RivalAnswer = z.infer<typeof rivalAnswer>;

/** Returns the token of device `number` (gateway/arrivals.ts). */
export const tokenOf = (number: number): string =>
  createHash('sha256').update(String(number)).digest('hex').slice(0, 56) +
  number.toString(16).padStart(8, '0');

/** Returns the tokens of devices 1 to `devices`. */
export const tokensOf = (devices: number): string[] =>
  Array.from({ length: devices }, (_, i) => tokenOf(i + 1));

/** What a rival in Node does. */
interface NodeRival {
  name: string;
  /** Carries out an order; resolves with the seconds of the push alone, without its preparation. */
  push(order: RivalOrder): Promise<number>;
  close(): unknown;
}

/** Runs a rival as a process: carries out the orders of the benchmark that started it. */
export const runRival = ({ name, push, close }: NodeRival): void =>
  answerBenchmark({
    name,
    question: rivalOrder,
    answer: async (order) => ({ seconds: await push(order) }),
    ready: { ready: true },
    close,
  });
