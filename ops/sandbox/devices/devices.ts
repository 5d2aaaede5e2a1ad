import { z } from 'zod';
import { sleep } from '../../../shared/clock.ts';
import type { JsonObject } from '../../../shared/domain/json.ts';
import { Device, type DeviceFleet, type FleetDevice } from './device.ts';

export interface DeviceOptions {
  /** Base URL of an api process, such as `http://127.0.0.1:8080`. */
  apiUrl: string;
  appId: string;
  installationIds: string[];
  /** Receives every message that a device gets for the first time. */
  onMessage?: (installationId: string, content: JsonObject, messageId: string) => void;
  /** False: messages are received and never acknowledged. */
  isAcking?: boolean;
  /** Pause before a lost connection is opened again, ± 50 %. */
  reconnectAfterMs?: number;
  /**
   * Concurrent connection attempts; default 64, so that a thousand devices do not overrun the
   * listener's backlog.
   */
  connectConcurrency?: number;
  /**
   * Creates device number `index`, by default one that checks what it receives; for a benchmark
   * with cheaper ones.
   */
  createDevice?: (fleet: DeviceFleet, installationId: string, index: number) => FleetDevice;
}

export interface DeviceCounters {
  /** Devices that are logged in now. */
  connected: number;
  /** Messages, each once per device. */
  received: number;
  /** Messages that a device had seen before. */
  repeated: number;
  acked: number;
  /** Connections that the server or the network closed. */
  lost: number;
}

/** Simulated devices of one app on the real protocol (protocol/channel.md#json-form). */
export interface SimulatedDevices {
  readonly counters: Readonly<DeviceCounters>;
  /** Close codes of lost connections, in order, the newest 1000. */
  readonly closeCodes: readonly number[];
  /** Resolves when every device is logged in. */
  allConnected(): Promise<void>;
  /** Resolves when the devices together have received `n` messages. */
  received(n: number): Promise<void>;
  acked(n: number): Promise<void>;
  /** Resolves when `n` connections were lost. */
  lost(n: number): Promise<void>;
  /** Closes all connections and rejects pending waits. */
  close(): Promise<void>;
}

/** Interval of heartbeats; real clients send one half a minute after the last received frame. */
const heartbeatEveryMs = 30_000;
const defaultConcurrency = 64;

/** Close codes for an unknown app or device: reconnecting does not help. */
const finalCodes = [4100, 4103];

const routeReply = z.object({ server: z.string(), ttl: z.number() });
interface Waiter {
  isDone(): boolean;
  resolve(): void;
  reject(error: Error): void;
}

/** State that the devices share: counters, waiters, and the server's URL. */
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

  /** Adds to a counter and resolves the waits that it fulfils. */
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
    // The server's URL is stale: the next device asks the router again.
    this.#route = undefined;
    this.count('lost', 1);
    if (finalCodes.includes(code))
      this.#rejectAll(`the channel refused a device with close code ${code}`);
  }

  /** Runs `connect` when fewer than `connectConcurrency` others run. */
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

  /** Returns the URL of the socket; asks the router once for all devices. */
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
  return routeReply.parse(await response.json()).server;
}

/**
 * Connects simulated devices: router, socket, login, data, acknowledgement. Resolves when all are
 * logged in; a device that loses its connection reconnects by itself. Rejects when the router does
 * not answer or a login is refused.
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
