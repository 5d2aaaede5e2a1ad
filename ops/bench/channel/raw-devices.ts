import type { DeviceCounters } from '../../sandbox/devices/devices.ts';
import { type DeviceFleet, RawDevice } from './raw-device.ts';

export interface RawDevicesOptions {
  /** Base URL of an api process. */
  apiUrl: string;
  appId: string;
  installationIds: string[];
  /** Receives the number of new messages of each frame. */
  onMessages(count: number): void;
  /** Pause before a lost connection is opened again, ± 50 %. */
  reconnectAfterMs: number;
}

/** Interval of heartbeats, as real clients send them. */
const heartbeatEveryMs = 30_000;
/** Pushes whose recipients are remembered, to recognise repeats. */
const rememberedPushes = 64;
const closeCodesKept = 1000;
/** Interval at which a wait for the logins looks again. */
const lookMs = 5;

const dataHead = Buffer.from('{"cmd":"data","ids":[');
const endOfIds = ']'.charCodeAt(0);

/** Connected devices of a benchmark that acknowledge every message; each reconnects after a loss. */
export class RawDevices implements DeviceFleet {
  readonly host: string;
  readonly port: number;
  readonly appId: string;
  readonly counters: DeviceCounters = { connected: 0, received: 0, repeated: 0, acked: 0, lost: 0 };
  readonly closeCodes: number[] = [];
  readonly #options: RawDevicesOptions;
  readonly #devices: RawDevice[];
  /** One byte per device for each push: 1 when it has the message. */
  readonly #seen = new Map<string, Uint8Array>();
  readonly #heartbeat: NodeJS.Timeout;
  #isClosed = false;

  constructor(options: RawDevicesOptions) {
    const url = new URL(options.apiUrl);
    this.host = url.hostname;
    this.port = Number(url.port);
    this.appId = options.appId;
    this.#options = options;
    this.#devices = options.installationIds.map((id, index) => new RawDevice(this, index, id));
    this.#heartbeat = setInterval(() => {
      for (const device of this.#devices) device.sendHeartbeat();
    }, heartbeatEveryMs);
  }

  /** Connects all devices at once. Resolves when all are logged in. */
  async connect(): Promise<void> {
    for (const device of this.#devices) device.connect();
    while (this.counters.connected < this.#devices.length)
      await new Promise((resolve) => setTimeout(resolve, lookMs));
  }

  close(): void {
    this.#isClosed = true;
    clearInterval(this.#heartbeat);
    for (const device of this.#devices) device.close();
  }

  onMessages(device: number, bytes: Buffer, from: number, to: number): string | undefined {
    const idsAt = from + dataHead.length;
    if (to < idsAt || bytes.compare(dataHead, 0, dataHead.length, from, idsAt) !== 0) return undefined;
    const ids = bytes.toString('latin1', idsAt, bytes.indexOf(endOfIds, idsAt));
    let fresh = 0;
    let count = 0;
    for (let at = 0; at < ids.length; count += 1) {
      const comma = ids.indexOf(',', at);
      const end = comma < 0 ? ids.length : comma;
      if (this.#isNew(ids.slice(at, end), device)) fresh += 1;
      at = end + 1;
    }
    this.counters.received += fresh;
    this.counters.repeated += count - fresh;
    this.counters.acked += count;
    this.#options.onMessages(fresh);
    return ids;
  }

  onEnded(device: RawDevice, code: number | undefined): void {
    if (this.#isClosed) return;
    if (code !== undefined) {
      this.counters.lost += 1;
      this.closeCodes.push(code);
      if (this.closeCodes.length > closeCodesKept) this.closeCodes.shift();
    }
    setTimeout(() => device.connect(), this.#options.reconnectAfterMs * (0.5 + Math.random()));
  }

  /** Marks a device as a recipient of a push; returns false when it is one already. */
  #isNew(id: string, device: number): boolean {
    const recipients = this.#seen.get(id) ?? this.#remember(id);
    if (recipients[device] === 1) return false;
    recipients[device] = 1;
    return true;
  }

  #remember(id: string): Uint8Array {
    const recipients = new Uint8Array(this.#devices.length);
    this.#seen.set(id, recipients);
    const [oldest] = this.#seen.keys();
    if (this.#seen.size > rememberedPushes && oldest !== undefined) this.#seen.delete(oldest);
    return recipients;
  }
}
