/**
 * Process of the sandbox for `npm start` and benchmarks: gateways on loopback, and simulated
 * devices. Only a supervisor starts it. Its state in the data directory contains the keys that the
 * gateways accept.
 */
import { join } from 'node:path';
import { z } from 'zod';
import { currentEnvironment } from '../../shared/config/config.ts';
import { ClosingStack, closeOnSignals, notifySupervisor } from '../../shared/process/lifecycle.ts';
import { createLogger } from '../../shared/process/logging.ts';
import { returnMemoryWhenIdle } from '../../shared/process/memory.ts';
import { startPage } from './all/page.ts';
import { keepSandboxSecrets, startGateways } from './all/start.ts';
import { connectDevices, type SimulatedDevices } from './devices/devices.ts';

process.title = 'carillon sandbox';

const environment = z.object({
  CARILLON_DATA_DIR: z.string(),
  LOG_LEVEL: z.string().default('info'),
  /** `none` is only used by benchmarks. */
  SANDBOX_CHECKS: z.enum(['all', 'none']).default('all'),
});

const devicesCommand = z.object({
  devices: z.object({
    apiUrl: z.string(),
    appId: z.string(),
    installationIds: z.array(z.string()),
  }),
});

const env = environment.parse(currentEnvironment());
const log = createLogger({ level: env.LOG_LEVEL, name: 'sandbox' });
const stack = new ClosingStack(log);
closeOnSignals({ log, stack });
const secrets = await keepSandboxSecrets(join(env.CARILLON_DATA_DIR, 'sandbox.json'));
const sandbox = await startGateways({ secrets, checks: env.SANDBOX_CHECKS });
stack.add('gateways', () => sandbox.close());
const page = await startPage(sandbox.instances);
stack.add('page', () => page.close());

let devices: SimulatedDevices | undefined;
stack.add('devices', () => devices?.close());
process.on('message', (message) => {
  const parsed = devicesCommand.safeParse(message);
  if (parsed.success) void replaceDevices(parsed.data.devices);
});

async function replaceDevices(order: z.infer<typeof devicesCommand>['devices']): Promise<void> {
  await devices?.close();
  try {
    devices = await connectDevices(order);
  } catch (error) {
    log.warn({ err: error }, 'connecting the simulated devices failed');
  }
  notifySupervisor({ connected: devices?.counters.connected ?? 0 });
}

returnMemoryWhenIdle();
notifySupervisor({
  page: page.url,
  profiles: sandbox.instances.map(({ connector, credentials }) => ({ connector, credentials })),
});
