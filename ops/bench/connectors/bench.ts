import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import type {
  AttemptResult,
  PushMessage,
  Recipient,
  Sender,
  SenderContext,
  StoredToken,
} from '../../../connectors/contract/connector.ts';
import { checkCredentials, connectors } from '../../../connectors/registry.ts';
import { hourMs, systemClock } from '../../../shared/clock.ts';
import { currentEnvironment } from '../../../shared/config/config.ts';
import { loopbackNetworks } from '../../../shared/config/private-hosts.ts';
import {
  type ConnectorId,
  displayName,
  installationVendor,
} from '../../../shared/domain/labels.ts';
import { setPrivateHosts } from '../../../shared/http/outbound-addresses.ts';
import { Supervised } from '../../local/supervised.ts';
import { deviceTokenOf, sandboxConnectors } from '../../sandbox/all/definitions.ts';
import { type Figure, type GatewayKind, readArgs } from '../harness/arguments.ts';
import { type ProcessUse, processUse } from '../harness/process-use.ts';

// The gateways of this benchmark are the gateways of the sandbox, with or without their checks.

const stopMs = 3000;

const info = z.object({
  /** URL of the sandbox page. It reports the requests that the gateways received. */
  page: z.string(),
  profiles: z.array(
    z.object({ connector: z.string(), credentials: z.record(z.string(), z.unknown()) }),
  ),
});
const summary = z.record(
  z.string(),
  z.object({
    requests: z.number(),
    accepted: z.number(),
    devices: z.number(),
    violations: z.number(),
  }),
);

/** Number of recipients and requests that a connector has sent since the gateways started. */
interface SentLoad {
  recipients: number;
  requests: number;
}

/** Running gateways of all connectors, in a separate process. */
interface BenchGateways {
  profiles: z.infer<typeof info>['profiles'];
  use(): Promise<ProcessUse | undefined>;
  /** Throws if the gateway of a connector received a different load. */
  verify(connector: ConnectorId, load: SentLoad): Promise<void>;
}

/** Starts the gateways, calls `work`, and stops the gateways. */
async function withGateways<T>(
  kind: GatewayKind,
  log: (line: string) => void,
  work: (gateways: BenchGateways) => Promise<T>,
): Promise<T> {
  const dataDir = await mkdtemp(join(tmpdir(), 'carillon-bench-'));
  const checks = kind === 'quick' ? 'none' : 'all';
  let first: unknown;
  const child = new Supervised({
    name: `bench ${kind} gateways`,
    file: 'ops/sandbox/main.ts',
    env: {
      ...currentEnvironment(),
      CARILLON_DATA_DIR: dataDir,
      LOG_LEVEL: 'warn',
      SANDBOX_CHECKS: checks,
    },
    log,
    onMessage: (message) => {
      first ??= message;
    },
  });
  try {
    await child.start();
    const { page, profiles } = info.parse(first);
    const verify = (connector: ConnectorId, load: SentLoad) =>
      verifyLoad(kind, page, connector, load);
    return await work({ profiles, use: () => processUse(child.pid), verify });
  } finally {
    await child.stop(stopMs);
    await rm(dataDir, { recursive: true, force: true });
  }
}

/**
 * Checks the requests that a gateway received. A strict gateway must have accepted each recipient
 * once. A quick gateway must have got the number of requests that the recipients need.
 */
async function verifyLoad(
  kind: GatewayKind,
  page: string,
  connector: ConnectorId,
  { recipients, requests }: SentLoad,
): Promise<void> {
  const reply = await fetch(`${page}/summary.json`);
  const seen = summary.parse(await reply.json())[connector];
  const isStrict =
    seen?.accepted === recipients && seen.devices === recipients && seen.violations === 0;
  if (kind === 'strict' ? isStrict : seen?.requests === requests) return;
  const sent = `${recipients} recipients in ${requests} requests`;
  throw new Error(`${connector}: ${sent}, but the gateway saw ${JSON.stringify(seen)}`);
}

/**
 * Creates a sender context that keeps its state in this process, because the benchmark has no
 * database.
 */
function memoryContext(): SenderContext {
  const kept = new Map<string, StoredToken>();
  const claimed = new Set<string>();
  return {
    clock: systemClock,
    messageStore: { enqueue: async () => undefined, deleteWaiting: async () => new Set() },
    tokens: {
      read: async (credential) => kept.get(credential) ?? null,
      claim: async (credential) => {
        if (claimed.has(credential)) return false;
        claimed.add(credential);
        return true;
      },
      keep: async (credential, token) => {
        kept.set(credential, token);
        claimed.delete(credential);
      },
      release: async (credential) => void claimed.delete(credential),
    },
    quota: { closed: async () => null, close: async () => undefined },
    // As long as a real callback URL, because most messages contain the URL.
    callbackUrl: `https://push.example.com/callbacks/vendor_a/${'a'.repeat(24)}/${'s'.repeat(24)}`,
    onCall: () => undefined,
  };
}

// The gateways of this benchmark run on this machine.
setPrivateHosts(loopbackNetworks);

/**
 * Default number of recipients by kind of gateway. A strict gateway needs up to 50 µs per
 * recipient.
 */
const defaultRecipients = { strict: 20_000, quick: 500_000 };
/**
 * Size of a dispatcher's batches (develop/architecture.md#batches), and number of concurrent
 * batches per thread.
 */
const batchSize = 1000;
const batchesAtOnce = 4;
/**
 * Maximum number of batches before the measured batches. They open connections, fetch access tokens
 * and compile code.
 */
