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
 * Salted hash that LeanCloud exports (`password` and `salt` of `_User`). Its documentation
 * specifies the algorithm: SHA-512 of salt and password, then 512 rounds of SHA-512 over the
 * digest, in base64.
 */
const saltedForm = /^\$lc-sha512\$([A-Za-z0-9_-]*)\$([A-Za-z0-9+/]{86}==)$/;
const rounds = 512;
/** bcrypt hashes of acceptable cost. Each step of the cost doubles the time. */
const bcryptForm = /^\$2[abxy]\$(0[4-9]|1[0-5])\$[./A-Za-z0-9]{53}$/;

/** Number of bytes that bcrypt reads: the password, and a zero byte if there is room for it. */
const bcryptBytes = 72;

/**
 * Returns whether every byte of a password was compared with the hash. bcrypt compares only the
 * first 72 bytes of a longer password. Its hash must not be replaced, because the other bytes may
 * be wrong.
 */
const isComparedWhole = (password: string, hash: string): boolean =>
  !bcryptForm.test(hash) || Buffer.byteLength(password) < bcryptBytes;

/**
 * Returns a bcrypt hash in a form that bcryptjs can compute, or undefined if no form is equivalent.
 * `$2x$` marks hashes of an old PHP version that processed bytes above 127 wrongly. For ASCII
 * passwords, these hashes equal `$2b$`.
 */
function computable(password: string, hash: string): string | undefined {
  if (!hash.startsWith('$2x$')) return hash;
  return Buffer.byteLength(password) === password.length ? hash.replace('$2x$', '$2b$') : undefined;
}

/**
 * Encodes `password` and `salt` of LeanCloud as one text for the column `password_hash`.
 */
export function saltedHash({ password, salt }: { password: string; salt: string }): string {
  return `$lc-sha512$${Buffer.from(salt).toString('base64url')}$${password}`;
}

/** Returns whether an import may contain this hash. */
export const isImportedHash = (hash: string): boolean =>
  bcryptForm.test(hash) || saltedForm.test(hash);

/** Returns whether a password matches a salted hash of LeanCloud. */
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
 * Verifies hashes of imported users. The first successful login replaces the imported hash. bcrypt
 * is slow JavaScript code, so it runs in its own thread.
 */
class ImportedHashes {
  readonly #pending = new Map<
    number,
    { resolve(isMatch: boolean): void; reject(error: Error): void }
  >();
  #worker: Worker | undefined;
  #lastId = 0;

  /** Returns false if the password is wrong or the form of the hash is unknown. */
  verify(password: string, hash: string): Promise<boolean> {
    const salted = saltedForm.exec(hash);
    if (salted) return Promise.resolve(matchesSalted(password, salted));
    const bcryptHash = bcryptForm.test(hash) ? computable(password, hash) : undefined;
    return bcryptHash === undefined
      ? Promise.resolve(false)
      : this.#askWorker(password, bcryptHash);
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

  /** Rejects the pending calls of a thread that has ended. The next call starts a new thread. */
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

/** OWASP's first choice for Argon2id: 19 MiB, two passes. */
const cost = { memoryCost: 19_456, timeCost: 2, parallelism: 1 };
const argon2Form = /^\$argon2(id|i|d)\$v=\d+\$m=\d+,t=\d+,p=\d+\$[A-Za-z0-9+/]+\$[A-Za-z0-9+/]+$/;
const currentForm = /^\$argon2id\$v=19\$m=19456,t=2,p=1\$/;

/**
 * Number of hashes computed at once. They run in libuv's pool of four threads, which DNS and files
 * need too. One core stays free for the rest of the process.
 */
const concurrency = Math.min(3, Math.max(1, availableParallelism() - 1));
/**
 * Maximum number of waiting calls of one app. Further calls get 429. Waiting calls of different
 * apps alternate.
 */
const maxWaiting = 1000;
const retryAfterSeconds = 5;

/** Result of comparing a password with a hash. */
interface PasswordCheck {
  isMatch: boolean;
  /**
   * True if the hash should be replaced: its form or cost is outdated, and it was compared with the
   * whole password.
   */
  needsRehash: boolean;
}

/**
 * Hashes and verifies passwords with Argon2id (develop/architecture.md#secrets), outside the main
 * thread. Every check computes one hash, even for an unknown account, so that its duration reveals
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

  /** Hashes a password. Throws error 429 if 1000 calls of this app are waiting. */
  hash(appId: string, password: string): Promise<string> {
    return this.#run(appId, () => argon2(password, cost));
  }

  /**
   * Compares a password with a hash, or with the dummy hash if there is no hash. Throws as `hash`.
   */
  verify(appId: string, password: string, hash: string | null): Promise<PasswordCheck> {
    return this.#run(appId, async () => {
      // Over-long passwords never match. An empty text is hashed instead, so that the duration
      // stays constant.
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
   * Compares with an imported hash. If they differ, also computes the dummy hash, so that a wrong
   * password always takes the same time.
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
