import { z } from 'zod';
import type { Environment } from '../../../shared/config/config.ts';
import { AskedProcess } from '../harness/asked-process.ts';

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

const fleet = z.object({ apiUrl: z.string(), appId: z.string(), count: z.number() });
export type Fleet = z.infer<typeof fleet>;

/** Question to the process; the answer is what its devices saw. */
export const devicesOrder = z.union([z.object({ connect: fleet }), z.object({ forget: z.boolean() })]);

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

/** Starts the process of the devices, without connecting any. */
export async function startBenchDevices(
  env: Environment,
  log: (line: string) => void,
): Promise<BenchDevices> {
  const file = 'ops/bench/channel/devices-process.ts';
  const child = new AskedProcess({ name: 'bench devices', file, env, log });
  const ask = (order: z.infer<typeof devicesOrder>) => child.ask(order, devicesSeen);
  await child.start();
  return {
    get pid() {
      return child.pid;
    },
    connect: (fleet) => ask({ connect: fleet }),
    observe: () => ask({ forget: false }),
    forget: () => ask({ forget: true }),
    stop: () => child.stop(),
  };
}
