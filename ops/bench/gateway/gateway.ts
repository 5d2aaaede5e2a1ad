import { z } from 'zod';
import type { Environment } from '../../../shared/config/config.ts';
import { Supervised } from '../../local/supervised.ts';

/** Highest device number for which the gateway records the time of the first request. */
export const firstDevices = 4096;

const observation = z.object({
  /** Requests since the last `forget`. */
  total: z.number(),
  /** Distinct devices among them, and repeated requests to the same device. */
  distinct: z.number(),
  repeats: z.number(),
  /** First and last arrival, milliseconds since 1970; 0 when there was none. */
  firstMs: z.number(),
  lastMs: z.number(),
  /** Arrivals by the hundredth of a second, from the first on. */
  buckets: z.array(z.number()),
  firstSeenMs: z.array(z.tuple([z.number(), z.number()])),
  /** Longest stall of the gateway process; arrivals during a stall are counted after it. */
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

/** Gateway process of a benchmark (gateway-process.ts). */
export interface BenchGateway {
  apns: z.infer<typeof apns>;
  readonly pid: number | undefined;
  observe(): Promise<Observation>;
  /** Resets the counters and returns their last values. */
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
        const parsed = answer.parse(message);
        waiting.get(parsed.answer)?.(parsed.observation);
        waiting.delete(parsed.answer);
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
  if (!access) throw new Error('the gateway did not report its address');
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
