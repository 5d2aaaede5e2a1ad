import { type ApnsGateway, createApnsCredentials, startApnsGateway } from '../sandbox/apns/server.ts';
import { createApp, pushAndWait, withBench, writeInstallations } from './bench-service.ts';
import type { Figure } from './figure.ts';

const defaultDevices = 30_000;
const defaultRate = 2000;
const sampleMs = 5;
const dispatchers = 2;

interface Sample {
  atMs: number;
  total: number;
}

/**
 * One push to `args[0]` devices (30,000) with `flow_control` `args[1]` (2,000) by two dispatcher processes:
 * how much the fullest and the emptiest second of it carried, by what arrived at a gateway in this process.
 */
export async function benchPace(args: string[], log: (line: string) => void): Promise<Figure[]> {
  const [devices = defaultDevices, rate = defaultRate] = args.map(Number);
  if (!(devices / rate >= 3)) throw new Error('the push has to take three seconds at least');
  const credentials = createApnsCredentials();
  const gateway = await startApnsGateway({ keys: [credentials] });
  try {
    return await withBench(log, { dispatchers }, async (bench) => {
      const apns = { ...credentials, url: gateway.url, ca: gateway.ca };
      const own = { ...bench, sandbox: { ...bench.sandbox, apns } };
      const app = await createApp(own);
      await writeInstallations(own, app.appId, devices);
      log('a first push to all warms up the processes');
      await pushAndWait(bench, app, {});
      log(`sending to ${devices} devices, ${rate} per second`);
      gateway.forget();
      const stop = sample(gateway);
      const { seconds } = await pushAndWait(bench, app, { flow_control: rate });
      return figures(stop(), { devices, rate, seconds });
    });
  } finally {
    await gateway.close();
  }
}

/** Writes down how much has arrived, until it is told to stop. */
function sample(gateway: ApnsGateway): () => Sample[] {
  const samples: Sample[] = [];
  const timer = setInterval(() => samples.push({ atMs: performance.now(), total: gateway.total }), sampleMs);
  return () => {
    clearInterval(timer);
    return samples;
  };
}

/** What arrived in every second that begins at a sample, from the first arrival to the last. */
function secondsOf(samples: Sample[]): number[] {
  const first = samples.findLastIndex(({ total }) => total === 0);
  const last = samples.findIndex(({ total }) => total === samples.at(-1)?.total);
  const sending = samples.slice(Math.max(0, first), last + 1);
  const counts: number[] = [];
  let end = 0;
  for (const start of sending) {
    while ((sending[end]?.atMs ?? Number.POSITIVE_INFINITY) < start.atMs + 1000) end += 1;
    const after = sending[end];
    if (!after) break;
    // A late sample makes a window longer than a second: what it holds is brought back to one.
    counts.push(((after.total - start.total) * 1000) / (after.atMs - start.atMs));
  }
  return counts;
}

function figures(
  samples: Sample[],
  { devices, rate, seconds }: { devices: number; rate: number; seconds: number },
): Figure[] {
  const relative = secondsOf(samples)
    .map((count) => count / rate)
    .sort((a, b) => a - b);
  const at = (part: number) => relative[Math.floor((relative.length - 1) * part)] ?? Number.NaN;
  return [
    { name: 'devices', value: devices, unit: 'recipients' },
    { name: 'rate asked for', value: rate, unit: 'recipients/s' },
    { name: 'answer to done', value: seconds, unit: 's' },
    { name: 'largest second', value: at(1), unit: '× rate' },
    { name: 'median second', value: at(0.5), unit: '× rate' },
    { name: 'smallest second', value: at(0), unit: '× rate' },
  ];
}
