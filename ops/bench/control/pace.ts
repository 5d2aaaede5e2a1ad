import { type Observation, secondsOf } from '../gateway/gateway.ts';
import { type Figure, readArgs, type Setup } from '../harness/arguments.ts';
import { withBench, writeInstallations } from '../harness/bench-service.ts';
import { createApp, pushAndWait } from '../harness/client.ts';

const defaultDevices = 30_000;
const defaultRate = 2000;
const defaultDispatchers = 2;

/**
 * Measures pushes to `args[0]` devices (30,000) with a `flow_control` of `args[1]` (2,000) by two
 * dispatcher processes. Prints the most and the fewest requests per second at a quick gateway, for
 * the first push of fresh processes and for a later push. A second may begin at any hundredth of a
 * second.
 */
export function benchPace(args: string[], log: (line: string) => void): Promise<Figure[]> {
  const { numbers, setups } = readArgs(args);
  const [devices = defaultDevices, rate = defaultRate] = numbers;
  if (!(devices / rate >= 3)) throw new Error('the push has to take at least three seconds');
  const setup: Setup = { dispatchers: defaultDispatchers, gateway: 'quick', ...setups[0] };
  return withBench(log, setup, async (bench) => {
    const app = await createApp(bench);
    await writeInstallations(bench, app.appId, devices);
    const paced = async (name: string) => {
      log(`${name}: ${devices} devices, ${rate} per second`);
      await bench.gateway.forget();
      const { seconds } = await pushAndWait(bench, app, { flow_control: rate });
      return figures(name, await bench.gateway.observe(), { rate, seconds });
    };
    const cold = await paced('fresh processes');
    log('a push without a pace');
    const { seconds: unpaced } = await pushAndWait(bench, app, {});
    return [
      { name: 'devices', value: devices, unit: 'recipients' },
      { name: 'without a pace', value: devices / unpaced, unit: 'recipients/s' },
      { name: 'rate asked for', value: rate, unit: 'recipients/s' },
      ...cold,
      ...(await paced('warm processes')),
    ];
  });
}

function figures(
  name: string,
  { buckets, repeats, stallMs }: Observation,
  { rate, seconds }: { rate: number; seconds: number },
): Figure[] {
  const relative = secondsOf(buckets)
    .map((count) => count / rate)
    .sort((a, b) => a - b);
  const at = (part: number) => relative[Math.floor((relative.length - 1) * part)] ?? Number.NaN;
  return [
    { name: `${name}: answer to done`, value: seconds, unit: 's' },
    { name: `${name}: largest second`, value: at(1), unit: '× rate' },
    { name: `${name}: median second`, value: at(0.5), unit: '× rate' },
    { name: `${name}: smallest second`, value: at(0), unit: '× rate' },
    { name: `${name}: sent twice`, value: repeats, unit: 'recipients' },
    { name: `${name}: longest stall of the gateway`, value: stallMs, unit: 'ms' },
  ];
}
