import { errorCode, throwConnectionError } from './wire-format.ts';

/** Useless frames allowed in a burst. */
const burst = 10_000;
/** Further ones for every response. */
const perReply = 4;
/** Further ones per sweep; there are at least two sweeps a second. */
const perSweep = 250;
/** WINDOW_UPDATE frames allowed in addition, per DATA frame of a waiting body and per KiB in it. */
const windowsPerStep = 4;
/** Most of these that accumulate: a peer may read long after the write. */
const maxWindows = 100_000;

/**
 * Detects floods of frames that cost work and carry no response: SETTINGS, PING, WINDOW_UPDATE,
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

  /** Counts a WINDOW_UPDATE. */
  countWindowUpdate(): void {
    if (this.#windows > 0) this.#windows -= 1;
    else this.count();
  }

  /** Grants WINDOW_UPDATE frames for written bodies; `progress` is that of `Uploads`. */
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
