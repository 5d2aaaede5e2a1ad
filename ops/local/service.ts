import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { z } from 'zod';
import type { Environment } from '../../shared/config/config.ts';
import { loopbackNetworks } from '../../shared/config/private-hosts.ts';
import { apiFlags, dispatcherFlags, dispatcherMemory } from '../../shared/process/memory.ts';
import { say } from '../cli/language.ts';
import { functionEnvironment } from '../functions/confinement.ts';
import { migrateInThread, type SupervisedDatabase, superviseDatabase } from './database.ts';
import { freePort } from './ports.ts';
import { Supervised } from './supervised.ts';

/**
 * First message of the sandbox process: the credentials for its gateways and the address of its
 * page.
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

/** Sandbox process. It can simulate devices. */
export interface Sandbox extends SandboxInfo {
  /**
   * Connects simulated devices and disconnects the previous ones. Resolves when all devices are
   * logged in.
   */
  connectDevices(devices: SimulatedDevices): Promise<void>;
}

/** Addresses on which a service listens, and its secrets. */
export interface ServiceAccess {
  host: string;
  port: number;
  publicUrl: string;
  metricsPort: number;
  adminToken: string;
  secret: string;
}

/**
 * Returns free loopback ports and new secrets for a benchmark, a check or a test that starts its
 * own service.
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
  /** URL of the operator's PostgreSQL. By default, the embedded PostgreSQL under `dataDir`. */
  databaseUrl: string | undefined;
  /** Folder of functions, which run in a separate process. */
  functionsDir?: string | undefined;
  /** Environment of every process (PATH, LOG_LEVEL, SMTP_URL, …). */
  env: Environment;
  log: (line: string) => void;
  /**
   * Called when the sandbox gateways are ready: at the start and after each restart of the sandbox.
   */
  onSandbox?: (sandbox: Sandbox) => Promise<void> | void;
  /** False only in benchmarks: commits may be lost. */
  durable?: boolean;
  /** Folder of the bundle from which processes start. Undefined starts them from their sources. */
  bundle?: Promise<URL | undefined>;
}

/**
 * Time in which the processes must stop. The database gets the rest of the 10 s
 * (protocol/operation.md#two-commands).
 */
const stopProcessesMs = 6000;

/**
 * The whole service on this machine. Database, sandbox gateways, api and dispatcher are separate
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
      // Allows private addresses, because the sandbox gateways and function hosts are on this
      // machine.
      CARILLON_PRIVATE_HOSTS: env.CARILLON_PRIVATE_HOSTS ?? loopbackNetworks,
      ...this.#functions,
    };
  }

  /** Starts all processes. If a process fails to start, stops the processes that have started. */
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

  /** Stops the dispatchers. The other processes continue. */
  async stopDispatchers(): Promise<void> {
    await Promise.all(this.#dispatchers.splice(0).map((one) => one.stop(stopProcessesMs)));
  }

  /**
   * Stops all processes at once, then the database. A start that is in progress fails when it
   * starts its next process.
   */
  async stop(): Promise<void> {
    this.#isStopping = true;
    await Promise.all(this.#processes.map((one) => one.stop(stopProcessesMs)));
    await this.#database?.stop();
  }

  /** Starts a dispatcher with additional variables. It stops with the service at the latest. */
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
   * Starts the function host and stores its variables for the other processes. Its port stays the
   * same after a restart.
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
      // The sandbox gets no secrets, because it needs none.
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
