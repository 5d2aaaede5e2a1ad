import { randomBytes } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { channelPath } from '../../../shared/domain/installations/installation.ts';
import type { DeviceFleet, FleetDevice } from '../../sandbox/devices/device.ts';
import { maskedFrame, readFrames } from './devices.ts';

/** Maximum length of the reply to the upgrade request. A longer reply is invalid. */
const headBytes = 4096;
const endOfHead = Buffer.from('\r\n\r\n');
const switching = Buffer.from('HTTP/1.1 101 ');
const opcodes = { text: 1, close: 8, ping: 9, pong: 10 } as const;
const heartbeat = '{}';
const dataHead = Buffer.from('{"cmd":"data","ids":[');
const endOfIds = ']'.charCodeAt(0);
/** Number of pushes whose recipients are remembered to detect repeats. */
const rememberedPushes = 64;
/** Close code of a connection that ended without a close frame (RFC 6455, section 7.1.5). */
const abnormalClosure = 1006;

/** Buffer that all sockets read into. A chunk is handled before the next chunk is read. */
const readBuffer = Buffer.allocUnsafe(64 * 1024);

/**
 * Remembers which devices got the message of a push, with one byte per device for each of the
 * latest pushes.
 */
export class Recipients {
  readonly #devices: number;
  readonly #pushes = new Map<string, Uint8Array>();

  constructor(devices: number) {
    this.#devices = devices;
  }

  /** Records that a device got a message. Returns false if the device got the message before. */
  add(messageId: string, device: number): boolean {
    const recipients = this.#pushes.get(messageId) ?? this.#remember(messageId);
    if (recipients[device] === 1) return false;
    recipients[device] = 1;
    return true;
  }

  #remember(messageId: string): Uint8Array {
    const recipients = new Uint8Array(this.#devices);
    this.#pushes.set(messageId, recipients);
    const [oldest] = this.#pushes.keys();
    if (this.#pushes.size > rememberedPushes && oldest !== undefined) this.#pushes.delete(oldest);
    return recipients;
  }
}

/** State that all raw devices of a process share. */
export interface RawDevices {
  recipients: Recipients;
  /** Called after each frame with messages. */
  onMessages(): void;
}

/**
 * One simulated device of the benchmark, on the JSON protocol (protocol/channel.md#json-form). It
 * encodes and decodes frames on a TCP socket itself, so that 10,000 devices use little of the CPU
 * time that they share with the service. It connects directly to the api, not through the router.
 */
export class RawDevice implements FleetDevice {
  readonly #fleet: DeviceFleet;
  readonly #shared: RawDevices;
  readonly #index: number;
  readonly #installationId: string;
  #socket: Socket | undefined;
  /** Received bytes of an incomplete frame. */
  #partialFrame: Buffer | undefined;
  #isConnected = false;
  #isUpgraded = false;
  #isLoggedIn = false;
  #closeCode: number = abnormalClosure;

  constructor(
    fleet: DeviceFleet,
    shared: RawDevices,
    device: { installationId: string; index: number },
  ) {
    this.#fleet = fleet;
    this.#shared = shared;
    this.#index = device.index;
    this.#installationId = device.installationId;
  }

