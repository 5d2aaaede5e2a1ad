import { errorCode, throwConnectionError } from './wire-format.ts';

/** Number of useless frames that are allowed in a burst. */
const burst = 10_000;
/** Number of additional useless frames allowed per response. */
const perReply = 4;
/**
 * Number of additional useless frames allowed per sweep. There are at least two sweeps per second.
 */
const perSweep = 250;
/**
 * Number of WINDOW_UPDATE frames that are allowed per DATA frame of a waiting body, and per KiB in
 * it.
 */
const windowsPerStep = 4;
/**
 * Maximum number of unused WINDOW_UPDATE frames. A peer may read a body long after it was written.
 */
const maxWindows = 100_000;

/**
 * Detects floods of frames that cause work but contain no response: SETTINGS, PING, WINDOW_UPDATE,
 * RST_STREAM, empty DATA, frames of closed streams and of unknown types. Throws ENHANCE_YOUR_CALM
 * above the limits (RFC 9113 10.5).
 */
export class FloodGuard {
  #count = 0;
  #uploaded = 0;
  #windows = 0;

  count(): void {
    this.#count += 1;
    if (this.#count > burst)
      throwConnectionError(errorCode.enhanceYourCalm, 'too many frames without a response');
  }

  /** Counts a WINDOW_UPDATE frame. */
  countWindowUpdate(): void {
    if (this.#windows > 0) this.#windows -= 1;
    else this.count();
  }

  /**
   * Allows WINDOW_UPDATE frames for the bodies written so far. `progress` is
   * `Uploads.uploadProgress`.
   */
  onUploadProgress(progress: number): void {
    if (progress === this.#uploaded) return;
    this.#windows = Math.min(
      maxWindows,
      this.#windows + windowsPerStep * (progress - this.#uploaded),
    );
    this.#uploaded = progress;
  }

  onResponse(): void {
    if (this.#count > 0) this.#count = Math.max(0, this.#count - perReply);
  }

  onSweep(): void {
    this.#count = Math.max(0, this.#count - perSweep);
  }
}
