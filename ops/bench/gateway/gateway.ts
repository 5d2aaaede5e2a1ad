import { z } from 'zod';
import type { Environment } from '../../../shared/config/config.ts';
import { AskedProcess } from '../harness/asked-process.ts';

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

/** Starts the gateway; resolves when it listens. */
export async function startBenchGateway(
  env: Environment,
  log: (line: string) => void,
): Promise<BenchGateway> {
  const file = 'ops/bench/gateway/gateway-process.ts';
  const gateway = new AskedProcess({ name: 'bench gateway', file, env, log });
  const ask = (forget: boolean) => gateway.ask({ forget }, observation);
  const access = apns.parse(await gateway.start());
  return {
    apns: access,
    get pid() {
      return gateway.pid;
    },
    observe: () => ask(false),
    forget: () => ask(true),
    stop: () => gateway.stop(),
  };
}
