import { randomBytes } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { hash as argon2, verify as argon2Verify } from '@node-rs/argon2';
import { Refusal } from '../../../../shared/domain/errors/errors.ts';
import { maxPasswordBytes } from '../../../../shared/domain/users/user.ts';
import { QueueFull, Semaphore } from '../../../../shared/semaphore.ts';
import { ImportedHashes, isComparedWhole } from './imported-hashes.ts';

/** OWASP's first choice for Argon2id, which the library takes by default: 19 MiB, two passes, about 15 to 25 ms. */
const cost = { memoryCost: 19_456, timeCost: 2, parallelism: 1 };
const argon2Form = /^\$argon2(id|i|d)\$v=\d+\$m=\d+,t=\d+,p=\d+\$[A-Za-z0-9+/]+\$[A-Za-z0-9+/]+$/;
const currentForm = /^\$argon2id\$v=19\$m=19456,t=2,p=1\$/;

/**
 * Hashes computed at once. They run on the four threads of libuv's pool, which DNS and files need too; one core stays
 * free for the rest of the process.
 */
const concurrency = Math.min(3, Math.max(1, availableParallelism() - 1));
/** Calls of one app that may wait, in fair order with other apps; more get 429. */
const maxWaiting = 1000;
const retryAfterSeconds = 5;

/** Result of comparing a password with a hash. */
export interface PasswordCheck {
  isMatch: boolean;
  /**
   * The hash has an outdated form or cost, was compared with the whole password, and should be
   * replaced.
   */
  needsRehash: boolean;
}

/**
 * Hashes and verifies passwords with Argon2id (develop/architecture.md#secrets), off the main thread. Every check
 * computes one hash, even for an unknown account, so that its time reveals nothing
 * (protocol/known-problems.md#timing-of-logins).
 */
export class Passwords {
  readonly #queue: Semaphore;
  readonly #importedHashes = new ImportedHashes();
  /** Hash of a random password. */
  readonly #dummy = argon2(randomBytes(32), cost);

  constructor(limits: { concurrency: number; maxWaiting: number } = { concurrency, maxWaiting }) {
    this.#queue = new Semaphore(limits);
  }

  /** Hashes a password. Throws 429 when 1000 calls of this app are waiting. */
  hash(appId: string, password: string): Promise<string> {
    return this.#run(appId, () => argon2(password, cost));
  }

  /** Compares a password with a hash, or with the dummy hash if there is no hash. Throws as `hash`. */
  verify(appId: string, password: string, hash: string | null): Promise<PasswordCheck> {
    return this.#run(appId, async () => {
      // Over-long passwords never match; hash an empty string to keep timing constant.
      const text = Buffer.byteLength(password) > maxPasswordBytes ? '' : password;
      if (hash === null) {
        await argon2Verify(await this.#dummy, text);
        return { isMatch: false, needsRehash: false };
      }
      const isMatch = argon2Form.test(hash)
        ? await argon2Verify(hash, text)
        : await this.#matchesImported(text, hash);
      return { isMatch, needsRehash: !currentForm.test(hash) && isComparedWhole(text, hash) };
    });
  }

  /** Compares with an imported hash. A mismatch computes the dummy hash too, to take as long as any other. */
  async #matchesImported(password: string, hash: string): Promise<boolean> {
    const isMatch = await this.#importedHashes.verify(password, hash);
    if (!isMatch) await argon2Verify(await this.#dummy, password);
    return isMatch;
  }

  async #run<T>(appId: string, work: () => Promise<T>): Promise<T> {
    try {
      return await this.#queue.run(appId, work);
    } catch (error) {
      if (error instanceof QueueFull) throw new Refusal('tooManyRequests', { retryAfterSeconds });
      throw error;
    }
  }

  close(): Promise<void> {
    return this.#importedHashes.close();
  }
}
