import { createHash } from 'node:crypto';
import { Worker } from 'node:worker_threads';
import { equalInConstantTime } from '../../../../shared/crypto.ts';
import { moduleUrl } from '../../../../shared/process/module-url.ts';

/**
 * Hashes that imported users bring: bcrypt, and the salted form that the public service exports (the members
 * `password` and `salt` of `_User`; its documentation tells how to check one: SHA-512 of salt and password, then 512
 * times SHA-512 of the digest, in base64). Each is good for one login, which replaces it.
 */
const saltedForm = /^\$lc-sha512\$([A-Za-z0-9_-]*)\$([A-Za-z0-9+/]{86}==)$/;
const rounds = 512;
/** Of costs that somebody can wait for; each step doubles the time. */
const bcryptForm = /^\$2[abxy]\$(0[4-9]|1[0-5])\$[./A-Za-z0-9]{53}$/;

/** How an import stores `password` and `salt` of the public service in `password_hash`. */
export function saltedHash({ password, salt }: { password: string; salt: string }): string {
  return `$lc-sha512$${Buffer.from(salt).toString('base64url')}$${password}`;
}

/** True for a hash that an import may bring. */
export const isImportedHash = (hash: string): boolean => bcryptForm.test(hash) || saltedForm.test(hash);

/** True when the password fits a salted hash of the public service. */
function matchesSalted(password: string, [, salt = '', expected = '']: RegExpExecArray): boolean {
  let digest = createHash('sha512').update(Buffer.from(salt, 'base64url')).update(password).digest();
  for (let i = 0; i < rounds; i += 1) digest = createHash('sha512').update(digest).digest();
  return equalInConstantTime(digest.toString('base64'), expected);
}

interface WorkerReply {
  id: number;
  isMatch: boolean;
}

/** Checks foreign hashes. bcrypt is plain JavaScript and takes long, so it has a thread of its own. */
export class ImportedHashes {
  readonly #waiting = new Map<number, { resolve(isMatch: boolean): void; reject(error: Error): void }>();
  #worker: Worker | undefined;
  #lastId = 0;

  /** False for a wrong password and for a hash of no known form. */
  verify(password: string, hash: string): Promise<boolean> {
    const salted = saltedForm.exec(hash);
    if (salted) return Promise.resolve(matchesSalted(password, salted));
    return bcryptForm.test(hash) ? this.#askWorker(password, hash) : Promise.resolve(false);
  }

  #askWorker(password: string, hash: string): Promise<boolean> {
    this.#worker ??= this.#open();
    this.#lastId += 1;
    const id = this.#lastId;
    const worker = this.#worker;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      worker.postMessage({ id, password, hash });
    });
  }

  #open(): Worker {
    const worker = new Worker(moduleUrl('./bcrypt-worker.ts', import.meta.url));
    worker.on('message', ({ id, isMatch }: WorkerReply) => {
      this.#waiting.get(id)?.resolve(isMatch);
      this.#waiting.delete(id);
    });
    const end = (error: unknown) => this.#end(worker, error);
    worker.on('error', end);
    worker.on('exit', () => end(new Error('the thread for foreign hashes has ended')));
    worker.unref();
    return worker;
  }

  /** Whoever waits for this thread hears of its end; the next question opens another. */
  #end(worker: Worker, error: unknown): void {
    if (this.#worker !== worker) return;
    this.#worker = undefined;
    const failure = error instanceof Error ? error : new Error(String(error));
    for (const { reject } of this.#waiting.values()) reject(failure);
    this.#waiting.clear();
  }

  async close(): Promise<void> {
    await this.#worker?.terminate();
  }
}
