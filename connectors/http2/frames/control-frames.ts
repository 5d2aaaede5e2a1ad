import { maxHeaderListBytes, streamWindowBytes } from '../streams/response-reader.ts';
import type { Output } from './output.ts';
import {
  defaultFrameBytes,
  defaultWindowBytes,
  errorCode,
  flag,
  frame,
  frameOf,
  goawayFrame,
  maxWindowBytes,
  numberFrame,
  preface,
  readUint32,
  setting,
  settingsFrame,
  throwConnectionError,
} from './wire-format.ts';

/**
 * Frames of the client that contain no request: preface, SETTINGS, PING, WINDOW_UPDATE, RST_STREAM,
 * GOAWAY (RFC 9113 6).
 */

/** Receive window of the connection in bytes. */
export const receiveWindowBytes = 1_048_576;

const ourSettings = settingsFrame([
  [setting.enablePush, 0],
  [setting.initialWindowSize, streamWindowBytes],
  [setting.maxHeaderListSize, maxHeaderListBytes],
]);

/** Appends control frames to the output. The caller flushes. */
export class ControlFrames {
  readonly #output: Output;
  #pong: (() => void) | null = null;
  /** Time at which our SETTINGS were sent; 0 after they were acknowledged. */
  #settingsSentAtMs = 0;

  constructor(output: Output) {
    this.#output = output;
  }

  sendPreface(nowMs: number): void {
    this.#settingsSentAtMs = nowMs;
    this.#output.append(preface);
    this.#output.append(ourSettings);
    this.sendWindowUpdate(receiveWindowBytes - defaultWindowBytes);
  }

  /**
   * Handles the acknowledgement of our SETTINGS. Returns the round trip in seconds for the first
   * acknowledgement, then null.
   */
  onSettingsAck(nowMs: number): number | null {
    const seconds = this.#settingsSentAtMs > 0 ? (nowMs - this.#settingsSentAtMs) / 1000 : null;
    this.#settingsSentAtMs = 0;
    return seconds;
  }

  sendSettingsAck(): void {
    this.#output.appendControl(frameOf(frame.settings, flag.ack, 0, Buffer.alloc(0)));
  }

  /** Sends a PING. Calls `callback` when the acknowledgement arrives. */
  sendPing(callback: () => void): void {
    this.#pong = callback;
    this.#output.append(frameOf(frame.ping, 0, 0, Buffer.alloc(8)));
  }

  onPing(isAck: boolean, opaque: Buffer): void {
    if (!isAck) this.#output.appendControl(frameOf(frame.ping, flag.ack, 0, opaque));
    else {
      this.#pong?.();
      this.#pong = null;
    }
  }

  /** Increases the receive window of the connection. */
  sendWindowUpdate(bytes: number): void {
    this.#output.appendControl(numberFrame(frame.windowUpdate, 0, bytes));
  }

  sendReset(id: number, code: number): void {
    this.#output.appendControl(numberFrame(frame.reset, id, code));
  }

  sendGoaway(code: number): void {
    this.#output.append(goawayFrame(code));
  }
}

/** Settings of the peer (RFC 9113 6.5.2). */
export interface PeerSettings {
  maxConcurrentStreams: number | null;
  initialWindowSize: number;
  maxFrameSize: number;
}

export const initialSettings: PeerSettings = {
  maxConcurrentStreams: null,
  initialWindowSize: defaultWindowBytes,
  maxFrameSize: defaultFrameBytes,
};

/**
 * Applies a SETTINGS frame and returns the new settings. Ignores unknown settings. Throws if a
 * value is invalid. Passes each size of the header table to `onTableSize` in order, because the
 * smallest size counts too (RFC 7541 4.2).
 */
export function applySettings(
  known: PeerSettings,
  payload: Buffer,
  onTableSize: (bytes: number) => void,
): PeerSettings {
  const settings = { ...known };
  for (let at = 0; at < payload.length; at += 6) {
    const value = readUint32(payload, at + 2);
    switch (payload.readUInt16BE(at)) {
      case setting.headerTableSize:
        onTableSize(value);
        break;
      case setting.enablePush:
        // A server may only send 0 (RFC 9113 6.5.2).
        if (value !== 0) throwConnectionError(errorCode.protocol, 'ENABLE_PUSH of a server');
        break;
      case setting.maxConcurrentStreams:
        settings.maxConcurrentStreams = value;
        break;
      case setting.initialWindowSize:
        if (value > maxWindowBytes)
          throwConnectionError(errorCode.flowControl, 'an initial window above 2^31-1');
        settings.initialWindowSize = value;
        break;
      case setting.maxFrameSize:
        if (value < defaultFrameBytes || value > 0xff_ffff)
          throwConnectionError(errorCode.protocol, 'an invalid frame size');
        settings.maxFrameSize = value;
        break;
    }
  }
  return settings;
}
