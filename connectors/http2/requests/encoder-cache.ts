import type { HeaderEncoder } from '../hpack/encoder.ts';
import type { ActiveBatch } from './active-batch.ts';
import { RequestEncoder } from './encoded-request.ts';

/** Encoders kept for further batches of the same push; a connection seldom serves more pushes at a time. */
const keptEncoders = 4;

/** Encoders of one connection. Batches of a push share one, so that their common part is encoded once. */
export class EncoderCache {
  readonly #hpack: HeaderEncoder;
  readonly #byBatch = new WeakMap<ActiveBatch, RequestEncoder>();
  /** Oldest first. */
  readonly #recent: RequestEncoder[] = [];

  constructor(hpack: HeaderEncoder) {
    this.#hpack = hpack;
  }

  /** Returns the encoder of a batch. */
  of(batch: ActiveBatch): RequestEncoder {
    const known = this.#byBatch.get(batch);
    if (known) return known;
    const encoder = this.#recent.find((one) => one.fits(batch)) ?? this.#add(batch);
    this.#byBatch.set(batch, encoder);
    return encoder;
  }

  #add(batch: ActiveBatch): RequestEncoder {
    const encoder = new RequestEncoder(batch, this.#hpack);
    this.#recent.push(encoder);
    if (this.#recent.length > keptEncoders) this.#recent.shift();
    return encoder;
  }
}
