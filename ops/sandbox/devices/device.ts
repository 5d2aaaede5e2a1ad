import { WebSocket } from 'ws';
import { z } from 'zod';
import { isJsonObject, type JsonObject, parseExactly } from '../../../shared/domain/json.ts';

/**
 * A device of the fleet. The fleet reconnects it after a lost connection, until the fleet is
 * closed.
 */
export interface FleetDevice {
  /** Connects and logs in. Resolves when the connection ends, for any reason. */
  connectOnce(): Promise<void>;
  sendHeartbeat(): void;
  close(): void;
}

/** State that the devices of one app share. */
export interface DeviceFleet {
  readonly options: {
    apiUrl: string;
    appId: string;
    isAcking?: boolean;
    onMessage?: (installationId: string, content: JsonObject, messageId: string) => void;
  };
  readonly closeSignal: AbortSignal;
  count(name: 'connected' | 'received' | 'repeated' | 'acked', n: number): void;
  /** Counts a connection that the server or the network has closed. */
  countLoss(code: number): void;
  /** Returns the URL of the socket. Rejects if the router does not respond. */
  route(): Promise<string>;
  /** Runs `connect`. Respects the limit of concurrent connection attempts. */
  connectWithLimit(connect: () => Promise<void>): Promise<void>;
}

/** Number of message ids that a device remembers to recognise repeats. */
const rememberedMessages = 256;

/** Timeouts for opening and closing a connection. */
const timeouts = { handshakeTimeout: 30_000, closeTimeout: 2000 };

const dataFrame = z.object({
  cmd: z.literal('data'),
  ids: z.array(z.string()),
  msg: z.array(z.custom<JsonObject>(isJsonObject)),
});

/** Simulated device: connects, logs in, receives messages and acknowledges them. */
export class Device implements FleetDevice {
  readonly #fleet: DeviceFleet;
  readonly #installationId: string;
  readonly #seen = new Set<string>();
  #socket: WebSocket | undefined;
  #isLoggedIn = false;

  constructor(fleet: DeviceFleet, installationId: string) {
    this.#fleet = fleet;
    this.#installationId = installationId;
  }

  sendHeartbeat(): void {
    if (this.#isLoggedIn) this.#socket?.send('{}');
  }

  close(): void {
    this.#socket?.close(1000);
  }

  async connectOnce(): Promise<void> {
    let ended: Promise<void> = Promise.resolve();
    await this.#fleet.connectWithLimit(async () => {
      const url = await this.#fleet.route().catch(() => undefined);
      if (url === undefined || this.#fleet.closeSignal.aborted) return;
      const socket = new WebSocket(url, { perMessageDeflate: false, ...timeouts });
      this.#socket = socket;
      ended = this.#untilEnd(socket);
      await Promise.race([ended, this.#untilLogin(socket)]);
    });
    await ended;
  }

  #untilEnd(socket: WebSocket): Promise<void> {
    return new Promise((resolve) => {
      // The close event that follows reports the error too.
      socket.on('error', () => {});
      socket.on('close', (code) => {
        if (this.#isLoggedIn) this.#fleet.count('connected', -1);
        this.#isLoggedIn = false;
        if (!this.#fleet.closeSignal.aborted) this.#fleet.countLoss(code);
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
        this.#receive(socket, String(data));
        resolve();
      });
    });
  }

  #receive(socket: WebSocket, text: string): void {
    // The heartbeat after the login is answered if the login succeeded.
    if (text === '{}') this.#markConnected();
    const frame = dataFrame.safeParse(parseExactly(text));
    if (!frame.success) return;
    const { ids, msg } = frame.data;
    ids.forEach((id, i) => {
      this.#receiveMessage(id, msg[i] ?? {});
    });
    if (this.#fleet.options.isAcking === false) return;
    const { appId } = this.#fleet.options;
    socket.send(JSON.stringify({ cmd: 'ack', appId, installationId: this.#installationId, ids }));
    this.#fleet.count('acked', ids.length);
  }

  #markConnected(): void {
    if (this.#isLoggedIn) return;
    this.#isLoggedIn = true;
    this.#fleet.count('connected', 1);
  }

  #receiveMessage(id: string, content: JsonObject): void {
    if (this.#seen.has(id)) {
      this.#fleet.count('repeated', 1);
      return;
    }
    this.#seen.add(id);
    const [oldest] = this.#seen;
    if (this.#seen.size > rememberedMessages && oldest !== undefined) this.#seen.delete(oldest);
    this.#fleet.options.onMessage?.(this.#installationId, content, id);
    this.#fleet.count('received', 1);
  }
}
