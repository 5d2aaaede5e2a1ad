import { realpathSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Environment } from '../../shared/config/config.ts';
import { moduleUrl } from '../../shared/process/module-url.ts';

/** Restrictions of a function process. */
export interface Confinement {
  /** Folder of functions. Functions can read only this folder. */
  dir: string;
  /** User and group id of the process if root starts it. */
  user: number | undefined;
  env: Environment;
}

/**
 * User id that owns no file and no other process on the machine. It lies outside the ranges of
 * distributions and systemd. `nobody` is not used, because the embedded database may run as
 * `nobody`.
 */
const functionUserId = 65_498;

/**
 * Returns the user id for functions, or undefined if this process is not root and cannot change its
 * user.
 */
export const functionUser = (): number | undefined =>
  process.getuid?.() === 0 ? functionUserId : undefined;

/**
 * Variables that functions receive: the ones that every process needs, and the operator's own
 * `FUNCTION_…` variables. All other variables are withheld, because the environment of the service
 * contains secrets under any name (database, providers, trace collector).
 */
const passed =
  /^(?:PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_[A-Z]+|TZ|TMPDIR|TEMP|TMP|SystemRoot|NODE_ENV|NODE_EXTRA_CA_CERTS|SSL_CERT_(?:FILE|DIR)|FUNCTION_[A-Za-z0-9_]+)$/;

/** Returns the environment of functions. */
export const functionEnvironment = (env: Environment): Environment =>
  Object.fromEntries(Object.entries(env).filter(([name]) => passed.test(name)));

/**
 * Returns the start options of a function process. Node's permission model allows it to read only
 * the functions folder and the source files it runs, in the folders `functions` and `domain`. It
 * forbids child processes, threads (the model does not apply in threads), native addons, WASI, the
 * inspector and SQLite (ATTACH opens any file). Node 24 cannot restrict the network.
 */
export function startOptions(
  path: string,
  { dir, user, env }: Confinement,
): { file: string; args: string[]; execArgv: string[]; env: Record<string, string> } {
  const file = fileURLToPath(moduleUrl('./worker.ts', import.meta.url));
  const domain = resolve(dirname(file), '../../shared/domain');
  const readable = [dirname(file), domain, resolve(dirname(file), '../../package.json'), dir];
  const execArgv = [
    '--permission',
    ...readable.map((one) => `--allow-fs-read=${realpathOr(one)}`),
    '--disable-sigusr1',
    '--no-experimental-sqlite',
    '--no-addons',
  ];
  const present = Object.entries(functionEnvironment(env)).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, value] as const],
  );
  return {
    file,
    args: [path, user === undefined ? '' : String(user)],
    execArgv,
    env: Object.fromEntries(present),
  };
}

function realpathOr(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}
