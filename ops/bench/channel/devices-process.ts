/**
 * Devices of the channel benchmark, in a process of their own, so that their memory and CPU time do not count as the
 * api's. Started by the benchmark with an IPC channel.
 */
import { z } from 'zod';
import { ClosingStack, closeOnSignals, notifySupervisor } from '../../../shared/process/lifecycle.ts';
import { createLogger } from '../../../shared/process/logging.ts';
import { type DevicesSeen, deviceIds } from './devices.ts';
import { RawDevices } from './raw-devices.ts';

process.title = 'carillon bench devices';

const order = z.union([
  z.object({
    ask: z.number(),
    connect: z.object({ apiUrl: z.string(), appId: z.string(), count: z.number() }),
  }),
  z.object({ ask: z.number(), forget: z.boolean() }),
]);

/** Reconnect delay. Real devices wait 5 s; these are quicker, so that all reach the api at once. */
const reconnectAfterMs = 500;

const log = createLogger({ level: 'warn', name: 'bench devices' });
const stack = new ClosingStack(log);
closeOnSignals({ log, stack });

let devices: RawDevices | undefined;
let firstMs = 0;
let lastMs = 0;
let forgotten = { received: 0, repeated: 0, acked: 0, lost: 0 };

function onMessages(): void {
  lastMs = performance.timeOrigin + performance.now();
  if (firstMs === 0) firstMs = lastMs;
}

function observe(): DevicesSeen {
  const { connected = 0, received = 0, repeated = 0, acked = 0, lost = 0 } = devices?.counters ?? {};
  return {
    connected,
    received: received - forgotten.received,
    repeated: repeated - forgotten.repeated,
    acked: acked - forgotten.acked,
    lost: lost - forgotten.lost,
    closeCodes: [...new Set(devices?.closeCodes)],
    firstMs,
    lastMs,
  };
}

function forget(): void {
  firstMs = 0;
  lastMs = 0;
  forgotten = { ...forgotten, ...devices?.counters };
}

process.on('message', async (message) => {
  const data = order.parse(message);
  try {
    if ('connect' in data) {
      const { count, ...rest } = data.connect;
      const installationIds = deviceIds(count);
      devices = new RawDevices({ ...rest, installationIds, reconnectAfterMs, onMessages });
      await devices.connect();
    }
    notifySupervisor({ answer: data.ask, seen: observe() });
    if ('forget' in data && data.forget) forget();
  } catch (error) {
    notifySupervisor({ answer: data.ask, error: String(error) });
  }
});

notifySupervisor({ ready: true });
