import { access, realpath, rm } from 'node:fs/promises';
import { join, resolve, sep } from 'node:path';
import {
  type Config,
  currentEnvironment,
  readConfig,
  readLocalConfig,
  urlAt,
} from '../../shared/config/config.ts';
import { say } from '../cli/language.ts';
import { startBuilds } from '../package/bundle/background.ts';
import { ensureSecrets, removeRunInfo, writeRunInfo } from './data-files.ts';
import {
  connectDemo,
  createDemo,
  createLoginLink,
  type Demo,
  type DemoApi,
  putProfiles,
  readDemo,
  retryUntilDone,
} from './demo.ts';
import { greeting, showFirstPush } from './greeting.ts';
import { choosePort, isPortFree } from './ports.ts';
import { LocalService, type Sandbox } from './service.ts';
import { stopOnSignals } from './supervised.ts';
import { startTryPage, type TryPage } from './try/server.ts';

const defaultPort = 8080;
const defaultMetricsPort = 9464;
const bindAttempts = 5;

const toFailure = (error: unknown) => ({ error });

interface StartOptions {
  dataDir: string;
  host: string;
  metricsHost: string;
  databaseUrl: string | undefined;
  functionsDir: string | undefined;
  requestedPublicUrl: string | undefined;
  /** Ports from the environment. */
  requestedPorts: { port: number | undefined; metricsPort: number | undefined };
  adminToken: string;
  secret: string;
  /** Where the admin token comes from. */
  tokenSource: 'environment' | 'made' | 'file';
}

interface Binding extends StartOptions {
  port: number;
  metricsPort: number;
  publicUrl: string;
}

/**
 * Runs the whole service on this machine until SIGINT or SIGTERM
 * (protocol/operation.md#two-commands): embedded PostgreSQL, api, dispatcher and sandbox gateways.
 * If the data directory is new, creates the demo and sends its first push.
 */
export async function up({ isJson }: { isJson: boolean }): Promise<void> {
  process.title = 'carillon up';
  const options = await readStartOptions();
  const print = (line: string) =>
    void (isJson ? process.stderr : process.stdout).write(`${line}\n`);
  const log = (line: string) => void process.stderr.write(`carillon: ${line}\n`);
  const stop = stopOnSignals();
  const builds = startBuilds(options.dataDir, log);
  let service: LocalService | undefined;
  let tryPage: TryPage | undefined;
  const starting = (async () => {
    print(say('starting the database, the api and the dispatcher …'));
    const page = await startTryPage();
    tryPage = page;
    let demo: Demo | undefined;
    let sandbox: Sandbox | undefined;
    const binding = await startOnFreePorts(options, log, (candidate) => {
      service = new LocalService({
        ...candidate,
        env: { ...currentEnvironment(), CARILLON_TRY_URL: page.url },
        bundle: builds.bundle,
        log,
        onSandbox: async (started) => {
          sandbox = started;
          // After a restart, the sandbox has different ports and no devices.
          if (demo) await retryUntilDone(() => demo && resumeDemo(candidate, demo, started));
        },
      });
      return service;
    });
    if (!sandbox || !service) throw new Error(say('the sandbox gateways did not start'));
    await writeRunInfo(binding.dataDir, runInfoOf(binding, service));
    demo = await openDemo(binding, sandbox, print);
    page.open({
      api: demoApi(binding),
      publicUrl: binding.publicUrl,
      app: demo,
      sandboxPage: () => sandbox?.page ?? '',
    });
    // The link is printed only to a terminal, because a log would store it.
    const link =
      process.stdout.isTTY && !isJson ? await createLoginLink(demoApi(binding)) : undefined;
    const pages = { sandbox: sandbox.page, tryWebPush: page.url };
    print(greeting({ ...binding, loginLink: link }, demo, pages));
    if (isJson)
      process.stdout.write(
        `${JSON.stringify({ publicUrl: binding.publicUrl, appId: demo.appId })}\n`,
      );
    print(`carillon ready ${binding.publicUrl}`);
  })();
  const failed = starting.then(() => stop, toFailure);
  const failure = await Promise.race([stop, failed]);
  log(say('stopping …'));
  await removeRunInfo(options.dataDir);
  await Promise.all([service?.stop(), builds.stop(), tryPage?.close()]);
  if (failure) throw failure.error;
  process.exit(0);
}

