import { realpathSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Environment } from '../../shared/config/config.ts';
import { moduleUrl } from '../../shared/process/module-url.ts';

/** Confinement of a function process. */
export interface Confinement {
  /** Folder of functions, the only one that their code can read. */
  dir: string;
  /** User and group of the process when root starts it. */
  user: number | undefined;
  env: Environment;
}

/**
 * User id that owns no file and no other process of the machine; `nobody` may run the embedded
 * database. Outside of the ranges that distributions and systemd assign.
 */
const functionUserId = 65_498;

/**
 * Returns the user id for functions; undefined when this process is not root and cannot change its
 * user.
 */
export const functionUser = (): number | undefined =>
  process.getuid?.() === 0 ? functionUserId : undefined;

/**
 * Variables that functions get: what a process needs, and what the operator names `FUNCTION_…` for
 * them. All others stay with the service, since its environment holds secrets of any name: of its
 * database, its providers, its collector of traces.
 */
const passed =
  /^(?:PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_[A-Z]+|TZ|TMPDIR|TEMP|TMP|SystemRoot|NODE_ENV|NODE_EXTRA_CA_CERTS|SSL_CERT_(?:FILE|DIR)|FUNCTION_[A-Za-z0-9_]+)$/;

/** Returns the environment of functions. */
export const functionEnvironment = (env: Environment): Environment =>
  Object.fromEntries(Object.entries(env).filter(([name]) => passed.test(name)));

/**
 * Returns the start options of the process of a function file. Node's permission model lets it read
 * only the folder and our source files that it runs: those of functions and of the domain. It
 * allows no child processes, threads (the model does not apply in them), native addons, WASI,
 * inspector or SQLite (whose ATTACH opens any file). The network is not restricted: Node 24 cannot.
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
