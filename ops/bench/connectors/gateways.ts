/** Gateways of a benchmark of connectors: the strict ones of the sandbox, or quick ones that check nothing. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { currentEnvironment } from '../../../shared/config/config.ts';
import type { ConnectorId } from '../../../shared/domain/labels.ts';
import { Supervised } from '../../local/supervised.ts';
import type { GatewayKind } from '../harness/arguments.ts';
import { type ProcessUse, processUse } from '../harness/process-use.ts';

const stopMs = 3000;

const info = z.object({
  /** Page of the sandbox, with what its gateways saw. */
  page: z.string().optional(),
  profiles: z.array(z.object({ connector: z.string(), credentials: z.record(z.string(), z.unknown()) })),
});
const counts = z.object({ requests: z.record(z.string(), z.number()) });
const summary = z.record(
  z.string(),
  z.object({ accepted: z.number(), devices: z.number(), violations: z.number() }),
);

/** What a connector has sent since the gateways were started. */
export interface SentLoad {
  recipients: number;
  requests: number;
}

/** Running gateways of all connectors, in a process of their own. */
export interface BenchGateways {
  profiles: z.infer<typeof info>['profiles'];
  use(): Promise<ProcessUse | undefined>;
  /** Throws unless the gateway of a connector saw this load. */
  verify(connector: ConnectorId, load: SentLoad): Promise<void>;
}

/** Starts the gateways, and stops them after `work`. */
export async function withGateways<T>(
  kind: GatewayKind,
  log: (line: string) => void,
  work: (gateways: BenchGateways) => Promise<T>,
): Promise<T> {
  const dataDir = await mkdtemp(join(tmpdir(), 'carillon-bench-'));
  const messages: Record<string, unknown>[] = [];
  let wake: () => void = () => undefined;
  const child = new Supervised({
    name: `bench ${kind} gateways`,
    file: kind === 'quick' ? 'ops/bench/connectors/quick-gateway.ts' : 'ops/sandbox/main.ts',
    env: { ...currentEnvironment(), CARILLON_DATA_DIR: dataDir, LOG_LEVEL: 'warn' },
    log,
    onMessage: (message) => {
      messages.push(message);
      wake();
    },
  });
  const askCounts = async () => {
    messages.length = 0;
    const answered = new Promise<void>((resolve) => {
      wake = resolve;
    });
    child.send({ ask: 'counts' });
    await answered;
    return counts.parse(messages[0]).requests;
  };
  try {
    await child.start();
    const { page, profiles } = info.parse(messages[0]);
    const verify = async (connector: ConnectorId, load: SentLoad) =>
      page === undefined
        ? verifyRequests(connector, load, await askCounts())
        : verifySummary(connector, load, page);
    return await work({ profiles, use: () => processUse(child.pid), verify });
  } finally {
    await child.stop(stopMs);
    await rm(dataDir, { recursive: true, force: true });
  }
}

/** Checks that a quick gateway saw as many requests as the recipients need. */
function verifyRequests(connector: ConnectorId, load: SentLoad, requests: Record<string, number>): void {
  if (requests[connector] !== load.requests)
    throw new Error(`${connector}: ${load.requests} requests, but the gateway saw ${requests[connector]}`);
}

/** Checks that a strict gateway accepted each recipient once. */
async function verifySummary(connector: ConnectorId, { recipients }: SentLoad, page: string): Promise<void> {
  const reply = await fetch(`${page}/summary.json`);
  const seen = summary.parse(await reply.json())[connector];
  if (seen?.accepted !== recipients || seen.devices !== recipients || seen.violations !== 0)
    throw new Error(`${connector}: ${recipients} recipients, but the gateway saw ${JSON.stringify(seen)}`);
}
