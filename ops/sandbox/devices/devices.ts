import { z } from 'zod';
import { sleep } from '../../../shared/clock.ts';
import type { JsonObject } from '../../../shared/domain/json.ts';
import { Device, type DeviceFleet, type FleetDevice } from './device.ts';

export interface DeviceOptions {
  /** Base URL of an api process, such as `http://127.0.0.1:8080`. */
  apiUrl: string;
  appId: string;
  installationIds: string[];
  /** Called with each message that a device gets for the first time. */
  onMessage?: (installationId: string, content: JsonObject, messageId: string) => void;
  /** If false, messages are received but not acknowledged. */
  isAcking?: boolean;
  /** Wait before reconnecting, ± 50 %. */
  reconnectAfterMs?: number;
  /**
   * Maximum number of concurrent connection attempts; 64 by default, so that a thousand devices do
   * not overflow the listener's backlog.
   */
  connectConcurrency?: number;
  /**
   * Creates device `index`. The default device checks what it receives. Benchmarks pass a cheaper
   * device.
   */
  createDevice?: (fleet: DeviceFleet, installationId: string, index: number) => FleetDevice;
}

export interface DeviceCounters {
  /** Number of devices that are logged in now. */
  connected: number;
  /** Number of messages. Each message counts once per device. */
  received: number;
  /** Number of messages that a device had already received. */
  repeated: number;
  acked: number;
  /** Number of connections that the server or the network closed. */
  lost: number;
}

/** Simulated devices of one app that use the real protocol (protocol/channel.md#json-form). */
export interface SimulatedDevices {
  readonly counters: Readonly<DeviceCounters>;
  /** Close codes of the newest 1000 lost connections, in order. */
  readonly closeCodes: readonly number[];
  /** Resolves when all devices are logged in. */
  allConnected(): Promise<void>;
  /** Resolves when all devices together have received `n` messages. */
  received(n: number): Promise<void>;
  acked(n: number): Promise<void>;
  /** Resolves when `n` connections were lost. */
  lost(n: number): Promise<void>;
  /** Closes all connections and rejects pending waits. */
  close(): Promise<void>;
}

/**
 * Interval of heartbeats. Real clients send a heartbeat half a minute after the last frame they
 * received.
 */
const heartbeatEveryMs = 30_000;
const defaultConcurrency = 64;

/** Close codes for an unknown app or device. Reconnecting does not help. */
const finalCodes = [4100, 4103];

const routeReply = z.object({ server: z.string(), ttl: z.number() });
interface Waiter {
  isDone(): boolean;
  resolve(): void;
  reject(error: Error): void;
}

/** State that the devices share: counters, waiters and the server's URL. */
class Fleet implements SimulatedDevices, DeviceFleet {
  readonly options: DeviceOptions;
  readonly counters: DeviceCounters = { connected: 0, received: 0, repeated: 0, acked: 0, lost: 0 };
  readonly closeCodes: number[] = [];
  readonly #closing = new AbortController();
  readonly #devices: FleetDevice[];
  readonly #waiters = new Set<Waiter>();
  #route: Promise<string> | undefined;
  #running: Promise<unknown> | undefined;
  #connecting = 0;
  readonly #queue: (() => void)[] = [];

  constructor(options: DeviceOptions) {
    this.options = options;
    const { createDevice = (fleet, id) => new Device(fleet, id), installationIds } = options;
    this.#devices = installationIds.map((id, index) => createDevice(this, id, index));
  }

  get closeSignal(): AbortSignal {
    return this.#closing.signal;
  }

  run(): void {
    const heartbeat = setInterval(() => {
      for (const device of this.#devices) device.sendHeartbeat();
    }, heartbeatEveryMs);
    this.#running = Promise.all(this.#devices.map((device) => this.#keepConnected(device))).finally(
      () => clearInterval(heartbeat),
    );
  }

