import { randomBytes } from 'node:crypto';
import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sleep } from '../../../shared/clock.ts';
import { currentEnvironment } from '../../../shared/config/config.ts';
import { type Bench, withBench, writeInstallations } from '../../bench/harness/bench-service.ts';
import {
  type BenchApp,
  createApp,
  masterHeaders,
  push,
  pushAndWait,
  untilDone,
} from '../../bench/harness/client.ts';
import { type Cluster, type Member, reasonsAgainstCluster, startCluster } from './cluster.ts';
import { loopbackNetwork, PartitionableNetwork } from './network.ts';

// `npm run check-failover`: kills the primary of a PostgreSQL cluster under Patroni during a push.
// Checks that the service recovers without help: every device gets the push once, no accepted data
// is lost, and callers get 503 with `Retry-After` during the outage. With `-- --partition`, the
// primary is not killed but cut off from the other machines, while HAProxy and the service still
// reach it. Exits with 0 if the packages are not installed.

const devices = 200_000;
/** Number of requests at the gateway after which the primary is lost. */
const requestsBeforeLoss = 20_000;
/**
 * Maximum time without a primary: the ttl, two loops of Patroni, and the intervals of HAProxy and
 * of the probe.
 */
const maxOutageSeconds = 40;

function expectThat(condition: boolean, text: string): void {
  if (!condition) throw new Error(`not so: ${text}`);
  console.log(`ok  ${text}`);
}

async function untilSent({ gateway }: Bench, count: number): Promise<void> {
  while ((await gateway.observe()).total < count) await sleep(20);
}

/** How the cluster loses its primary. */
interface Loss {
  name: string;
  begin(primary: Member): Promise<void>;
  end(primary: Member): Promise<void>;
}

const powerLoss = (cluster: Cluster): Loss => ({
  name: 'the loss of the primary',
  begin: (primary) => cluster.kill(primary),
  end: (primary) => cluster.start(primary),
});

/**
 * Cuts the primary off until another machine leads. Checks that two machines never lead at the same
 * time.
 */
function partition(cluster: Cluster, network: PartitionableNetwork): Loss {
  let leaders: Promise<void> | undefined;
  const untilReplaced = async (old: Member) => {
    const startedAtMs = performance.now();
    const other = old === 'db1' ? 'db2' : 'db1';
    let demotedAfter: number | undefined;
    for (;;) {
      const isOther = await cluster.isPrimary(other);
      // The old primary is queried last. If it led at the first query and does not lead now, it
      // stepped down in between.
      const isOld = await cluster.isPrimary(old);
      if (isOther && isOld) throw new Error(`${old} and ${other} lead at the same time`);
      const seconds = Math.round((performance.now() - startedAtMs) / 100) / 10;
      if (!isOld) demotedAfter ??= seconds;
      if (isOther) {
        expectThat(
          true,
          `the old primary gives up after ${demotedAfter} s, the new one leads after ${seconds} s`,
        );
        return;
      }
      await sleep(20);
    }
  };
  return {
    name: 'the partition',
    async begin(primary) {
      await network.cutOff(primary);
      leaders = untilReplaced(primary);
    },
    async end(primary) {
      await leaders;
      await network.rejoin(primary);
    },
  };
}

/**
 * Sends a push to all devices and takes the primary away during that push. Sends a second push to
 * one device during the outage.
 */
async function pushThroughLoss(
  bench: Bench,
  app: BenchApp,
  cluster: Cluster,
  loss: Loss,
): Promise<Outage> {
  const objectId = await push(bench, app, {});
  await untilSent(bench, requestsBeforeLoss);
  const calls = startCalls(bench, app);
  const primary = await cluster.primary();
  await loss.begin(primary);
  const startedAtMs = performance.now();
  await calls.firstRefused;
  const { total } = await bench.gateway.observe();
  expectThat(
    total < devices,
    `${loss.name} comes during the push, after ${total} of ${devices} requests`,
  );
  // Retried with the same push name until it is accepted.
  const during = await pushAndWait(bench, app, { where: { badge: 1 } });
  const { successes } = await untilDone(bench, app, objectId);
  const seconds = Math.round((performance.now() - startedAtMs) / 100) / 10;
  expectThat(
    successes === devices,
    `the push is done ${seconds} s after that, ${successes} devices sent`,
  );
  expectThat(
    during.successes === 1,
    'a push that is repeated during the outage is accepted and done',
  );
  const outage = await calls.stop();
  await loss.end(primary);
  return outage;
}

/** Checks that no accepted save is lost. */
async function checkSaves(bench: Bench, { saved }: Outage): Promise<void> {
  const { rowCount } = await bench.db.query(
    'SELECT FROM installation WHERE installation_id = ANY ($1)',
    [saved],
  );
  expectThat(rowCount === saved.length, `${rowCount} of ${saved.length} accepted saves are kept`);
}

function checkRefusals(what: string, { statuses, seconds }: Outage): void {
  const results = [...statuses].map(([status, count]) => `${count} × ${status}`).join(', ');
  const areAllExpected = [...statuses.keys()].every((status) =>
    ['200', '201', '503 with Retry-After'].includes(status),
  );
  expectThat(areAllExpected, `calls are answered during ${what}: ${results}`);
  expectThat(
    seconds <= maxOutageSeconds,
    `the last call is refused ${seconds} s after the first one`,
  );
}

