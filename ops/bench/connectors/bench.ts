import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import type {
  AttemptResult,
  PushMessage,
  Recipient,
  Sender,
} from '../../../connectors/contract/connector.ts';
import { checkCredentials, connectors } from '../../../connectors/registry.ts';
import { hourMs, systemClock } from '../../../shared/clock.ts';
import { currentEnvironment } from '../../../shared/config/config.ts';
import { type ConnectorId, displayName, installationVendor } from '../../../shared/domain/labels.ts';
import { Supervised } from '../../local/supervised.ts';
import { deviceTokenOf, sandboxConnectors } from '../../sandbox/all/definitions.ts';
import { readArgs } from '../harness/arguments.ts';
import type { Figure } from '../harness/figure.ts';
import { type ProcessUse, processUse } from '../harness/process-use.ts';
import { memoryContext } from './memory.ts';

const defaultRecipients = 20_000;
/** Size of a dispatcher's batches (develop/architecture.md#batches), and number of concurrent batches per thread. */
const batchSize = 1000;
const batchesAtOnce = 4;
/** Batches before the measured ones at most, to open connections, fetch access tokens and compile code. */
const maxWarmUp = 8;
const stopMs = 3000;

const info = z.object({
  page: z.string(),
  profiles: z.array(z.object({ connector: z.string(), credentials: z.record(z.string(), z.unknown()) })),
});
const summary = z.record(
  z.string(),
  z.object({ accepted: z.number(), devices: z.number(), violations: z.number() }),
);

/** Sandbox process of a benchmark. */
interface Sandbox extends z.infer<typeof info> {
  use(): Promise<ProcessUse | undefined>;
}

/**
 * Sends one push with each connector alone, without database and dispatcher, to `args[0]` recipients (20,000 by default) of
 * its sandbox gateway, a separate process on this machine. Fails unless the gateway accepts each recipient once.
 */
export async function benchConnectors(
  args: string[],
  log: (line: string) => void,
  only: readonly ConnectorId[] = sandboxConnectors,
): Promise<Figure[]> {
  const { numbers } = readArgs(args);
  const batches = Math.max(1, Math.round((numbers[0] ?? defaultRecipients) / batchSize));
  return withSandbox(log, async (sandbox) => {
    const figures: Figure[] = [];
    for (const connector of only) {
      log(`${connector} (${displayName(connector)}): ${batches * batchSize} recipients`);
      figures.push(...(await measure(sandbox, connector, batches)));
    }
    return figures;
  });
}

async function withSandbox<T>(
  log: (line: string) => void,
  work: (sandbox: Sandbox) => Promise<T>,
): Promise<T> {
  const dataDir = await mkdtemp(join(tmpdir(), 'carillon-bench-'));
  const messages: z.infer<typeof info>[] = [];
  const child = new Supervised({
    name: 'bench sandbox',
    file: 'ops/sandbox/main.ts',
    env: { ...currentEnvironment(), CARILLON_DATA_DIR: dataDir, LOG_LEVEL: 'warn' },
    log,
    onMessage: (message) => void messages.push(info.parse(message)),
  });
  try {
    await child.start();
    const [ready] = messages;
    if (!ready) throw new Error('the sandbox did not report its address');
    return await work({ ...ready, use: () => processUse(child.pid) });
  } finally {
    await child.stop(stopMs);
    await rm(dataDir, { recursive: true, force: true });
  }
}

async function measure(sandbox: Sandbox, connector: ConnectorId, batches: number): Promise<Figure[]> {
  const sender = open(sandbox, connector);
  try {
    const warmUpBatches = Math.min(batches, maxWarmUp);
    const warmUp = batchesOf(connector, 0, warmUpBatches);
    const measured = batchesOf(connector, warmUpBatches, batches);
    await send(sender, aMessage('WarmUp0000000001'), warmUp);
    const [gatewayBefore, ownBefore] = [await sandbox.use(), process.cpuUsage()];
    const startedAtMs = performance.now();
    await send(sender, aMessage('Measured00000001'), measured);
    const seconds = (performance.now() - startedAtMs) / 1000;
    const own = process.cpuUsage(ownBefore);
    const gatewayAfter = await sandbox.use();
    await verify(sandbox, connector, (warmUpBatches + batches) * batchSize);
    const recipients = batches * batchSize;
    const gatewaySeconds =
      (gatewayAfter?.cpuSeconds ?? Number.NaN) - (gatewayBefore?.cpuSeconds ?? Number.NaN);
    return [
      { name: `${connector}: throughput`, value: recipients / seconds, unit: 'recipients/s' },
      {
        name: `${connector}: connector CPU`,
        value: (own.user + own.system) / 1e6 / (recipients / 1000),
        unit: 'CPU s per 1,000',
      },
      {
        name: `${connector}: gateway CPU`,
        value: gatewaySeconds / (recipients / 1000),
        unit: 'CPU s per 1,000',
      },
    ];
  } finally {
    await sender.close();
  }
}

function open({ profiles }: Sandbox, id: ConnectorId): Sender {
  const connector = connectors.get(id);
  const checked = checkCredentials(id, profiles.find((profile) => profile.connector === id)?.credentials);
  if (!connector || !checked.ok)
    throw new Error(`${id} cannot be sent to: ${checked.ok ? 'unknown' : checked.error}`);
  return connector.open(checked.credentials, memoryContext());
}

function aMessage(pushId: string): PushMessage {
  const createdAtMs = systemClock.now();
  // vivo delivers messages of this category at any hour.
  const data = { alert: 'Your order has been shipped', title: 'Good news', vivo: { category: 'ORDER' } };
  return { objectId: pushId, data, prod: 'prod', createdAtMs, expiresAtMs: createdAtMs + hourMs };
}

function batchesOf(connector: ConnectorId, first: number, count: number): Recipient[][] {
  return Array.from({ length: count }, (_, batch) =>
    Array.from({ length: batchSize }, (__, index) => {
      const n = (first + batch) * batchSize + index;
      return {
        index,
        id: String(n),
        deviceToken: deviceTokenOf(connector, n),
        deviceType: installationVendor(connector) === null ? 'ios' : 'android',
        vendor: installationVendor(connector),
        topic: 'com.example.app',
        teamId: null,
        badge: null,
      };
    }),
  );
}

/** Sends all batches, a few at a time. Throws the result of the first recipient that was not accepted. */
async function send(sender: Sender, message: PushMessage, batches: readonly Recipient[][]): Promise<void> {
  const { signal } = new AbortController();
  const waiting = [...batches];
  let failure: AttemptResult | undefined;
  const report = (_: number, attempt: AttemptResult) => {
    if (attempt.kind !== 'sent') failure ??= attempt;
  };
  const work = async () => {
    for (let recipients = waiting.shift(); recipients; recipients = waiting.shift())
      await sender.send({ pushId: 1, message, recipients, report, signal });
  };
  await Promise.all(Array.from({ length: batchesAtOnce }, work));
  if (failure) throw new Error(`a recipient was not sent to: ${JSON.stringify(failure)}`);
}

async function verify({ page }: Sandbox, connector: ConnectorId, recipients: number): Promise<void> {
  const reply = await fetch(`${page}/summary.json`);
  const seen = summary.parse(await reply.json())[connector];
  if (seen?.accepted !== recipients || seen.devices !== recipients || seen.violations !== 0)
    throw new Error(`${connector}: ${recipients} recipients, but the gateway saw ${JSON.stringify(seen)}`);
}
