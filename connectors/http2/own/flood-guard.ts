import { fault } from './fault.ts';
import { errorCode } from './wire-format.ts';

/** So many frames that bring nothing may come in a burst, … */
const burst = 10_000;
/** … this many more for every reply and for every DATA frame that waited for a window, and … */
const perProgress = 4;
/** … per sweep, of which there are at least two a second. */
const perSweep = 250;

/**
 * Counts frames that cost us work and bring no reply: SETTINGS, PING, WINDOW_UPDATE, RST_STREAM, empty DATA,
 * frames of closed streams and of unknown types. A peer that sends little else is told to calm down
 * (RFC 9113 10.5).
 */
export class FloodGuard {
  #count = 0;

  note(): void {
    this.#count += 1;
    if (this.#count > burst) fault(errorCode.enhanceYourCalm, 'too many frames that bring nothing');
  }

  /** So many replies came, or DATA frames left. */
  onProgress(steps: number): void {
    if (this.#count > 0) this.#count = Math.max(0, this.#count - perProgress * steps);
  }

  onSweep(): void {
    this.#count = Math.max(0, this.#count - perSweep);
  }
}
