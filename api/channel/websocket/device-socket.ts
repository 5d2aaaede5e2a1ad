import type { Socket } from 'node:net';
import {
  encodeClose,
  encodeFrame,
  FrameError,
  type FrameEvents,
  FrameReader,
  opcodes,
} from './frames.ts';

/** Receiver of the events of a socket. */
export interface SocketEvents {
  onMessage(data: Buffer, isBinary: boolean): void;
  onPing(data: Buffer): void;
  onPong(): void;
  /** Called when the network has accepted all bytes of a frame. */
  onSent(): void;
  /** Called if the device violated the protocol or the connection failed. `onClosed` follows. */
  onError(error: Error): void;
  /**
   * Called when the device closes the connection or has violated the protocol. `onClosed` follows
   * when the device also ends the TCP connection.
   */
  onClosing(): void;
  /** Called when the connection has ended. `code` is 1006 if the device sent no close frame. */
  onClosed(code: number): void;
}

/** Dependencies that all sockets share. */
export interface SocketDeps {
  /** Maximum length of a device's message, in bytes. */
  limits: { frameBytes: number };
  monotonicMs(): number;
}

const noBytes = Buffer.alloc(0);
/** Codes for a connection without a close frame, and for a close frame without a code. */
const noCode = { abnormal: 1006, empty: 1005 };

/**
 * Server side of a WebSocket: frames over a TCP socket and the close handshake, without extensions.
 * Has no timers: the owner ends a socket whose close takes too long.
 */
export class DeviceSocket implements FrameEvents {
  readonly #socket: Socket;
  readonly #events: SocketEvents;
  readonly #monotonicMs: () => number;
  readonly #onSent: () => void;
  #unsentFrames = 0;
  #lastSentMs = 0;
  #reader: FrameReader | undefined;
  #isClosing = false;
  #closeCode = noCode.abnormal;

  /** Takes over the socket of an accepted upgrade. */
  constructor(socket: Socket, { limits, monotonicMs }: SocketDeps, events: SocketEvents) {
    this.#socket = socket;
    this.#events = events;
    this.#monotonicMs = monotonicMs;
    this.#reader = new FrameReader(limits.frameBytes, this);
    this.#onSent = () => {
      this.#unsentFrames -= 1;
      this.#lastSentMs = monotonicMs();
      events.onSent();
    };
  }

  /** Starts to read. `head` contains the bytes that the device sent after its upgrade request. */
  start(head: Buffer): void {
    const socket = this.#socket;
    socket.setTimeout(0);
    socket.setNoDelay(true);
    socket.on('data', (chunk: Buffer) => this.#read(chunk));
    socket.on('end', () => this.#end());
    socket.on('error', (error) => this.#events.onError(error));
    socket.on('close', () => this.#events.onClosed(this.#closeCode));
    if (head.length > 0) this.#read(Buffer.from(head));
  }

  /** True if frames can be sent. */
  get isOpen(): boolean {
    return !this.#isClosing && this.#socket.writable;
  }

  /** Number of bytes that the network has not accepted. */
  get unsentBytes(): number {
    return this.#socket.writableLength;
  }

  /** Number of frames from `send` that the network has not accepted. */
  get unsentFrames(): number {
    return this.#unsentFrames;
  }

  /**
   * Time since which the network has not accepted a frame. This is the time of the last accepted
   * frame, or the time at which the oldest unsent frame was written if no other frame was unsent
   * then.
   */
  get lastSentMs(): number {
    return this.#lastSentMs;
  }

  /** Sends the bytes of a frame, unless the connection is closing. */
  send(frame: Buffer): void {
    if (!this.isOpen) return;
    const socket = this.#socket;
    // The network usually accepts a frame at once. Without a callback, Node then schedules no work
    // for the frame.
    const isFirst = socket.writableLength === 0;
    if (isFirst) socket.write(frame);
    if (isFirst && socket.writableLength === 0) {
      this.#events.onSent();
      return;
    }
    if (this.#unsentFrames === 0) this.#lastSentMs = this.#monotonicMs();
    this.#unsentFrames += 1;
    // If the frame is the first, it is already written. The empty write then carries the callback,
    // which runs after the bytes of the frame are sent.
    socket.write(isFirst ? noBytes : frame, this.#onSent);
  }

  /**
   * Sends a close frame. The connection ends when the device replies. Until then, its messages
   * still arrive.
   */
  close(code: number, reason: string): void {
    if (!this.isOpen) return;
    this.#isClosing = true;
    this.#socket.write(encodeClose(code, reason));
  }

  terminate(): void {
    this.#isClosing = true;
    this.#socket.destroy();
  }

  onMessage(data: Buffer, isBinary: boolean): void {
    this.#events.onMessage(data, isBinary);
  }

  onPing(data: Buffer): void {
    this.#events.onPing(data);
  }

  onPong(): void {
    this.#events.onPong();
  }

  /** Replies to the close frame of the device and ends the connection. */
  onClose(code: number): void {
    this.#closeCode = code;
    this.#reader = undefined;
    if (this.isOpen)
      this.#socket.write(
        code === noCode.empty ? encodeFrame(opcodes.close, '') : encodeClose(code, ''),
      );
    this.#end();
  }

  #read(chunk: Buffer): void {
    try {
      this.#reader?.read(chunk);
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      this.#reader = undefined;
      this.#events.onError(error);
      this.close(error.code, '');
      this.#end();
    }
  }

  #end(): void {
    this.#isClosing = true;
    this.#socket.end();
    this.#events.onClosing();
  }
}
