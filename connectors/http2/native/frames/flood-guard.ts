import { throwConnectionError } from './connection-error.ts';
import { errorCode } from './wire-format.ts';

/** So many frames that bring nothing may come in a burst, … */
const burst = 10_000;
/** … this many more for every reply, and … */
const perReply = 4;
/** … per sweep, of which there are at least two a second. */
const perSweep = 250;
/** Besides, a window may be widened so often for every frame of a body that waited for it, and every KiB in it, … */
const windowsPerStep = 4;
/** … and so many of these may be saved up: a peer reads long after we wrote. */
const maxWindows = 100_000;

/**
 * Counts frames that cost us work and bring no reply: SETTINGS, PING, WINDOW_UPDATE, RST_STREAM, empty DATA,
 * frames of closed streams and of unknown types. A peer that sends little else is told to calm down
 * (RFC 9113 10.5).
 */
export class FloodGuard {
  #count = 0;
  #uploaded = 0;
  #windows = 0;

  count(): void {
    this.#count += 1;
    if (this.#count > burst)
      throwConnectionError(errorCode.enhanceYourCalm, 'too many frames that bring nothing');
  }

  /** A window was widened. */
  countWindowUpdate(): void {
    if (this.#windows > 0) this.#windows -= 1;
    else this.count();
  }

  /** `progress`: how much of large bodies has left so far, by the measure of `Uploads`. */
  onUploadProgress(progress: number): void {
    if (progress === this.#uploaded) return;
    this.#windows = Math.min(maxWindows, this.#windows + windowsPerStep * (progress - this.#uploaded));
    this.#uploaded = progress;
  }

  onResponse(): void {
    if (this.#count > 0) this.#count = Math.max(0, this.#count - perReply);
  }

  onSweep(): void {
    this.#count = Math.max(0, this.#count - perSweep);
  }
}
