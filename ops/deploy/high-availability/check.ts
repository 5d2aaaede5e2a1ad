// `npm run check-failover`: kills the primary of a PostgreSQL under Patroni during a push, and checks that the service goes
// on by itself: every device gets the push once, and callers are answered 503 with `Retry-After` in the meantime. Says so
// and ends with 0 where the packages are missing.
import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sleep } from '../../../shared/clock.ts';
import { currentEnvironment } from '../../../shared/config/config.ts';
import { type Bench, withBench } from '../../bench/harness/bench-service.ts';
import { type BenchApp, createApp, push, pushAndWait, untilDone } from '../../bench/harness/client.ts';
import { writeInstallations } from '../../bench/harness/seed.ts';
import { type Cluster, reasonsAgainstCluster, startCluster } from './cluster.ts';
import { type Outage, watchCalls } from './outage.ts';

const devices = 200_000;
/** Requests at the gateway after which the primary is killed. */
const killedAfter = 20_000;
/** Longest time without a primary: ttl and two rounds of Patroni, and the pauses of HAProxy and of the probe. */
const maxOutageSeconds = 40;

function demand(condition: boolean, text: string): void {
  if (!condition) throw new Error(`not so: ${text}`);
  console.log(`ok  ${text}`);
}

async function untilSent({ gateway }: Bench, count: number): Promise<void> {
  while ((await gateway.observe()).total < count) await sleep(20);
}

/** Sends to all, kills the primary during that push, and sends a second one to one device during the outage. */
async function pushThroughFailover(bench: Bench, app: BenchApp, cluster: Cluster): Promise<Outage> {
  const objectId = await push(bench, app, {});
  await untilSent(bench, killedAfter);
  const calls = watchCalls(bench, app);
  const primary = await cluster.primary();
  await cluster.kill(primary);
  const startedAtMs = performance.now();
  await calls.firstRefused;
  const { total } = await bench.gateway.observe();
  demand(total < devices, `the primary is killed during the push, after ${total} of ${devices} requests`);
  // Repeated under its name until it is accepted.
  const during = await pushAndWait(bench, app, { where: { badge: 1 } });
  const { successes } = await untilDone(bench, app, objectId);
  const seconds = Math.round((performance.now() - startedAtMs) / 100) / 10;
  demand(successes === devices, `the push is done ${seconds} s after that, ${successes} devices sent`);
  demand(during.successes === 1, 'a push that is repeated during the outage is accepted and done');
  const outage = await calls.stop();
  await cluster.start(primary);
  return outage;
}

function demandRefusals(what: string, { statuses, seconds }: Outage): void {
  const seen = [...statuses].map(([status, count]) => `${count} × ${status}`).join(', ');
  const isBorne = [...statuses.keys()].every((status) =>
    ['200', '201', '503 with Retry-After'].includes(status),
  );
  demand(isBorne, `calls are answered during ${what}: ${seen}`);
  demand(seconds <= maxOutageSeconds, `the last call is refused ${seconds} s after the first one`);
}

async function checkFailover(bench: Bench, cluster: Cluster): Promise<void> {
  const app = await createApp(bench);
  await writeInstallations(bench, app.appId, devices);
  await pushAndWait(bench, app, { where: { badge: 1 } });
  await bench.gateway.forget();
  const before = bench.pids();
  const outage = await pushThroughFailover(bench, app, cluster);
  const { distinct, repeats } = await bench.gateway.observe();
  // The first device also gets the second push.
  demand(
    distinct === devices && repeats === 1,
    `${distinct} devices are reached, ${repeats - 1} of them twice`,
  );
  demandRefusals('the loss of the primary', outage);
  demand(
    JSON.stringify(bench.pids()) === JSON.stringify(before),
    'no process of the service was started again',
  );
  await cluster.untilWhole();
  demand(true, 'the killed server is a synchronous standby again');
  await checkSwitchover(bench, app, cluster);
}

/** Lets the standby take over in good order: for a moment the old primary still answers, and only reads. */
async function checkSwitchover(bench: Bench, app: BenchApp, cluster: Cluster): Promise<void> {
  const calls = watchCalls(bench, app);
  await cluster.switchOver();
  await calls.firstRefused;
  demandRefusals('a planned switch', await calls.stop());
}

const missing = reasonsAgainstCluster();
if (missing.length > 0) {
  console.log(`The failover of PostgreSQL is not checked: ${missing.join(', ')}.`);
} else {
  const folder = await mkdtemp(join(tmpdir(), 'carillon-failover-'));
  await chmod(folder, 0o755);
  const home = join(folder, 'cluster');
  try {
    const cluster = await startCluster(home);
    try {
      const database = { url: cluster.databaseUrl, readUrl: cluster.readUrl };
      // Every process warns of the outage, many times.
      const logLevel = currentEnvironment().LOG_LEVEL ?? 'fatal';
      const log = (line: string) => console.log(`    ${line}`);
      await withBench(log, { threads: 1, dispatchers: 2, database, logLevel }, (bench) =>
        checkFailover(bench, cluster),
      );
    } finally {
      await cluster.close();
    }
    console.log('the service survives the loss of the primary');
  } catch (error) {
    for (const name of ['db1', 'db2', 'haproxy', 'etcd']) {
      const text = await readFile(join(home, `${name}.log`), 'utf8').catch(() => '');
      console.log(`── ${name}\n${text.split('\n').slice(-15).join('\n')}`);
    }
    throw error;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