/** Reads the options that stay the same in all attempts to start. Ports may change. */
async function readStartOptions(): Promise<StartOptions> {
  const local = readLocalConfig();
  const dataDir = resolve(local.dataDir);
  const { adminToken, secret, created } = await ensureSecrets(dataDir, local);
  if (created.includes('secret')) await refuseNewSecretForOldData(dataDir);
  const { host, metricsHost, databaseUrl, functionsDir, port, metricsPort } = local;
  if (functionsDir !== undefined) await refuseSecretsInside(functionsDir, dataDir);
  const options = {
    dataDir,
    host,
    metricsHost,
    databaseUrl,
    functionsDir,
    requestedPublicUrl: local.configuredPublicUrl,
    requestedPorts: { port, metricsPort },
    adminToken,
    secret,
  };
  checkEnvironment(options);
  const tokenSource = local.adminToken
    ? 'environment'
    : created.includes('adminToken')
      ? 'made'
      : 'file';
  return { ...options, tokenSource };
}

/**
 * Throws if the functions folder contains the data directory, because functions can read everything
 * in their folder.
 */
async function refuseSecretsInside(functionsDir: string, dataDir: string): Promise<void> {
  const folder = await realpath(functionsDir).catch(() => undefined);
  if (folder === undefined)
    throw new Error(
      say('CARILLON_FUNCTIONS_DIR: there is no folder {folder}', { folder: resolve(functionsDir) }),
    );
  const data = await realpath(dataDir);
  if (data === folder || data.startsWith(folder.endsWith(sep) ? folder : folder + sep))
    throw new Error(
      say(
        'CARILLON_FUNCTIONS_DIR: {folder} holds the data directory, and functions could read its secrets; give them a folder of their own',
        { folder },
      ),
    );
}

/** Throws if there is data but no secret. A new secret cannot decrypt existing data. */
async function refuseNewSecretForOldData(dataDir: string): Promise<void> {
  const hasData = await access(join(dataDir, 'postgres')).then(
    () => true,
    () => false,
  );
  if (!hasData) return;
  await rm(join(dataDir, 'secret'), { force: true });
  throw new Error(
    say(
      '{dataDir} holds data but no secret: set CARILLON_SECRET to the one that it was started with before',
      {
        dataDir,
      },
    ),
  );
}

async function chooseBinding(options: StartOptions): Promise<Binding> {
  const { host, metricsHost, requestedPorts, requestedPublicUrl } = options;
  const port = await choosePort({
    requested: requestedPorts.port,
    defaultPort,
    host,
    variable: 'PORT',
  });
  const metricsPort = await choosePort({
    requested: requestedPorts.metricsPort,
    defaultPort: defaultMetricsPort,
    host: metricsHost,
    variable: 'METRICS_PORT',
  });
  return {
    ...options,
    port,
    metricsPort,
    publicUrl: requestedPublicUrl ?? `http://127.0.0.1:${port}`,
  };
}

/**
 * Starts the service. If another process took a chosen port in the meantime, tries again with other
 * ports. This happens when two clones start at the same time.
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
      log(say('another process took the chosen port; trying again with another port'));
    }
  }
}

/** True if the chosen ports are still free. They were released after the choice. */
async function areStillFree({
  port,
  metricsPort,
  host,
  metricsHost,
  requestedPorts,
}: Binding): Promise<boolean> {
  const chosen = [
    ...(requestedPorts.port === undefined ? [{ port, host }] : []),
    ...(requestedPorts.metricsPort === undefined ? [{ port: metricsPort, host: metricsHost }] : []),
  ];
  const free = await Promise.all(chosen.map((one) => isPortFree(one.port, one.host)));
  return free.every(Boolean);
}

/** Checks the environment once here, so that an error is not printed by three processes. */
function checkEnvironment(
  options: Pick<StartOptions, 'databaseUrl' | 'adminToken' | 'secret'>,
): Config {
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

/**
 * Opens the demo app of the first start. If it does not exist, creates the demo app and sends its first
 * push.
 */
async function openDemo(
  binding: Binding,
  sandbox: Sandbox,
  print: (line: string) => void,
): Promise<Demo> {
  const known = await readDemo(binding.dataDir);
  if (known) {
    await resumeDemo(binding, known, sandbox);
    return known;
  }
  print(say('a new data directory: creating a demo app with 1,000 devices …'));
  const demo = await createDemo(binding.dataDir, demoApi(binding), sandbox);
  await connectDemo(demoApi(binding), demo, sandbox);
  await showFirstPush(demoApi(binding), demo, print);
  return demo;
}

async function resumeDemo(binding: Binding, demo: Demo, sandbox: Sandbox): Promise<void> {
  await putProfiles(demoApi(binding), demo.appId, sandbox);
  await connectDemo(demoApi(binding), demo, sandbox);
}
