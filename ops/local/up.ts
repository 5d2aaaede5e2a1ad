import { access, realpath, rm } from 'node:fs/promises';
import { join, resolve, sep } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Config, currentEnvironment, readConfig, readLocalConfig, urlAt } from '../../shared/config.ts';
import { connectDemo, createDemo, type Demo, type DemoApi, pointAtSandbox, readDemo } from './demo.ts';
import { showFirstPush } from './first-push.ts';
import { greeting } from './greeting.ts';
import { choosePort, isFree } from './ports.ts';
import { removeRunInfo, writeRunInfo } from './run-info.ts';
import { ensureSecrets } from './secrets.ts';
import { LocalService, type Sandbox } from './service.ts';

const usualPort = 8080;
const usualMetricsPort = 9464;
/** How often it is looked whether npm, who started us, is still there. */
const parentCheckMs = 1000;
const bindAttempts = 5;
/** A minute of tries to bring the demo back after a restart of its parts. */
const resumeAttempts = 120;
const resumePauseMs = 500;

interface StartOptions {
  dataDir: string;
  host: string;
  metricsHost: string;
  databaseUrl: string | undefined;
  functionsDir: string | undefined;
  askedPublicUrl: string | undefined;
  /** The ports that the environment names. */
  asked: { port: number | undefined; metricsPort: number | undefined };
  adminToken: string;
  secret: string;
  /** The data directory was made by this start. */
  isNew: boolean;
}

interface Binding extends StartOptions {
  port: number;
  metricsPort: number;
  publicUrl: string;
}

/**
 * Runs the whole service on this machine until SIGINT or SIGTERM (protocol/operation.md#two-commands): embedded
 * PostgreSQL, api, dispatcher, sandbox gateways; on a new data directory the demo and its first push.
 */
export async function up({ isJson }: { isJson: boolean }): Promise<void> {
  process.title = 'carillon up';
  const options = await readStartOptions();
  const say = (line: string) => void (isJson ? process.stderr : process.stdout).write(`${line}\n`);
  const log = (line: string) => void process.stderr.write(`carillon: ${line}\n`);
  const stop = stopOnSignals();
  let service: LocalService | undefined;
  const starting = (async () => {
    say('starting the database, the api and the dispatcher …');
    let demo: Demo | undefined;
    let sandbox: Sandbox | undefined;
    const binding = await startOnFreePorts(options, log, (candidate) => {
      service = new LocalService({
        ...candidate,
        env: currentEnvironment(),
        log,
        onSandbox: async (started) => {
          sandbox = started;
          // After a restart of the sandbox: its gateways have moved, its devices are gone.
          if (demo) await retryUntilDone(() => demo && resumeDemo(candidate, demo, started));
        },
      });
      return service;
    });
    if (!sandbox || !service) throw new Error('the sandbox gateways did not start');
    await writeRunInfo(binding.dataDir, runInfoOf(binding, service));
    demo = await openDemo(binding, sandbox, say);
    say(greeting(binding, demo, sandbox.page));
    if (isJson)
      process.stdout.write(`${JSON.stringify({ publicUrl: binding.publicUrl, appId: demo.appId })}\n`);
    say(`carillon ready ${binding.publicUrl}`);
  })();
  const failed = starting.then(
    () => stop,
    (error: unknown) => ({ error }),
  );
  const failure = await Promise.race([stop, failed]);
  log('stopping …');
  await removeRunInfo(options.dataDir);
  await service?.stop();
  if (failure) throw failure.error;
  process.exit(0);
}

/** What is settled once: everything but the ports. */
async function readStartOptions(): Promise<StartOptions> {
  const local = readLocalConfig();
  const dataDir = resolve(local.dataDir);
  const { adminToken, secret, made } = await ensureSecrets(dataDir, local);
  if (made.includes('secret')) await refuseNewSecretForOldData(dataDir);
  const { host, metricsHost, databaseUrl, functionsDir, askedPublicUrl, port, metricsPort } = local;
  if (functionsDir !== undefined) await refuseSecretsInside(functionsDir, dataDir);
  const asked = { port, metricsPort };
  const options = {
    dataDir,
    host,
    metricsHost,
    databaseUrl,
    functionsDir,
    askedPublicUrl,
    asked,
    adminToken,
    secret,
  };
  checkEnvironment(options);
  return { ...options, isNew: made.length > 0 };
}