const maxWarmUp = { strict: 8, quick: 50 };
/** Maximum number of different batches. A quick gateway gets them repeatedly. */
const distinctBatches = 50;

/**
 * Sends one push with each connector alone, without database and dispatcher, to `args[0]`
 * recipients. The gateway is a separate process on this machine. By default it is strict, gets
 * 20,000 recipients and must accept each recipient once. With `--gateway quick` it checks nothing
 * and gets 500,000 recipients.
 */
export async function benchConnectors(
  args: string[],
  log: (line: string) => void,
  only: readonly ConnectorId[] = sandboxConnectors,
): Promise<Figure[]> {
  const { numbers, setups } = readArgs(args);
  const kind = setups[0]?.gateway ?? 'strict';
  const batches = Math.max(1, Math.round((numbers[0] ?? defaultRecipients[kind]) / batchSize));
  return withGateways(kind, log, async (gateways) => {
    const figures: Figure[] = [];
    for (const connector of only) {
      log(`${connector} (${displayName(connector)}): ${batches * batchSize} recipients`);
      figures.push(...(await measure(gateways, connector, { kind, batches })));
    }
    return figures;
  });
}

async function measure(
  gateways: BenchGateways,
  connector: ConnectorId,
  { batches, kind }: { batches: number; kind: GatewayKind },
): Promise<Figure[]> {
  const sender = open(gateways, connector);
  try {
    const warmUpBatches = Math.min(batches, maxWarmUp[kind]);
    const isRepeated = kind === 'quick';
    const warmUp = batchesOf(connector, { first: 0, count: warmUpBatches, isRepeated });
    const measured = batchesOf(connector, { first: warmUpBatches, count: batches, isRepeated });
    await send(sender, aMessage('WarmUp0000000001'), warmUp);
    const [gatewayBefore, ownBefore] = [await gateways.use(), process.cpuUsage()];
    const startedAtMs = performance.now();
    await send(sender, aMessage('Measured00000001'), measured);
    const seconds = (performance.now() - startedAtMs) / 1000;
    const own = process.cpuUsage(ownBefore);
    const gatewayAfter = await gateways.use();
    const sentBatches = warmUpBatches + batches;
    await gateways.verify(connector, {
      recipients: sentBatches * batchSize,
      requests: sentBatches * requestsPerBatch(connector),
    });
    const recipients = batches * batchSize;
    const gatewaySeconds =
      (gatewayAfter?.cpuSeconds ?? Number.NaN) - (gatewayBefore?.cpuSeconds ?? Number.NaN);
    const perThousand = (cpuSeconds: number) => cpuSeconds / (recipients / 1000);
    const unit = 'CPU s per 1,000';
    return [
      { name: `${connector}: throughput`, value: recipients / seconds, unit: 'recipients/s' },
      {
        name: `${connector}: connector CPU`,
        value: perThousand((own.user + own.system) / 1e6),
        unit,
      },
      { name: `${connector}: gateway CPU`, value: perThousand(gatewaySeconds), unit },
    ];
  } finally {
    await sender.close();
  }
}

const requestsPerBatch = (connector: ConnectorId): number =>
  Math.ceil(batchSize / (connectors.get(connector)?.limits.recipientsPerRequest ?? 1));

function open({ profiles }: BenchGateways, id: ConnectorId): Sender {
  const connector = connectors.get(id);
  const checked = checkCredentials(
    id,
    profiles.find((profile) => profile.connector === id)?.credentials,
  );
  if (!connector || !checked.ok)
    throw new Error(`${id} cannot be sent to: ${checked.ok ? 'unknown' : checked.error}`);
  return connector.open(checked.credentials, memoryContext());
}

function aMessage(pushId: string): PushMessage {
  const createdAtMs = systemClock.now();
  // vivo delivers messages of category `ORDER` at any hour.
  const data = {
    alert: 'Your order has been shipped',
    title: 'Good news',
    vivo: { category: 'ORDER' },
  };
  return { objectId: pushId, data, prod: 'prod', createdAtMs, expiresAtMs: createdAtMs + hourMs };
}

/**
 * Returns `count` batches, from batch number `first` on. If `isRepeated` is true, a small number of
 * batches is repeated.
 */
function batchesOf(
  connector: ConnectorId,
  { count, first, isRepeated }: { count: number; first: number; isRepeated: boolean },
): Recipient[][] {
  const distinct = isRepeated ? Math.min(count, distinctBatches) : count;
  const batches = Array.from({ length: distinct }, (_, batch) => batchOf(connector, first + batch));
  return Array.from({ length: count }, (_, batch) => batches[batch % distinct] ?? []);
}

/** Returns the device type that a connector serves. */
function deviceTypeOf(connector: ConnectorId): string {
  if (connector === 'webpush') return 'web';
  return installationVendor(connector) === null ? 'ios' : 'android';
}

function batchOf(connector: ConnectorId, batch: number): Recipient[] {
  return Array.from({ length: batchSize }, (_, index) => {
    const n = batch * batchSize + index;
    return {
      index,
      id: n,
      deviceToken: deviceTokenOf(connector, n),
      deviceType: deviceTypeOf(connector),
      vendor: installationVendor(connector),
      topic: 'com.example.app',
      teamId: null,
      badge: null,
    };
  });
}

/**
 * Sends all batches, a few at a time. If a recipient was not accepted, throws the result of the
 * first of them.
 */
async function send(
  sender: Sender,
  message: PushMessage,
  batches: readonly Recipient[][],
): Promise<void> {
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
