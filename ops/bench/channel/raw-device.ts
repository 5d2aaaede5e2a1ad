import { randomBytes } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { channelPath } from '../../../shared/domain/installations/installation.ts';
import type { DeviceCounters } from '../../sandbox/devices/devices.ts';
import { maskedFrame, readFrames } from './raw-frames.ts';

/** State that the devices share. */
export interface DeviceFleet {
  readonly host: string;
  readonly port: number;
  readonly appId: string;
  readonly counters: DeviceCounters;
  /**
   * Counts the messages of a data frame, which is `bytes` from `from` to `to`. Returns their ids as they stand in the frame,
   * undefined for another frame.
   */
  onMessages(device: number, bytes: Buffer, from: number, to: number): string | undefined;
  /** `code` is undefined when nothing listened at the port. */
  onEnded(device: RawDevice, code: number | undefined): void;
}

/** Longest answer to the upgrade; anything longer is not an answer. */
const headBytes = 4096;
const endOfHead = Buffer.from('\r\n\r\n');
const switching = Buffer.from('HTTP/1.1 101 ');
const opcodes = { text: 1, close: 8, ping: 9, pong: 10 } as const;
const heartbeat = '{}';
/** Close code of a connection that ended without a close frame (RFC 6455, section 7.1.5). */
const abnormalClosure = 1006;

/** All sockets read into one buffer: a read is handled before the next one begins. */
const readBuffer = Buffer.allocUnsafe(64 * 1024);

/**
 * One simulated device of the benchmark, on the JSON protocol (protocol/channel.md#json-form): a TCP socket with hand-written
 * frames, so that 10,000 devices take a small part of the processor time that they share with the service.
 */
export class RawDevice {
  readonly #fleet: DeviceFleet;
  readonly #index: number;
  readonly #installationId: string;
  #socket: Socket | undefined;
  /** Received bytes that are no complete frame yet. */
  #rest: Buffer | undefined;
  #isConnected = false;
  #isUpgraded = false;
  #isLoggedIn = false;
  #closeCode: number = abnormalClosure;

  constructor(fleet: DeviceFleet, index: number, installationId: string) {
    this.#fleet = fleet;
    this.#index = index;
    this.#installationId = installationId;
  }

  /** Connects and logs in; after a loss the fleet decides when to call it again. */
  connect(): void {
    const { host, port } = this.#fleet;
    const socket = connect({
      host,
      port,
      noDelay: true,
      onread: {
        buffer: readBuffer,
        callback: (bytes: number) => this.#onRead(readBuffer.subarray(0, bytes)),
      },
    });
    this.#socket = socket;
    this.#isConnected = false;
    this.#isUpgraded = false;
    this.#rest = undefined;
    this.#closeCode = abnormalClosure;
    const key = randomBytes(16).toString('base64');
    socket.on('connect', () => {
      this.#isConnected = true;
      socket.write(
        `GET ${channelPath} HTTP/1.1\r\nHost: ${host}:${port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
          `Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}\r\n\r\n`,
      );
    });
    // The following close event reports the error again.
    socket.on('error', () => {});
    socket.on('close', () => this.#onClosed());
  }

  sendHeartbeat(): void {
    if (this.#isLoggedIn) this.#send(heartbeat);
  }

  close(): void {
    this.#socket?.destroy();
  }

  #onClosed(): void {
    if (this.#isLoggedIn) this.#fleet.counters.connected -= 1;
    this.#isLoggedIn = false;
    this.#fleet.onEnded(this, this.#isConnected ? this.#closeCode : undefined);
  }

  /** Returns true: the socket goes on reading. */
  #onRead(chunk: Buffer): boolean {
    const bytes = this.#rest ? Buffer.concat([this.#rest, chunk]) : chunk;
    const start = this.#isUpgraded ? 0 : this.#readHead(bytes);
    const read = this.#isUpgraded
      ? readFrames(bytes, start, (opcode, from, to) => this.#onFrame(bytes, opcode, from, to))
      : 0;
    // The buffer is shared, so what is left of it is copied.
    this.#rest = read === bytes.length ? undefined : Buffer.from(bytes.subarray(read));
    return true;
  }

  /** Reads the answer to the upgrade and returns where it ends; logs in when it is complete. */
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
    const { appId } = this.#fleet;
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
    // The heartbeat sent after the login gets an answer when the login succeeded.
    if (to - from === heartbeat.length) {
      if (!this.#isLoggedIn) this.#fleet.counters.connected += 1;
      this.#isLoggedIn = true;
      return;
    }
    const ids = this.#fleet.onMessages(this.#index, bytes, from, to);
    if (ids === undefined) return;
    const { appId } = this.#fleet;
    this.#send(`{"cmd":"ack","appId":"${appId}","installationId":"${this.#installationId}","ids":[${ids}]}`);
  }

  #send(text: string): void {
    this.#socket?.write(maskedFrame(opcodes.text, text));
  }
}
