import { randomBytes } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { channelPath } from '../../../shared/domain/installations/installation.ts';
import type { DeviceFleet, FleetDevice } from '../../sandbox/devices/device.ts';
import { maskedFrame, readFrames } from './devices.ts';

/** Longest answer to the upgrade; anything longer is not an answer. */
const headBytes = 4096;
const endOfHead = Buffer.from('\r\n\r\n');
const switching = Buffer.from('HTTP/1.1 101 ');
const opcodes = { text: 1, close: 8, ping: 9, pong: 10 } as const;
const heartbeat = '{}';
const dataHead = Buffer.from('{"cmd":"data","ids":[');
const endOfIds = ']'.charCodeAt(0);
/** Pushes whose recipients are remembered, to recognise repeats. */
const rememberedPushes = 64;
/** Close code of a connection that ended without a close frame (RFC 6455, section 7.1.5). */
const abnormalClosure = 1006;

/** All sockets read into one buffer: a read is handled before the next one begins. */
const readBuffer = Buffer.allocUnsafe(64 * 1024);

/** Devices that have the message of a push: one byte per device for each of the latest pushes. */
export class Recipients {
  readonly #devices: number;
  readonly #pushes = new Map<string, Uint8Array>();

  constructor(devices: number) {
    this.#devices = devices;
  }

  /** Marks a device as a recipient; returns false when it is one already. */
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

/** What the raw devices of a process share beside their fleet. */
export interface RawDevices {
  recipients: Recipients;
  /** Called after each frame with messages. */
  onMessages(): void;
}

/**
 * One simulated device of the benchmark, on the JSON protocol (protocol/channel.md#json-form): a
 * TCP socket with hand-written frames, so that 10,000 devices take a small part of the CPU time
 * that they share with the service. It connects to the address of the api, without the router.
 */
export class RawDevice implements FleetDevice {
  readonly #fleet: DeviceFleet;
  readonly #shared: RawDevices;
  readonly #index: number;
  readonly #installationId: string;
  #socket: Socket | undefined;
  /** Received bytes that are no complete frame yet. */
  #rest: Buffer | undefined;
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
    // Nothing listens while the api starts again: such an attempt is no lost connection.
    if (this.#isConnected && !this.#fleet.closeSignal.aborted)
      this.#fleet.countLoss(this.#closeCode);
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
    // The heartbeat sent after the login gets an answer when the login succeeded.
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

  /** Counts the messages of a data frame by their ids as they stand in it. */
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
