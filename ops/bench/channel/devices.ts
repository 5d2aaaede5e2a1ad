import { z } from 'zod';
import type { Environment } from '../../../shared/config/config.ts';
import { Supervised } from '../../local/supervised.ts';

const devicesSeen = z.object({
  /** Devices logged in now. */
  connected: z.number(),
  /** Counts since the last `forget`: messages (once per device), repeats, acknowledgements, lost connections. */
  received: z.number(),
  repeated: z.number(),
  acked: z.number(),
  lost: z.number(),
  /** For the last thousand lost connections. */
  closeCodes: z.array(z.number()),
  /** Times of the first and last message since the last `forget`, in milliseconds since 1970; 0 without one. */
  firstMs: z.number(),
  lastMs: z.number(),
});
export type DevicesSeen = z.infer<typeof devicesSeen>;

const answer = z.object({ answer: z.number(), seen: devicesSeen.optional(), error: z.string().optional() });

export const deviceIds = (count: number): string[] => Array.from({ length: count }, (_, i) => `bench-${i}`);

export interface Fleet {
  apiUrl: string;
  appId: string;
  count: number;
}

/** Process with the devices of a benchmark (devices-process.ts). */
export interface BenchDevices {
  readonly pid: number | undefined;
  /** Resolves when all are logged in. Devices reconnect by themselves. */
  connect(fleet: Fleet): Promise<DevicesSeen>;
  observe(): Promise<DevicesSeen>;
  /** Returns the counts and resets them. */
  forget(): Promise<DevicesSeen>;
  stop(): Promise<void>;
}

const stopMs = 1000;

/** Starts the process of the devices, without connecting any. */
export async function startBenchDevices(
  env: Environment,
  log: (line: string) => void,
): Promise<BenchDevices> {
  const waiting = new Map<number, (told: z.infer<typeof answer>) => void>();
  let asked = 0;
  const child: Supervised = new Supervised({
    name: 'bench devices',
    file: 'ops/bench/channel/devices-process.ts',
    env,
    log,
    onMessage: (message) => {
      if (!('answer' in message)) return;
      const told = answer.parse(message);
      waiting.get(told.answer)?.(told);
      waiting.delete(told.answer);
    },
  });
  const ask = (order: object) =>
    new Promise<DevicesSeen>((resolve, reject) => {
      asked += 1;
      waiting.set(asked, ({ seen, error }) => (seen ? resolve(seen) : reject(new Error(error))));
      child.send({ ask: asked, ...order });
    });
  await child.start();
  return {
    get pid() {
      return child.pid;
    },
    connect: (fleet) => ask({ connect: fleet }),
    observe: () => ask({ forget: false }),
    forget: () => ask({ forget: true }),
    stop: () => child.stop(stopMs),
  };
}
