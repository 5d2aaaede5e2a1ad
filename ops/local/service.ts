import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { z } from 'zod';
import type { Environment } from '../../shared/config/config.ts';
import { loopbackNetworks } from '../../shared/config/private-hosts.ts';
import { apiFlags, dispatcherFlags, dispatcherMemory } from '../../shared/process/memory.ts';
import { say } from '../cli/language.ts';
import { functionEnvironment } from '../functions/confinement.ts';
import { type SupervisedDatabase, superviseDatabase } from './database.ts';
import { freePort } from './ports.ts';
import { migrateInThread } from './postgres/migration.ts';
import { Supervised } from './supervised.ts';

/**
 * First message of the sandbox process: credentials that its gateways accept, and the address of
 * its page.
 */
const sandboxInfo = z.object({
  page: z.string(),
  profiles: z.array(
    z.object({ connector: z.string(), credentials: z.record(z.string(), z.unknown()) }),
  ),
});
export type SandboxInfo = z.infer<typeof sandboxInfo>;

/** Devices of an app that the sandbox process simulates. */
export interface SimulatedDevices {
  apiUrl: string;
  appId: string;
  installationIds: string[];
}

/** Sandbox process, which can simulate devices. */
export interface Sandbox extends SandboxInfo {
  /** Connects simulated devices in place of the previous ones. Resolves when all are logged in. */
  connectDevices(devices: SimulatedDevices): Promise<void>;
}

/** Where a service listens, and its secrets. */
export interface ServiceAccess {
  host: string;
  port: number;
  publicUrl: string;
  metricsPort: number;
  adminToken: string;
  secret: string;
}

/**
 * Returns free ports of loopback and new secrets, for a benchmark, a check or a test with a service
 * of its own.
 */
export async function createAccess(): Promise<ServiceAccess> {
  const host = '127.0.0.1';
  const [port, metricsPort] = [await freePort(), await freePort()];
  return {
    host,
    port,
    publicUrl: `http://${host}:${port}`,
    metricsPort,
    adminToken: randomBytes(24).toString('base64url'),
    secret: randomBytes(32).toString('base64'),
  };
}

export interface ServiceOptions extends ServiceAccess {
  dataDir: string;
  /** PostgreSQL of the operator; by default the embedded one under `dataDir`. */
  databaseUrl: string | undefined;
  /** Folder of functions to run in a separate process. */
  functionsDir?: string | undefined;
  /** Environment of every process (PATH, LOG_LEVEL, SMTP_URL, …). */
  env: Environment;
  log: (line: string) => void;
  /** Called when the sandbox gateways are ready: at the start and after each restart. */
  onSandbox?: (sandbox: Sandbox) => Promise<void> | void;
  /** false only for benchmarks: commits may be lost. */
  durable?: boolean;
  /**
   * Folder of the bundle that the processes are started from, or undefined to start them from their
   * sources.
   */
  bundle?: Promise<URL | undefined>;
}

/**
 * Time for the processes to stop, out of 10 s (protocol/operation.md#two-commands); the database
 * has the rest.
 */
const stopProcessesMs = 6000;

/**
 * Whole service on this machine: database, sandbox gateways, api and dispatcher as separate
 * processes.
 */
export class LocalService {
  readonly #options: ServiceOptions;
  #database: SupervisedDatabase | undefined;
  #processes: Supervised[] = [];
  #api: Supervised | undefined;
  #dispatchers: Supervised[] = [];
  #functions: Environment = {};
  #databaseUrl = '';
  #isStopping = false;

  constructor(options: ServiceOptions) {
    this.#options = options;
  }

  get databaseUrl(): string {
    return this.#databaseUrl;
  }

  get databasePid(): number | undefined {
    return this.#database?.pid;
  }

  get apiPid(): number | undefined {
    return this.#api?.pid;
  }

  get dispatcherPid(): number | undefined {
    return this.#dispatchers[0]?.pid;
  }

  /** Environment of the api and the dispatcher. */
  get environment(): Environment {
    const { env, host, port, publicUrl, metricsPort, adminToken, secret } = this.#options;
    return {
      ...env,
      HOST: host,
      PORT: String(port),
      PUBLIC_URL: publicUrl,
      METRICS_PORT: String(metricsPort),
      DATABASE_URL: this.#databaseUrl,
      CARILLON_ADMIN_TOKEN: adminToken,
      CARILLON_SECRET: secret,
      // Sandbox gateways and function hosts are on this machine.
      CARILLON_PRIVATE_HOSTS: env.CARILLON_PRIVATE_HOSTS ?? loopbackNetworks,
      ...this.#functions,
    };
  }