  connectOnce(): Promise<void> {
    const { hostname: host, port } = new URL(this.#fleet.options.apiUrl);
    const socket = connect({
      host,
      port: Number(port),
      noDelay: true,
      onread: {
        buffer: readBuffer,
        callback: (bytes: number) => this.#onRead(readBuffer.subarray(0, bytes)),
      },
    });
    this.#socket = socket;
    this.#isConnected = false;
    this.#isUpgraded = false;
    this.#partialFrame = undefined;
    this.#closeCode = abnormalClosure;
    const key = randomBytes(16).toString('base64');
    socket.on('connect', () => {
      this.#isConnected = true;
      socket.write(
        `GET ${channelPath} HTTP/1.1\r\nHost: ${host}:${port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
          `Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}\r\n\r\n`,
      );
    });
    // The close event that follows handles the error.
    socket.on('error', () => {});
    return new Promise((resolve) => {
      socket.on('close', () => {
        this.#onClosed();
        resolve();
      });
    });
  }

  sendHeartbeat(): void {
    if (this.#isLoggedIn) this.#send(heartbeat);
  }

  close(): void {
    this.#socket?.destroy();
  }

  #onClosed(): void {
    if (this.#isLoggedIn) this.#fleet.count('connected', -1);
    this.#isLoggedIn = false;
    // Connections are refused while the api restarts. A refused attempt is not a lost connection.
    if (this.#isConnected && !this.#fleet.closeSignal.aborted)
      this.#fleet.countLoss(this.#closeCode);
  }

  /** Returns true so that the socket continues to read. */
  #onRead(chunk: Buffer): boolean {
    const bytes = this.#partialFrame ? Buffer.concat([this.#partialFrame, chunk]) : chunk;
    const start = this.#isUpgraded ? 0 : this.#readHead(bytes);
    const read = this.#isUpgraded
      ? readFrames(bytes, start, (opcode, from, to) => this.#onFrame(bytes, opcode, from, to))
      : 0;
    // The remaining bytes are copied because the read buffer is shared.
    this.#partialFrame = read === bytes.length ? undefined : Buffer.from(bytes.subarray(read));
    return true;
  }

  /**
   * Reads the reply to the upgrade request, and logs in when the reply is complete. Returns the
   * offset of the end of the reply.
   */
  #readHead(bytes: Buffer): number {
    const end = bytes.indexOf(endOfHead);
    if (end < 0) {
      if (bytes.length > headBytes) this.close();
      return 0;
    }
    if (bytes.indexOf(switching) !== 0) {
      this.close();
      return 0;
    }
    this.#isUpgraded = true;
    const { appId } = this.#fleet.options;
    this.#send(JSON.stringify({ cmd: 'login', appId, installationId: this.#installationId }));
    this.#send(heartbeat);
    return end + endOfHead.length;
  }

  #onFrame(bytes: Buffer, opcode: number, from: number, to: number): void {
    if (opcode === opcodes.text) this.#onText(bytes, from, to);
    else if (opcode === opcodes.ping)
      this.#socket?.write(maskedFrame(opcodes.pong, bytes.toString('latin1', from, to)));
    else if (opcode === opcodes.close) {
      if (to - from >= 2) this.#closeCode = bytes.readUInt16BE(from);
      this.#socket?.end();
    }
  }

  #onText(bytes: Buffer, from: number, to: number): void {
    // The heartbeat that follows the login is answered if the login succeeded.
    if (to - from === heartbeat.length) {
      if (!this.#isLoggedIn) this.#fleet.count('connected', 1);
      this.#isLoggedIn = true;
      return;
    }
    const idsAt = from + dataHead.length;
    if (to < idsAt || bytes.compare(dataHead, 0, dataHead.length, from, idsAt) !== 0) return;
    const ids = bytes.toString('latin1', idsAt, bytes.indexOf(endOfIds, idsAt));
    this.#countMessages(ids);
    const { appId } = this.#fleet.options;
    this.#send(
      `{"cmd":"ack","appId":"${appId}","installationId":"${this.#installationId}","ids":[${ids}]}`,
    );
  }

  /** Counts the messages of a data frame. `ids` is the text of the frame's list of ids. */
  #countMessages(ids: string): void {
    let fresh = 0;
    let count = 0;
    for (let at = 0; at < ids.length; count += 1) {
      const comma = ids.indexOf(',', at);
      const end = comma < 0 ? ids.length : comma;
      if (this.#shared.recipients.add(ids.slice(at, end), this.#index)) fresh += 1;
      at = end + 1;
    }
    this.#fleet.count('received', fresh);
    this.#fleet.count('repeated', count - fresh);
    this.#fleet.count('acked', count);
    this.#shared.onMessages();
  }

  #send(text: string): void {
    this.#socket?.write(maskedFrame(opcodes.text, text));
  }
}