/** Functions can read all of their folder. */
async function refuseSecretsInside(functionsDir: string, dataDir: string): Promise<void> {
  const folder = await realpath(functionsDir).catch(() => undefined);
  if (folder === undefined)
    throw new Error(`CARILLON_FUNCTIONS_DIR: there is no folder ${resolve(functionsDir)}`);
  const data = await realpath(dataDir);
  if (data === folder || data.startsWith(folder.endsWith(sep) ? folder : folder + sep))
    throw new Error(
      `CARILLON_FUNCTIONS_DIR: ${folder} holds the data directory, and functions could read its secrets; give them a folder of their own`,
    );
}

/** Data that was encrypted under a secret from the environment cannot be read under a new one. */
async function refuseNewSecretForOldData(dataDir: string): Promise<void> {
  const hasData = await access(join(dataDir, 'postgres')).then(
    () => true,
    () => false,
  );
  if (!hasData) return;
  await rm(join(dataDir, 'secret'), { force: true });
  throw new Error(
    `${dataDir} holds data but no secret: set CARILLON_SECRET to the one that it was started with before`,
  );
}

async function chooseBinding(options: StartOptions): Promise<Binding> {
  const { host, metricsHost, asked, askedPublicUrl } = options;
  const port = await choosePort({ asked: asked.port, usual: usualPort, host, variable: 'PORT' });
  const metricsPort = await choosePort({
    asked: asked.metricsPort,
    usual: usualMetricsPort,
    host: metricsHost,
    variable: 'METRICS_PORT',
  });
  return { ...options, port, metricsPort, publicUrl: askedPublicUrl ?? `http://127.0.0.1:${port}` };
}

/**
 * Starts the service, on other ports when the ones it was free to choose were taken between choosing and
 * binding: two clones may be started in the same moment.
 */
async function startOnFreePorts(
  options: StartOptions,
  log: (line: string) => void,
  make: (binding: Binding) => LocalService,
): Promise<Binding> {
  for (let attempt = 1; ; attempt += 1) {
    const binding = await chooseBinding(options);
    try {
      await make(binding).start();
      return binding;
    } catch (error) {
      if (attempt === bindAttempts || (await areStillFree(binding))) throw error;
      log('a port was taken meanwhile; trying again with another');
    }
  }
}

/** Whether the ports that we chose ourselves, and have let go by now, could still be bound. */
async function areStillFree({ port, metricsPort, host, metricsHost, asked }: Binding): Promise<boolean> {
  const chosen = [
    ...(asked.port === undefined ? [{ port, host }] : []),
    ...(asked.metricsPort === undefined ? [{ port: metricsPort, host: metricsHost }] : []),
  ];
  const free = await Promise.all(chosen.map((one) => isFree(one.port, one.host)));
  return free.every(Boolean);
}

/** Refuses an unfit environment here, with one message, before three processes do. */
function checkEnvironment(options: Pick<StartOptions, 'databaseUrl' | 'adminToken' | 'secret'>): Config {
  return readConfig({
    ...currentEnvironment(),
    DATABASE_URL: options.databaseUrl ?? 'postgresql://embedded',
    CARILLON_ADMIN_TOKEN: options.adminToken,
    CARILLON_SECRET: options.secret,
  });
}

function runInfoOf(binding: Binding, service: LocalService) {
  return {
    url: binding.publicUrl,
    databaseUrl: service.databaseUrl,
    metricsUrl: urlAt(binding.metricsHost, binding.metricsPort),
  };
}

const demoApi = (binding: Binding): DemoApi => ({
  url: `http://127.0.0.1:${binding.port}`,
  adminToken: binding.adminToken,
});

/** The demo app: the one of the first start, or a new one with its first push. */
async function openDemo(binding: Binding, sandbox: Sandbox, say: (line: string) => void): Promise<Demo> {
  const known = await readDemo(binding.dataDir);
  if (known) {
    await resumeDemo(binding, known, sandbox);
    return known;
  }
  say('a new data directory: making a demo app with 1,000 devices …');
  const demo = await createDemo(binding.dataDir, demoApi(binding), sandbox);
  await connectDemo(demoApi(binding), demo, sandbox);
  await showFirstPush(demoApi(binding), demo, say);
  return demo;
}

async function resumeDemo(binding: Binding, demo: Demo, sandbox: Sandbox): Promise<void> {
  await pointAtSandbox(demoApi(binding), demo.appId, sandbox);
  await connectDemo(demoApi(binding), demo, sandbox);
}

/** Tries again until it works: the api may be on its way back as well. */
async function retryUntilDone(work: () => Promise<void> | undefined): Promise<void> {
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
