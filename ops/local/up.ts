import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Config, currentEnvironment, readConfig, readLocalConfig } from '../../shared/config.ts';
import { connectDemo, createDemo, type Demo, type DemoApi, pointAtSandbox, readDemo } from './demo.ts';
import { showFirstPush } from './first-push.ts';
import { greeting } from './greeting.ts';
import { choosePort } from './ports.ts';
import { ensureSecrets } from './secrets.ts';
import { LocalService, type Sandbox } from './service.ts';
import { forgetWhere, writeWhere } from './where.ts';

const usualPort = 8080;
const usualMetricsPort = 9464;
/** How often it is looked whether npm, who started us, is still there. */
const parentCheckMs = 1000;
/** A minute of tries to bring the demo back after a restart of its parts. */
const resumeAttempts = 120;
const resumePauseMs = 500;

interface Place {
  dataDir: string;
  host: string;
  port: number;
  metricsPort: number;
  publicUrl: string;
  databaseUrl: string | undefined;
  adminToken: string;
  secret: string;
  isNew: boolean;
}

/**
 * Runs the whole service on this machine until SIGINT or SIGTERM (contract.md "Two commands"): embedded
 * PostgreSQL, api, dispatcher, sandbox gateways; on a new data directory the demo and its first push.
 */
export async function up({ isJson }: { isJson: boolean }): Promise<void> {
  process.title = 'carillon up';
  const place = await choosePlace();
  const say = (line: string) => void (isJson ? process.stderr : process.stdout).write(`${line}\n`);
  const log = (line: string) => void process.stderr.write(`carillon: ${line}\n`);
  const stop = stopOnSignals();
  let demo: Demo | undefined;
  let sandbox: Sandbox | undefined;
  const service = new LocalService({
    ...place,
    env: currentEnvironment(),
    log,
    onSandbox: async (started) => {
      sandbox = started;
      // After a restart of the sandbox: its gateways have moved, its devices are gone.
      if (demo) await insist(() => demo && resumeDemo(place, demo, started));
    },
  });
  const starting = (async () => {
    say('starting the database, the api and the dispatcher …');
    await service.start();
    await writeWhere(place.dataDir, whereOf(place, service));
    if (!sandbox) throw new Error('the sandbox gateways did not start');
    demo = await openDemo(place, sandbox, say);
    say(greeting(place, demo));
    if (isJson)
      process.stdout.write(`${JSON.stringify({ publicUrl: place.publicUrl, appId: demo.appId })}\n`);
    say(`carillon ready ${place.publicUrl}`);
  })();
  const failed = starting.then(
    () => stop,
    (error: unknown) => ({ error }),
  );
  const failure = await Promise.race([stop, failed]);
  log('stopping …');
  await forgetWhere(place.dataDir);
  await service.stop();
  if (failure) throw failure.error;
  process.exit(0);
}

async function choosePlace(): Promise<Place> {
  const local = readLocalConfig();
  const { host } = local;
  const port = await choosePort({ asked: local.port, usual: usualPort, host, variable: 'PORT' });
  const metricsPort = await choosePort({
    asked: local.metricsPort,
    usual: usualMetricsPort,
    host,
    variable: 'METRICS_PORT',
  });
  const dataDir = resolve(local.dataDir);
  const { adminToken, secret, made } = await ensureSecrets(dataDir, local);
  const place = {
    dataDir,
    host,
    port,
    metricsPort,
    publicUrl: local.askedPublicUrl ?? `http://127.0.0.1:${port}`,
    databaseUrl: local.databaseUrl,
    adminToken,
    secret,
    isNew: made.length > 0,
  };
  checkEnvironment(place);
  return place;
}

/** Refuses an unfit environment here, with one message, before three processes do. */
function checkEnvironment(place: Place): Config {
  return readConfig({
    ...currentEnvironment(),
    DATABASE_URL: place.databaseUrl ?? 'postgresql://embedded',
    CARILLON_ADMIN_TOKEN: place.adminToken,
    CARILLON_SECRET: place.secret,
  });
}

function whereOf(place: Place, service: LocalService) {
  return {
    url: place.publicUrl,
    databaseUrl: service.databaseUrl,
    metricsUrl: `http://127.0.0.1:${place.metricsPort}`,
  };
}

const demoApi = (place: Place): DemoApi => ({
  url: `http://127.0.0.1:${place.port}`,
  adminToken: place.adminToken,
});

/** The demo app: the one of the first start, or a new one with its first push. */
async function openDemo(place: Place, sandbox: Sandbox, say: (line: string) => void): Promise<Demo> {
  const known = await readDemo(place.dataDir);
  if (known) {
    await resumeDemo(place, known, sandbox);
    return known;
  }
  say('a new data directory: making a demo app with 1,000 devices …');
  const demo = await createDemo(place.dataDir, demoApi(place), sandbox);
  await connectDemo(demoApi(place), demo, sandbox);
  await showFirstPush(demoApi(place), demo, say);
  return demo;
}

async function resumeDemo(place: Place, demo: Demo, sandbox: Sandbox): Promise<void> {
  await pointAtSandbox(demoApi(place), demo.appId, sandbox);
  await connectDemo(demoApi(place), demo, sandbox);
}

/** Tries again until it works: the api may be on its way back as well. */
async function insist(work: () => Promise<void> | undefined): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work();
    } catch (error) {
      if (attempt === resumeAttempts) throw error;
      await sleep(resumePauseMs);
    }
  }
}

/** Resolves when we are told to stop: by a signal, or by the end of the npm that started us. */
function stopOnSignals(): Promise<void> {
  return new Promise((resolveStop) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => resolveStop());
    if (currentEnvironment().npm_lifecycle_event === undefined) return;
    const parent = process.ppid;
    const timer = setInterval(() => {
      if (process.ppid !== parent) resolveStop();
    }, parentCheckMs);
    timer.unref();
  });
}
