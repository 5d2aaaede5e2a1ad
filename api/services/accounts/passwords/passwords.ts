import { randomBytes } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { hash as argon2, verify as argon2Verify } from '@node-rs/argon2';
import { Refusal } from '../../../../shared/domain/errors/errors.ts';
import { maxPasswordBytes } from '../../../../shared/domain/users/members.ts';
import { FairQueue, QueueFull } from '../../../../shared/fairness/fair-queue.ts';
import { ImportedHashes } from './imported-hashes.ts';

/** OWASP's first choice for Argon2id, which the library takes by default: 19 MiB, two passes, about 15 to 25 ms. */
const cost = { memoryCost: 19_456, timeCost: 2, parallelism: 1 };
const argon2Form = /^\$argon2(id|i|d)\$v=\d+\$m=\d+,t=\d+,p=\d+\$[A-Za-z0-9+/]+\$[A-Za-z0-9+/]+$/;
const currentForm = /^\$argon2id\$v=19\$m=19456,t=2,p=1\$/;

/**
 * Hashing runs on the four threads that Node keeps for such work, which names and files need too; one core is
 * left to the rest of the process.
 */
const atOnce = Math.min(3, Math.max(1, availableParallelism() - 1));
/** Calls of one app that may wait, in turns with those of other apps; more are answered 429. */
const maxWaiting = 1000;
const retryAfterSeconds = 5;

export interface PasswordCheck {
  isMatch: boolean;
  /** The hash is not of today's form: make a new one. */
  needsRehash: boolean;
}

/**
 * Passwords as Argon2id (develop/architecture.md#secrets), off the main thread. Every check costs one hash, whether there is something
 * to compare with or not, so that the time says nothing about an account (protocol/known-problems.md#timing-of-logins).
 */
export class Passwords {
  readonly #queue: FairQueue;
  readonly #importedHashes = new ImportedHashes();
  /** Of a password that nobody knows. */
  readonly #dummy = argon2(randomBytes(32), cost);

  /** `limits` are those of this process. */
  constructor(limits: { atOnce: number; maxWaiting: number } = { atOnce, maxWaiting }) {
    this.#queue = new FairQueue(limits);
  }

  /** Throws 429 when a thousand calls of this app wait already. */
  hash(appId: string, password: string): Promise<string> {
    return this.#run(appId, () => argon2(password, cost));
  }

  /** Compares with `hash`, or with nothing at all for as long. Throws as `hash`. */
  verify(appId: string, password: string, hash: string | null): Promise<PasswordCheck> {
    return this.#run(appId, async () => {
      // Nobody has such a password: nothing tells by the time that it was not compared.
      const sent = Buffer.byteLength(password) > maxPasswordBytes ? '' : password;
      if (hash === null) {
        await argon2Verify(await this.#dummy, sent);
        return { isMatch: false, needsRehash: false };
      }
      const isMatch = argon2Form.test(hash)
        ? await argon2Verify(hash, sent)
        : await this.#matchesImported(sent, hash);
      return { isMatch, needsRehash: !currentForm.test(hash) };
    });
  }

  /** A right one is hashed anew afterwards; a wrong one takes as long as any. */
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
