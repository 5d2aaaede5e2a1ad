import { WebSocket } from 'ws';
import { z } from 'zod';
import { sleep } from '../../../shared/clock.ts';
import { isJsonObject, type JsonObject } from '../../../shared/domain/json.ts';

/** What the devices of one app share: the address, the counters, and the end. */
export interface DeviceFleet {
  readonly options: {
    appId: string;
    isAcking?: boolean;
    reconnectAfterMs?: number;
    onMessage?: (installationId: string, content: JsonObject, letterId: string) => void;
  };
  readonly end: AbortSignal;
  count(name: 'connected' | 'received' | 'repeated' | 'acked', n: number): void;
  /** A connection ended that we had not closed. */
  countLoss(code: number): void;
  /** Address of the socket. Rejects when the router cannot be asked. */
  route(): Promise<string>;
  /** Runs `connect` when few others do. */
  inTurn(connect: () => Promise<void>): Promise<void>;
}

/** Letters a device remembers, to recognise a repeat. */
const lettersRemembered = 256;

/** Of the handshakes that open and close a connection. */
const timeouts = { handshakeTimeout: 30_000, closeTimeout: 2000 };

const dataFrame = z.object({
  cmd: z.literal('data'),
  ids: z.array(z.string()),
  msg: z.array(z.custom<JsonObject>(isJsonObject)),
});

/** One simulated device: connects, logs in, receives, acknowledges, and comes back when it is cut off. */
export class Device {
  readonly #fleet: DeviceFleet;
  readonly #installationId: string;
  readonly #seen = new Set<string>();
  #socket: WebSocket | undefined;
  #isIn = false;

  constructor(fleet: DeviceFleet, installationId: string) {
    this.#fleet = fleet;
    this.#installationId = installationId;
  }

  async live(): Promise<void> {
    const signal = this.#fleet.end;
    const { reconnectAfterMs = 5000 } = this.#fleet.options;
    while (!signal.aborted) {
      await this.#connectOnce();
      if (!signal.aborted) await sleep(reconnectAfterMs * (0.5 + Math.random()), signal);
    }
  }

  beat(): void {
    if (this.#isIn) this.#socket?.send('{}');
  }

  close(): void {
    this.#socket?.close(1000);
  }

  /** Resolves when the connection has ended, however. */
  async #connectOnce(): Promise<void> {
    let ended: Promise<void> = Promise.resolve();
    await this.#fleet.inTurn(async () => {
      const url = await this.#fleet.route().catch(() => undefined);
      if (url === undefined || this.#fleet.end.aborted) return;
      const socket = new WebSocket(url, { perMessageDeflate: false, ...timeouts });
      this.#socket = socket;
      ended = this.#untilEnd(socket);
      await Promise.race([ended, this.#untilLogin(socket)]);
    });
    await ended;
  }

  #untilEnd(socket: WebSocket): Promise<void> {
    return new Promise((resolve) => {
      // The following close event reports the error again.
      socket.on('error', () => {});
      socket.on('close', (code) => {
        if (this.#isIn) this.#fleet.count('connected', -1);
        this.#isIn = false;
        if (!this.#fleet.end.aborted) this.#fleet.countLoss(code);
        resolve();
      });
    });
  }

  #untilLogin(socket: WebSocket): Promise<void> {
    const { appId } = this.#fleet.options;
    const login = { cmd: 'login', appId, installationId: this.#installationId };
    socket.on('open', () => {
      socket.send(JSON.stringify(login));
      socket.send('{}');
    });
    return new Promise((resolve) => {
      socket.on('message', (data) => {
        this.#hear(socket, String(data));
        resolve();
      });
    });
  }

  #hear(socket: WebSocket, text: string): void {
    // The heartbeat sent behind the login is answered when the login succeeded.
    if (text === '{}') this.#welcome();
    const frame = dataFrame.safeParse(JSON.parse(text));
    if (!frame.success) return;
    const { ids, msg } = frame.data;
    ids.forEach((id, i) => {
      this.#take(id, msg[i] ?? {});
    });
    if (this.#fleet.options.isAcking === false) return;
    const { appId } = this.#fleet.options;
    socket.send(JSON.stringify({ cmd: 'ack', appId, installationId: this.#installationId, ids }));
    this.#fleet.count('acked', ids.length);
  }

  #welcome(): void {
    if (this.#isIn) return;
    this.#isIn = true;
    this.#fleet.count('connected', 1);
  }

  #take(id: string, content: JsonObject): void {
    if (this.#seen.has(id)) {
      this.#fleet.count('repeated', 1);
      return;
    }
    this.#seen.add(id);
    const [oldest] = this.#seen;
    if (this.#seen.size > lettersRemembered && oldest !== undefined) this.#seen.delete(oldest);
    this.#fleet.options.onMessage?.(this.#installationId, content, id);
    this.#fleet.count('received', 1);
  }
}
