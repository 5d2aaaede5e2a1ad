/**
 * Runs the devices of the channel benchmark in a separate process, so that their memory and CPU
 * time are not counted for the api. The benchmark starts this process with an IPC channel.
 */
import { connectDevices, type SimulatedDevices } from '../../sandbox/devices/devices.ts';
import { answerBenchmark } from '../harness/question-process.ts';
import { type DevicesSeen, devicesOrder, type Fleet } from './devices.ts';
import { RawDevice, Recipients } from './raw-device.ts';

/**
 * Reconnect delay. Real devices wait 5 s. These devices wait less, so that all of them reach the
 * api at once.
 */
const reconnectAfterMs = 500;

let devices: SimulatedDevices | undefined;
let firstMs = 0;
let lastMs = 0;
let forgotten = { received: 0, repeated: 0, acked: 0, lost: 0 };

function onMessages(): void {
  lastMs = performance.timeOrigin + performance.now();
  if (firstMs === 0) firstMs = lastMs;
}

async function connect({ apiUrl, appId, count }: Fleet): Promise<void> {
  const shared = { recipients: new Recipients(count), onMessages };
  devices = await connectDevices({
    apiUrl,
    appId,
    installationIds: Array.from({ length: count }, (_, i) => `bench-${i}`),
    reconnectAfterMs,
    createDevice: (fleet, installationId, index) =>
      new RawDevice(fleet, shared, { installationId, index }),
  });
}

function observe(): DevicesSeen {
  const {
    connected = 0,
    received = 0,
    repeated = 0,
    acked = 0,
    lost = 0,
  } = devices?.counters ?? {};
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

answerBenchmark({
  name: 'devices',
  question: devicesOrder,
  async answer(order) {
    if ('connect' in order) await connect(order.connect);
    const seen = observe();
    if ('forget' in order && order.forget) forget();
    return seen;
  },
  ready: { ready: true },
  close: () => devices?.close(),
});