  async #keepConnected(device: FleetDevice): Promise<void> {
    const { reconnectAfterMs = 5000 } = this.options;
    while (!this.closeSignal.aborted) {
      await device.connectOnce();
      if (!this.closeSignal.aborted)
        await sleep(reconnectAfterMs * (0.5 + Math.random()), this.closeSignal);
    }
  }

  allConnected(): Promise<void> {
    return this.#until(() => this.counters.connected === this.#devices.length);
  }

  received(n: number): Promise<void> {
    return this.#until(() => this.counters.received >= n);
  }

  acked(n: number): Promise<void> {
    return this.#until(() => this.counters.acked >= n);
  }

  lost(n: number): Promise<void> {
    return this.#until(() => this.counters.lost >= n);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    for (const device of this.#devices) device.close();
    this.#rejectAll('the devices were closed');
    await this.#running;
  }

  /** Adds to a counter. Resolves the waits that are now fulfilled. */
  count(name: keyof DeviceCounters, n: number): void {
    this.counters[name] += n;
    for (const waiter of this.#waiters)
      if (waiter.isDone()) {
        this.#waiters.delete(waiter);
        waiter.resolve();
      }
  }

  countLoss(code: number): void {
    this.closeCodes.push(code);
    if (this.closeCodes.length > 1000) this.closeCodes.shift();
    // The server's URL may be outdated, so the next device asks the router again.
    this.#route = undefined;
    this.count('lost', 1);
    if (finalCodes.includes(code))
      this.#rejectAll(`the channel refused a device with close code ${code}`);
  }

  /** Runs `connect` when fewer than `connectConcurrency` attempts are running. */
  async connectWithLimit(connect: () => Promise<void>): Promise<void> {
    const { connectConcurrency = defaultConcurrency } = this.options;
    if (this.#connecting >= connectConcurrency)
      await new Promise<void>((resolve) => this.#queue.push(resolve));
    this.#connecting += 1;
    try {
      await connect();
    } finally {
      this.#connecting -= 1;
      this.#queue.shift()?.();
    }
  }

  /** Returns the URL of the socket. Asks the router once for all devices. */
  route(): Promise<string> {
    this.#route ??= requestRoute(this.options, this.closeSignal).catch((error: unknown) => {
      this.#route = undefined;
      throw error;
    });
    return this.#route;
  }

  #rejectAll(message: string): void {
    for (const waiter of this.#waiters) waiter.reject(new Error(message));
    this.#waiters.clear();
  }

  #until(isDone: () => boolean): Promise<void> {
    if (isDone()) return Promise.resolve();
    if (this.closeSignal.aborted) return Promise.reject(new Error('the devices were closed'));
    return new Promise((resolve, reject) => this.#waiters.add({ isDone, resolve, reject }));
  }
}

async function requestRoute(
  { apiUrl, appId }: DeviceOptions,
  signal: AbortSignal,
): Promise<string> {
  const url = new URL('/v1/route', apiUrl);
  url.searchParams.set('appId', appId);
  const response = await fetch(url, {
    signal: AbortSignal.any([signal, AbortSignal.timeout(10_000)]),
  });
  if (!response.ok) throw new Error(`the router answered ${response.status}`);
  // The router names PUBLIC_URL, which may lead to a proxy that does not run yet. These devices stay
  // on the api that they were given.
  const { pathname, search } = new URL(routeReply.parse(await response.json()).server);
  const socket = new URL(pathname + search, apiUrl);
  socket.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
  return socket.href;
}

/**
 * Connects simulated devices through all steps: router, socket, login, data, acknowledgement.
 * Resolves when all are logged in. A device that loses its connection reconnects. Rejects if the
 * router does not respond or a login is refused.
 */
export async function connectDevices(options: DeviceOptions): Promise<SimulatedDevices> {
  const fleet = new Fleet(options);
  await fleet.route();
  fleet.run();
  try {
    await fleet.allConnected();
  } catch (error) {
    await fleet.close();
    throw error;
  }
  return fleet;
}
