import { cp, mkdir, readdir, symlink, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { dayMs, sleep, systemClock } from '../../../shared/clock.ts';
import { currentEnvironment, type Environment } from '../../../shared/config/config.ts';
import { startBenchDevices } from '../../bench/channel/devices.ts';
import { ended, repeat, type Scene, type Stage, whileOtherRuns } from './stage.ts';

const sources = fileURLToPath(new URL('../../..', import.meta.url));

const body = { data: { alert: 'A fault' } };

/** No dispatcher runs. A push, a scheduled push and a growing number of jobs wait. */
async function stopDispatcher(stage: Stage, signal: AbortSignal): Promise<void> {
  const app = await stage.createApp();
  await stage.addDevices(app, 1);
  await stage.service.stopDispatchers();
  await stage.call(app, '/1.1/push', body);
  await stage.call(app, '/1.1/push', {
    ...body,
    push_time: new Date(systemClock.now() + dayMs).toISOString(),
  });
  // Backdates the rows, so that both pushes appear to have waited for a while.
  await stage.db.query(
    `UPDATE pgboss.job SET created_on = now() - interval '5 minutes',
      start_after = now() - interval '5 minutes' WHERE state = 'created'`,
  );
  await stage.db.query(`UPDATE scheduled_push SET push_time = now() - interval '1 minute'`);
  await addJobs(stage, 12_000);
  await repeat(signal, 1000, () => addJobs(stage, 200));
  await stage.db.query(`DELETE FROM pgboss.job WHERE data ->> 'fault' = 'true'`);
  await stage.service.startDispatcher();
}

/** Adds jobs to a queue that no dispatcher currently consumes. */
async function addJobs({ db }: Stage, count: number): Promise<void> {
  await db.query(
    `INSERT INTO pgboss.job (name, data) SELECT 'deliver-apns', '{"fault": true}'
      FROM generate_series(1, $1::int)`,
    [count],
  );
}

/** Stops the api for most of each second, as if the machine were swapping. */
async function stall(stage: Stage, signal: AbortSignal): Promise<void> {
  const kill = (name: NodeJS.Signals) => process.kill(stage.service.apiPid ?? 0, name);
  await repeat(signal, 250, async () => {
    kill('SIGSTOP');
    await sleep(700);
    kill('SIGCONT');
  });
}

/** Longer than the ten seconds that the alert evaluates. */
const connectedMs = 12_000;

/** Connects devices to the channel and disconnects them all at once. */
async function dropDevices(stage: Stage, signal: AbortSignal): Promise<void> {
  const app = await stage.createApp();
  const count = 300;
  await stage.db.query(
    `INSERT INTO installation (app_id, object_id, device_type, installation_id)
     SELECT $1, left(md5(random()::text || i), 24), 'android', 'bench-' || i
       FROM generate_series(0, $2::int - 1) AS i`,
    [app.appId, count],
  );
  const devices = await startBenchDevices(
    { ...currentEnvironment(), LOG_LEVEL: 'fatal' },
    () => undefined,
  );
  try {
    await devices.connect({ apiUrl: stage.url, appId: app.appId, count });
    await sleep(connectedMs, signal);
  } finally {
    await devices.stop();
  }
  await ended(signal);
}

/** Replaces the usual dispatcher with one that has other variables. */
async function replaceDispatcher({ service }: Stage, signal: AbortSignal, variables: Environment) {
  await service.stopDispatchers();
  await service.startDispatcher(variables);
  await ended(signal);
  await service.stopDispatchers();
  await service.startDispatcher();
}

const fileLimit = 200;

/**
 * Runs a dispatcher with a low limit on open files, and opens idle connections to it until nine
 * tenths are used.
 */
async function openFiles(stage: Stage, signal: AbortSignal): Promise<void> {
  const prefix = ['prlimit', `--nofile=${fileLimit}:${fileLimit}`];
  const main = join(sources, 'dispatcher/main.ts');
  await whileOtherRuns(stage, { main, prefix }, async (pid) => {
    const { port, hostname } = new URL(`http://${stage.targets['carillon-dispatcher']?.[0]}`);
    const files = await readdir(`/proc/${pid}/fd`);
    // A tenth stays free for Prometheus and the database. At the limit, Prometheus could not
    // scrape.
    const idle = Math.max(0, Math.ceil(fileLimit * 0.9) - files.length);
    const sockets = Array.from({ length: idle }, () =>
      connect(Number(port), hostname).on('error', () => undefined),
    );
    await ended(signal);
    for (const socket of sockets) socket.destroy();
  });
}

/**
 * Runs a dispatcher of another version next to the api. It is a copy of the sources with a changed
 * version in package.json.
 */
async function mixVersions(stage: Stage, signal: AbortSignal): Promise<void> {
  const copy = join(stage.folder, 'other-version');
  await mkdir(copy);
  for (const name of ['api', 'connectors', 'dispatcher', 'shared'])
    await cp(join(sources, name), join(copy, name), { recursive: true });
  await symlink(join(sources, 'node_modules'), join(copy, 'node_modules'));
  await writeFile(
    join(copy, 'package.json'),
    JSON.stringify({ name: 'carillon', version: '0.0.1', type: 'module' }),
  );
  await whileOtherRuns(stage, { main: join(copy, 'dispatcher/main.ts') }, () => ended(signal));
}

export const processScenes: readonly Scene[] = [
  {
    alerts: [
      'CarillonDown',
      'CarillonNoDispatcher',
      'CarillonQueueOld',
      'CarillonSchedulerLate',
      'CarillonQueueGrows',
    ],
    run: stopDispatcher,
  },
  { alerts: ['CarillonEventLoopSlow'], run: stall },
  { alerts: ['CarillonChannelDrop'], run: dropDevices },
  { alerts: ['CarillonOpenFiles'], run: openFiles },
  { alerts: ['CarillonVersionsMixed'], run: mixVersions },
  {
    alerts: ['CarillonDispatcherMemory'],
    run: (stage, signal) => replaceDispatcher(stage, signal, { DISPATCHER_THREADS: '16' }),
  },
];
