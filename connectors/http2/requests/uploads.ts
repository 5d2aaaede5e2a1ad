/**
 * Body that did not fit into the windows, a frame or the socket when its request was written (RFC
 * 9113 5.2).
 */

import type { Output } from '../frames/output.ts';
import {
  flag,
  frame,
  frameHeaderBytes,
  maxWindowBytes,
  writeFrameHead,
} from '../frames/wire-format.ts';

interface Upload {
  id: number;
  body: Buffer;
  at: number;
  /** Flow-control window of the stream. */
  window: number;
}

/** Current limits of the connection. */
export interface UploadLimits {
  connectionWindow: number;
  frameBytes: number;
  /** Maximum number of unsent bytes. */
  backlogBytes: number;
}

export class Uploads {
  /**
   * Number of written frames plus one per KiB in them. A peer may send this number of WINDOW_UPDATE
   * frames.
   */
  uploadProgress = 0;
  readonly #uploads = new Map<number, Upload>();

  get count(): number {
    return this.#uploads.size;
  }

  has(id: number): boolean {
    return this.#uploads.has(id);
  }

  add(id: number, body: Buffer, window: number): void {
    this.#uploads.set(id, { id, body, at: 0, window });
  }

  drop(id: number): boolean {
    return this.#uploads.delete(id);
  }

  /** Handles a WINDOW_UPDATE of a stream. Returns false if the window exceeds the maximum. */
  onWindowUpdate(id: number, bytes: number): boolean {
    const upload = this.#uploads.get(id);
    if (upload) upload.window += bytes;
    return upload === undefined || upload.window <= maxWindowBytes;
  }

  /**
   * Adjusts all stream windows to a new initial window. A window may become negative (RFC 9113
   * 6.9.2).
   */
  adjustWindows(bytes: number): boolean {
    for (const upload of this.#uploads.values()) {
      upload.window += bytes;
      if (upload.window > maxWindowBytes) return false;
    }
    return true;
  }

  /**
   * Writes as much as the limits allow, oldest body first. Returns the number of bytes taken from
   * the connection's window.
   */
  pump(output: Output, limits: UploadLimits): number {
    let left = limits.connectionWindow;
    for (const upload of this.#uploads.values()) {
      left -= this.#pumpOne(upload, output, { ...limits, connectionWindow: left });
      if (left <= 0) break;
    }
    return limits.connectionWindow - left;
  }

  #pumpOne(upload: Upload, output: Output, limits: UploadLimits): number {
    let taken = 0;
    while (output.backlog < limits.backlogBytes) {
      const rest = upload.body.length - upload.at;
      const length = Math.min(
        rest,
        upload.window,
        limits.connectionWindow - taken,
        limits.frameBytes,
      );
      if (length <= 0) break;
      const flags = length === rest ? flag.endStream : 0;
      output.reserve(frameHeaderBytes);
      output.length = writeFrameHead(output.bytes, output.length, {
        length,
        type: frame.data,
        flags,
        streamId: upload.id,
      });
      output.append(upload.body.subarray(upload.at, upload.at + length));
      this.uploadProgress += 1 + (length >>> 10);
      upload.at += length;
      upload.window -= length;
      taken += length;
      if (length === rest) {
        this.#uploads.delete(upload.id);
        break;
      }
    }
    return taken;
  }
}
