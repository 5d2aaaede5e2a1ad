/**
 * The sandbox of `npm start`: stand-in gateways on loopback and simulated devices, in a process of its own.
 * Started by the supervisor only; its state (keys that the gateways accept) lies in the data directory.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { ClosingStack, closeOnSignals, tellSupervisor } from '../../shared/lifecycle.ts';
import { createLogger } from '../../shared/logging.ts';
import { createApnsCredentials, startApnsGateway } from './apns/server.ts';
import { openCertificateAuthority } from './certificates.ts';
import { connectDevices, type SimulatedDevices } from './devices.ts';

process.title = 'carillon sandbox';

const environment = z.object({ CARILLON_DATA_DIR: z.string(), LOG_LEVEL: z.string().default('info') });

const kept = z.object({
  apns: z.object({
    teamId: z.string(),
    keyId: z.string(),
    privateKey: z.string(),
    publicKey: z.string(),
    topics: z.array(z.string()),
  }),
  authority: z.object({ certificate: z.string(), privateKey: z.string() }),
});

const order = z.object({
  devices: z.object({ apiUrl: z.string(), appId: z.string(), installationIds: z.array(z.string()) }),
});

/** Keys and CA of this data directory, made on the first start. */
async function readKept(file: string): Promise<z.infer<typeof kept>> {
  const text = await readFile(file, 'utf8').catch(() => undefined);
  if (text !== undefined) return kept.parse(JSON.parse(text));
  const { certificate, privateKey } = await openCertificateAuthority();
  const made = { apns: createApnsCredentials(), authority: { certificate, privateKey } };
  await writeFile(file, JSON.stringify(made), { mode: 0o600 });
  return made;
}

const env = environment.parse(process.env);
const log = createLogger({ level: env.LOG_LEVEL, name: 'sandbox' });
const stack = new ClosingStack(log);
closeOnSignals({ log, stack });
const state = await readKept(join(env.CARILLON_DATA_DIR, 'sandbox.json'));
const authority = await openCertificateAuthority(state.authority);
const apns = await startApnsGateway({ authority, keys: [state.apns] });
stack.add('apns gateway', () => apns.close());

let devices: SimulatedDevices | undefined;
stack.add('devices', () => devices?.close());
process.on('message', (message) => {
  const parsed = order.safeParse(message);
  if (parsed.success) void replaceDevices(parsed.data.devices);
});

async function replaceDevices(wanted: z.infer<typeof order>['devices']): Promise<void> {
  await devices?.close();
  try {
    devices = await connectDevices(wanted);
  } catch (error) {
    log.warn({ err: error }, 'the simulated devices could not connect');
  }
  tellSupervisor({ connected: devices?.counters.connected ?? 0 });
}

const { publicKey: _, ...credentials } = state.apns;
tellSupervisor({ apns: { url: apns.url, ca: apns.ca, ...credentials } });
