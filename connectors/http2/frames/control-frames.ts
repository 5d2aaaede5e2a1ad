/**
 * Frames of the client that contain no request: preface, SETTINGS, PING, WINDOW_UPDATE, RST_STREAM,
 * GOAWAY (RFC 9113 6).
 */

import { maxHeaderListBytes, streamWindowBytes } from '../streams/response-reader.ts';
import type { Output } from './output.ts';
import {
  defaultWindowBytes,
  flag,
  frame,
  frameOf,
  goawayFrame,
  numberFrame,
  preface,
  setting,
  settingsFrame,
} from './wire-format.ts';

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
  #pong: ((error: null) => void) | null = null;
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
  sendPing(callback: (error: null) => void): void {
    this.#pong = callback;
    this.#output.append(frameOf(frame.ping, 0, 0, Buffer.alloc(8)));
  }

  onPing(isAck: boolean, opaque: Buffer): void {
    if (!isAck) this.#output.appendControl(frameOf(frame.ping, flag.ack, 0, opaque));
    else {
      this.#pong?.(null);
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