  /** Starts all processes. Stops the started ones when one of them fails. */
  async start(): Promise<void> {
    try {
      await this.#startDatabase();
      await this.#startFunctions();
      await Promise.all([this.#startApi(), this.startDispatcher()]);
      await this.#startSandbox();
    } catch (error) {
      await this.stop();
      throw error;
    }
  }

  /** Stops the dispatchers, while the other processes go on. */
  async stopDispatchers(): Promise<void> {
    await Promise.all(this.#dispatchers.splice(0).map((one) => one.stop(stopProcessesMs)));
  }

  /**
   * Stops the processes together, then the database. A start that is under way fails at its next
   * process.
   */
  async stop(): Promise<void> {
    this.#isStopping = true;
    await Promise.all(this.#processes.map((one) => one.stop(stopProcessesMs)));
    await this.#database?.stop();
  }

  /**
   * Starts a dispatcher with additional variables. It stops with the service, unless it is stopped
   * before.
   */
  async startDispatcher(variables: Environment = {}): Promise<Supervised> {
    const number = this.#dispatchers.length + 1;
    const dispatcher = new Supervised({
      name: number === 1 ? 'dispatcher' : `dispatcher ${number}`,
      file: 'dispatcher/main.ts',
      bundle: await this.#options.bundle,
      flags: dispatcherFlags,
      env: { ...dispatcherMemory, ...this.environment, ...variables },
      log: this.#options.log,
    });
    this.#dispatchers.push(dispatcher);
    await this.#run(dispatcher);
    return dispatcher;
  }

  async #startApi(): Promise<void> {
    const { bundle, log } = this.#options;
    const own = { file: 'api/main.ts', flags: apiFlags, env: this.environment };
    this.#api = new Supervised({ name: 'api', ...own, bundle: await bundle, log });
    await this.#run(this.#api);
  }

  async #run(one: Supervised): Promise<void> {
    if (this.#isStopping) throw new Error(say('the service was stopped during its start'));
    this.#processes.push(one);
    await one.start();
  }

  async #startDatabase(): Promise<void> {
    const { dataDir, databaseUrl, durable, log } = this.#options;
    if (databaseUrl === undefined)
      this.#database = await superviseDatabase({
        dataDir: join(dataDir, 'postgres'),
        log,
        ...(durable === undefined ? {} : { durable }),
      });
    this.#databaseUrl = databaseUrl ?? this.#database?.databaseUrl ?? '';
    const ran = await migrateInThread(this.#databaseUrl);
    if (ran.length > 0) log(say('database migrated: {n} steps', { n: ran.length }));
  }

  /**
   * Starts the function host on a port that stays the same over restarts, and notes the variables
   * for it.
   */
  async #startFunctions(): Promise<void> {
    const { functionsDir, env, port, host, log } = this.#options;
    if (functionsDir === undefined) return;
    const functionsPort = await freePort();
    const token = randomBytes(32).toString('base64url');
    const functions = new Supervised({
      name: 'functions',
      file: 'ops/functions/main.ts',
      env: {
        ...functionEnvironment(env),
        LOG_LEVEL: env.LOG_LEVEL,
        CARILLON_FUNCTIONS_DIR: functionsDir,
        CARILLON_FUNCTIONS_PORT: String(functionsPort),
        CARILLON_FUNCTIONS_TOKEN: token,
        CARILLON_API_URL: `http://${['0.0.0.0', '::'].includes(host) ? '127.0.0.1' : host}:${port}`,
      },
      log,
    });
    await this.#run(functions);
    this.#functions = {
      CARILLON_FUNCTIONS_URL: `http://127.0.0.1:${functionsPort}`,
      CARILLON_FUNCTIONS_TOKEN: token,
    };
  }

  async #startSandbox(): Promise<void> {
    const { onSandbox, dataDir, env, log, bundle } = this.#options;
    if (!onSandbox) return;
    let isConfigured: Promise<void> | undefined;
    let onConnected: (() => void) | undefined;
    const connectDevices = (devices: SimulatedDevices) =>
      new Promise<void>((resolve) => {
        onConnected = resolve;
        sandbox.send({ devices });
      });
    const sandbox: Supervised = new Supervised({
      name: 'sandbox',
      file: 'ops/sandbox/main.ts',
      bundle: await bundle,
      // The sandbox needs none of our secrets.
      env: { ...functionEnvironment(env), LOG_LEVEL: env.LOG_LEVEL, CARILLON_DATA_DIR: dataDir },
      log,
      onMessage: (message) => {
        if ('connected' in message) return onConnected?.();
        isConfigured = Promise.resolve(
          onSandbox({ ...sandboxInfo.parse(message), connectDevices }),
        );
        return isConfigured;
      },
    });
    await this.#run(sandbox);
    await isConfigured;
  }
}
