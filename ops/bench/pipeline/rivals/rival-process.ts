import { createHash } from 'node:crypto';
import { z } from 'zod';
import { answerBenchmark } from '../../harness/question-process.ts';

/**
 * Order to another push program (a rival): send one push to devices 1 to `devices` of the gateway
 * at `url`.
 */
export const rivalOrder = z.object({
  url: z.string(),
  /** PEM of the authority that signed the gateway's certificate. */
  ca: z.string(),
  topic: z.string(),
  devices: z.number(),
  /** Database for a rival that stores devices. `host` is a directory of sockets. */
  database: z.object({ host: z.string(), user: z.string(), name: z.string() }),
  /**
   * Folder that contains `node_modules` with the rival's packages. Empty if the rival has no
   * packages.
   */
  packages: z.string(),
});

export type RivalOrder = z.infer<typeof rivalOrder>;

/** Answer to an order: the duration of the push, or the reason of its failure. */
export const rivalAnswer = z.union([
  z.object({ seconds: z.number() }),
  z.object({ error: z.string() }),
]);
export type RivalAnswer = z.infer<typeof rivalAnswer>;

/**
 * Returns the token of a device. Its last eight digits are the device number (gateway/gateway.ts).
 */
export const tokenOf = (number: number): string =>
  createHash('sha256').update(String(number)).digest('hex').slice(0, 56) +
  number.toString(16).padStart(8, '0');

/** Returns the tokens of devices 1 to `devices`. */
export const tokensOf = (devices: number): string[] =>
  Array.from({ length: devices }, (_, i) => tokenOf(i + 1));

/** Rival that runs in Node. */
interface NodeRival {
  name: string;
  /**
   * Sends the push of an order. Resolves with the seconds that the push took, without its
   * preparation.
   */
  push(order: RivalOrder): Promise<number>;
  close(): unknown;
}

/** Runs a rival as a process. Carries out the orders of the benchmark that started the process. */
export const runRival = ({ name, push, close }: NodeRival): void =>
  answerBenchmark({
    name,
    question: rivalOrder,
    answer: async (order) => ({ seconds: await push(order) }),
    ready: { ready: true },
    close,
  });
