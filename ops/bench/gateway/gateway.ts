import { z } from 'zod';
import type { Environment } from '../../../shared/config/config.ts';
import { Supervised } from '../../local/supervised.ts';

/** Of devices up to this number the gateway knows when each was reached first. */
export const firstDevices = 4096;

const observation = z.object({
  /** Requests since the last `forget`. */
  total: z.number(),
  /** Different devices among them, and requests to devices that had one before. */
  distinct: z.number(),
  repeats: z.number(),
  /** First and last arrival, milliseconds since 1970; 0 when there was none. */
  firstMs: z.number(),
  lastMs: z.number(),
  /** Arrivals by the hundredth of a second, from the first on. */
  buckets: z.array(z.number()),
  firstSeenMs: z.array(z.tuple([z.number(), z.number()])),
  /** How long the gateway itself once did nothing: arrivals of that time are counted after it. */
  stallMs: z.number(),
});
export type Observation = z.infer<typeof observation>;

const apns = z.object({
  url: z.string(),
  ca: z.string(),
  teamId: z.string(),
  keyId: z.string(),
  privateKey: z.string(),
  topics: z.array(z.string()),
});

/** The gateway process of a benchmark (gateway-process.ts). */
export interface BenchGateway {
  apns: z.infer<typeof apns>;
  readonly pid: number | undefined;
  observe(): Promise<Observation>;
  /** Forgets what came until now; gives it once more. */
  forget(): Promise<Observation>;
  stop(): Promise<void>;
}

const stopMs = 3000;
const answer = z.object({ answer: z.number(), observation });

/** Starts the gateway; resolves when it listens. */
export async function startBenchGateway(
  env: Environment,
  log: (line: string) => void,
): Promise<BenchGateway> {
  const waiting = new Map<number, (seen: Observation) => void>();
  let asked = 0;
  let access: z.infer<typeof apns> | undefined;
  const file = 'ops/bench/gateway/gateway-process.ts';
  const gateway: Supervised = new Supervised({
    name: 'bench gateway',
    file,
    env,
    log,
    onMessage: (message) => {
      if ('apns' in message) access = apns.parse(message.apns);
      else if ('answer' in message) {
        const told = answer.parse(message);
        waiting.get(told.answer)?.(told.observation);
        waiting.delete(told.answer);
      }
    },
  });
  const ask = (forget: boolean) =>
    new Promise<Observation>((resolve) => {
      asked += 1;
      waiting.set(asked, resolve);
      gateway.send({ ask: asked, forget });
    });
  await gateway.start();
  if (!access) throw new Error('the gateway did not say where it listens');
  return {
    apns: access,
    get pid() {
      return gateway.pid;
    },
    observe: () => ask(false),
    forget: () => ask(true),
    stop: () => gateway.stop(stopMs),
  };
}