async function checkFailover(bench: Bench, cluster: Cluster, loss: Loss): Promise<void> {
  const app = await createApp(bench);
  await writeInstallations(bench, app.appId, devices);
  await pushAndWait(bench, app, { where: { badge: 1 } });
  await bench.gateway.forget();
  const before = bench.pids();
  const outage = await pushThroughLoss(bench, app, cluster, loss);
  const { distinct, repeats } = await bench.gateway.observe();
  // The first device gets the second push too.
  expectThat(
    distinct === devices && repeats === 1,
    `${distinct} devices are reached, ${repeats - 1} of them twice`,
  );
  checkRefusals(loss.name, outage);
  await checkSaves(bench, outage);
  expectThat(
    JSON.stringify(bench.pids()) === JSON.stringify(before),
    'no process of the service was started again',
  );
  await cluster.untilReplicated();
  expectThat(true, 'the lost server is a synchronous standby again');
  await checkSwitchover(bench, app, cluster);
}

/** Performs a planned switchover to the standby. The old primary is read-only for a moment. */
async function checkSwitchover(bench: Bench, app: BenchApp, cluster: Cluster): Promise<void> {
  const calls = startCalls(bench, app);
  await cluster.switchOver();
  await calls.firstRefused;
  checkRefusals('a planned switch', await calls.stop());
}

const isPartition = process.argv.includes('--partition');
const pauseMs = 200;
const callTimeoutMs = 15_000;

/** Outage from the perspective of API callers. */
interface Outage {
  /** Time from the first to the last refused call. */
  seconds: number;
  /**
   * Number of calls by result. A result is the status and whether `Retry-After` is present, or a
   * connection error.
   */
  statuses: ReadonlyMap<string, number>;
  /** Ids of the installations whose save was accepted. */
  saved: readonly string[];
}

/** Calls that are repeated until `stop`. */
export interface RepeatedCalls {
  firstRefused: Promise<void>;
  /** Waits for one more successful call, then stops. */
  stop(): Promise<Outage>;
}

/** Alternately saves and reads an installation until stopped. */
export function startCalls(bench: Bench, app: BenchApp): RepeatedCalls {
  const statuses = new Map<string, number>();
  const saved: string[] = [];
  const controller = new AbortController();
  let [firstRefusedMs, lastRefusedMs]: (number | undefined)[] = [];
  let isAccepted = false;
  let onRefused: () => void = () => undefined;
  const firstRefused = new Promise<void>((resolve) => {
    onRefused = resolve;
  });
  const record = (answer: string) => {
    statuses.set(answer, (statuses.get(answer) ?? 0) + 1);
    isAccepted = answer.startsWith('20');
    if (isAccepted) return;
    lastRefusedMs = performance.now();
    firstRefusedMs ??= lastRefusedMs;
    onRefused();
  };
  const running = (async () => {
    for (let i = 0; !(controller.signal.aborted && isAccepted); i += 1) {
      const installationId = i % 2 === 0 ? undefined : `failover-${randomBytes(6).toString('hex')}`;
      record(await callOnce(bench, app, installationId));
      if (isAccepted && installationId) saved.push(installationId);
      await sleep(pauseMs, controller.signal);
    }
  })();
  return {
    firstRefused,
    async stop() {
      controller.abort();
      await running;
      const seconds = Math.round(((lastRefusedMs ?? 0) - (firstRefusedMs ?? 0)) / 100) / 10;
      return { seconds, statuses, saved };
    },
  };
}

/**
 * Saves the installation with the given id. Without an id, reads an installation. Returns the
 * result as a key of `Outage.statuses`.
 */
async function callOnce(
  bench: Bench,
  app: BenchApp,
  installationId: string | undefined,
): Promise<string> {
  const headers = masterHeaders(app);
  const signal = AbortSignal.timeout(callTimeoutMs);
  const body = JSON.stringify({ deviceType: 'android', installationId });
  const init = installationId === undefined ? { headers } : { method: 'POST', headers, body };
  try {
    const query = installationId === undefined ? '?limit=1' : '';
    const reply = await fetch(`${bench.url}/1.1/installations${query}`, { ...init, signal });
    await reply.body?.cancel();
    return reply.headers.has('retry-after')
      ? `${reply.status} with Retry-After`
      : String(reply.status);
  } catch (error) {
    return error instanceof Error ? error.name : String(error);
  }
}

const missing = [
  ...reasonsAgainstCluster(),
  ...(isPartition && process.getuid?.() !== 0 ? ['only root may create network namespaces'] : []),
];
if (missing.length > 0) {
  console.log(`The failover of PostgreSQL is not checked: ${missing.join(', ')}.`);
} else {
  const folder = await mkdtemp(join(tmpdir(), 'carillon-failover-'));
  await chmod(folder, 0o755);
  const home = join(folder, 'cluster');
  const parted = isPartition ? await PartitionableNetwork.open() : undefined;
  const network = parted ?? loopbackNetwork();
  try {
    const cluster = await startCluster(home, network);
    const loss = parted ? partition(cluster, parted) : powerLoss(cluster);
    try {
      const database = { url: cluster.databaseUrl, readUrl: cluster.readUrl };
      // Every process logs many warnings during the outage.
      const logLevel = currentEnvironment().LOG_LEVEL ?? 'fatal';
      const log = (line: string) => console.log(`    ${line}`);
      await withBench(log, { threads: 1, dispatchers: 2, database, logLevel }, (bench) =>
        checkFailover(bench, cluster, loss),
      );
    } finally {
      await cluster.close();
    }
    console.log(`the service survives ${loss.name}`);
  } catch (error) {
    for (const name of ['db1', 'db2', 'haproxy', 'etcd-db1', 'etcd-db2', 'etcd-db3']) {
      const text = await readFile(join(home, `${name}.log`), 'utf8').catch(() => '');
      console.log(`── ${name}\n${text.split('\n').slice(-15).join('\n')}`);
    }
    throw error;
  } finally {
    await network.close();
    await rm(folder, { recursive: true, force: true });
  }
}
