/** Gateways of a benchmark of connectors: those of the sandbox, with their checks or without. */
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
  page: z.string(),
  profiles: z.array(z.object({ connector: z.string(), credentials: z.record(z.string(), z.unknown()) })),
});
const summary = z.record(
  z.string(),
  z.object({ requests: z.number(), accepted: z.number(), devices: z.number(), violations: z.number() }),
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
  const checks = kind === 'quick' ? 'none' : 'all';
  let first: unknown;
  const child = new Supervised({
    name: `bench ${kind} gateways`,
    file: 'ops/sandbox/main.ts',
    env: { ...currentEnvironment(), CARILLON_DATA_DIR: dataDir, LOG_LEVEL: 'warn', SANDBOX_CHECKS: checks },
    log,
    onMessage: (message) => {
      first ??= message;
    },
  });
  try {
    await child.start();
    const { page, profiles } = info.parse(first);
    const verify = (connector: ConnectorId, load: SentLoad) => verifyLoad(kind, page, connector, load);
    return await work({ profiles, use: () => processUse(child.pid), verify });
  } finally {
    await child.stop(stopMs);
    await rm(dataDir, { recursive: true, force: true });
  }
}

/** Checks that a strict gateway accepted each recipient once, a quick one as many requests as the recipients need. */
async function verifyLoad(
  kind: GatewayKind,
  page: string,
  connector: ConnectorId,
  { recipients, requests }: SentLoad,
): Promise<void> {
  const reply = await fetch(`${page}/summary.json`);
  const seen = summary.parse(await reply.json())[connector];
  const isStrict = seen?.accepted === recipients && seen.devices === recipients && seen.violations === 0;
  if (kind === 'strict' ? isStrict : seen?.requests === requests) return;
  const sent = `${recipients} recipients in ${requests} requests`;
  throw new Error(`${connector}: ${sent}, but the gateway saw ${JSON.stringify(seen)}`);
}
