import { createHash, randomBytes } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { hash as argon2, verify as argon2Verify } from '@node-rs/argon2';
import { equalInConstantTime } from '../../../../shared/crypto.ts';
import { Refusal } from '../../../../shared/domain/errors/errors.ts';
import { maxPasswordBytes } from '../../../../shared/domain/users/user.ts';
import { moduleUrl } from '../../../../shared/process/module-url.ts';
import { QueueFull, Semaphore } from '../../../../shared/semaphore.ts';

/**
 * Salted form that the public service exports (`password` and `salt` of `_User`). Its documentation
 * specifies the algorithm: SHA-512 of salt and password, then 512 rounds of SHA-512 over the
 * digest, in base64.
 */
const saltedForm = /^\$lc-sha512\$([A-Za-z0-9_-]*)\$([A-Za-z0-9+/]{86}==)$/;
const rounds = 512;
/** bcrypt hashes of acceptable cost; each step doubles the time. */
const bcryptForm = /^\$2[abxy]\$(0[4-9]|1[0-5])\$[./A-Za-z0-9]{53}$/;

/** bcrypt reads 72 bytes: the password, and a zero byte if there is room for it. */
const bcryptBytes = 72;

/**
 * Tells whether a hash was compared with every byte of a password. A longer password matches by its
 * first 72 bytes, so a match says nothing about the rest: such a hash must not be replaced.
 */
const isComparedWhole = (password: string, hash: string): boolean =>
  !bcryptForm.test(hash) || Buffer.byteLength(password) < bcryptBytes;

/**
 * Returns a bcrypt hash in a form that the library computes. `$2x$` marks hashes of an old PHP
 * whose bytes above 127 were wrong; those of ASCII passwords equal `$2b$`. Undefined where they
 * differ.
 */
function computable(password: string, hash: string): string | undefined {
  if (!hash.startsWith('$2x$')) return hash;
  return Buffer.byteLength(password) === password.length ? hash.replace('$2x$', '$2b$') : undefined;
}

/** Encodes `password` and `salt` of the public service as one text for `password_hash`. */
export function saltedHash({ password, salt }: { password: string; salt: string }): string {
  return `$lc-sha512$${Buffer.from(salt).toString('base64url')}$${password}`;
}

/** Tells whether an import may bring this hash. */
export const isImportedHash = (hash: string): boolean =>
  bcryptForm.test(hash) || saltedForm.test(hash);

/** Tells whether a password matches a salted hash of the public service. */
function matchesSalted(password: string, [, salt = '', expected = '']: RegExpExecArray): boolean {
  let digest = createHash('sha512')
    .update(Buffer.from(salt, 'base64url'))
    .update(password)
    .digest();
  for (let i = 0; i < rounds; i += 1) digest = createHash('sha512').update(digest).digest();
  return equalInConstantTime(digest.toString('base64'), expected);
}

interface WorkerReply {
  id: number;
  isMatch: boolean;
}

/**
 * Verifies hashes of imported users. The first successful login replaces such a hash. bcrypt is
 * plain JavaScript and slow, so it runs in a thread of its own.
 */
class ImportedHashes {
  readonly #pending = new Map<
    number,
    { resolve(isMatch: boolean): void; reject(error: Error): void }
  >();
  #worker: Worker | undefined;
  #lastId = 0;

  /** Returns false for a wrong password and for an unknown form of hash. */
  verify(password: string, hash: string): Promise<boolean> {
    const salted = saltedForm.exec(hash);
    if (salted) return Promise.resolve(matchesSalted(password, salted));
    const known = bcryptForm.test(hash) ? computable(password, hash) : undefined;
    return known === undefined ? Promise.resolve(false) : this.#askWorker(password, known);
  }

  #askWorker(password: string, hash: string): Promise<boolean> {
    this.#worker ??= this.#open();
    this.#lastId += 1;
    const id = this.#lastId;
    const worker = this.#worker;
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
      worker.postMessage({ id, password, hash });
    });
  }

  #open(): Worker {
    const worker = new Worker(moduleUrl('./bcrypt-worker.ts', import.meta.url));
    worker.on('message', ({ id, isMatch }: WorkerReply) => {
      this.#pending.get(id)?.resolve(isMatch);
      this.#pending.delete(id);
    });
    const end = (error: unknown) => this.#end(worker, error);
    worker.on('error', end);
    worker.on('exit', () => end(new Error('bcrypt thread ended')));
    worker.unref();
    return worker;
  }

  /** Rejects the pending calls of an ended thread; the next call starts another. */
  #end(worker: Worker, error: unknown): void {
    if (this.#worker !== worker) return;
    this.#worker = undefined;
    const failure = error instanceof Error ? error : new Error(String(error));
    for (const { reject } of this.#pending.values()) reject(failure);
    this.#pending.clear();
  }

  async close(): Promise<void> {
    await this.#worker?.terminate();
  }
}

/**
 * OWASP's first choice for Argon2id, which the library takes by default: 19 MiB, two passes, about
 * 15 to 25 ms.
 */
const cost = { memoryCost: 19_456, timeCost: 2, parallelism: 1 };
const argon2Form = /^\$argon2(id|i|d)\$v=\d+\$m=\d+,t=\d+,p=\d+\$[A-Za-z0-9+/]+\$[A-Za-z0-9+/]+$/;
const currentForm = /^\$argon2id\$v=19\$m=19456,t=2,p=1\$/;

/**
 * Hashes computed at once. They run on the four threads of libuv's pool, which DNS and files need
 * too; one core stays free for the rest of the process.
 */
const concurrency = Math.min(3, Math.max(1, availableParallelism() - 1));
/** Calls of one app that may wait, in fair order with other apps; more get 429. */
const maxWaiting = 1000;
const retryAfterSeconds = 5;

/** Result of comparing a password with a hash. */
interface PasswordCheck {
  isMatch: boolean;
  /**
   * The hash has an outdated form or cost, was compared with the whole password, and should be
   * replaced.
   */
  needsRehash: boolean;
}

/**
 * Hashes and verifies passwords with Argon2id (develop/architecture.md#secrets), off the main
 * thread. Every check computes one hash, even for an unknown account, so that its time reveals
 * nothing (protocol/known-problems.md#timing-of-logins).
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

  /**
   * Compares a password with a hash, or with the dummy hash if there is no hash. Throws as `hash`.
   */
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

  /**
   * Compares with an imported hash. A mismatch computes the dummy hash too, to take as long as any
   * other.
   */
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
