import { createHash } from 'node:crypto';
import { Worker } from 'node:worker_threads';
import { equalInConstantTime } from '../../../../shared/crypto.ts';
import { moduleUrl } from '../../../../shared/process/module-url.ts';

/**
 * Salted form that the public service exports (`password` and `salt` of `_User`). Its documentation specifies the
 * algorithm: SHA-512 of salt and password, then 512 rounds of SHA-512 over the digest, in base64.
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
export const isComparedWhole = (password: string, hash: string): boolean =>
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
export const isImportedHash = (hash: string): boolean => bcryptForm.test(hash) || saltedForm.test(hash);

/** Tells whether a password matches a salted hash of the public service. */
function matchesSalted(password: string, [, salt = '', expected = '']: RegExpExecArray): boolean {
  let digest = createHash('sha512').update(Buffer.from(salt, 'base64url')).update(password).digest();
  for (let i = 0; i < rounds; i += 1) digest = createHash('sha512').update(digest).digest();
  return equalInConstantTime(digest.toString('base64'), expected);
}

interface WorkerReply {
  id: number;
  isMatch: boolean;
}

/**
 * Verifies hashes of imported users. The first successful login replaces such a hash. bcrypt is plain JavaScript and
 * slow, so it runs in a thread of its own.
 */
export class ImportedHashes {
  readonly #pending = new Map<number, { resolve(isMatch: boolean): void; reject(error: Error): void }>();
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
