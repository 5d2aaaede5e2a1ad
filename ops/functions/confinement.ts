import { realpathSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Environment } from '../../shared/config.ts';
import { moduleUrl } from '../../shared/module-url.ts';

/** What a process of functions is confined to. */
export interface Confinement {
  /** The folder of functions: all that its code can read. */
  dir: string;
  /** The user and group that it runs as, where root starts it. */
  user: number | undefined;
  env: Environment;
}

/**
 * A user that no file and no other process of the machine belongs to: `nobody` may be the one that runs the embedded
 * database. Outside of what distributions and systemd give away.
 */
const userOfFunctions = 65_498;

/** The user of functions; undefined where this process is not root and could not become it. */
export const functionUser = (): number | undefined =>
  process.getuid?.() === 0 ? userOfFunctions : undefined;

/** Names of variables that open our database or our other services, or that would change how Node starts. */
const ours = /^(?:CARILLON|DATABASE|SMTP|SMS|PG|METRICS|NODE_(?!ENV$|EXTRA_CA_CERTS$))/;

/** What functions may see of the environment: all but ours. */
export const functionEnvironment = (env: Environment): Environment =>
  Object.fromEntries(Object.entries(env).filter(([name]) => !ours.test(name)));

/**
 * How the process of a file of functions is started: under Node's permission model, which lets it read the folder and
 * the few sources of ours that it runs, and nothing else of the disk. It has no child processes, threads (the model
 * does not hold in them), native addons, WASI, inspector or SQLite (whose ATTACH opens any file). The network stays
 * open: Node 24 cannot restrict it.
 */
export function confinedStart(
  path: string,
  { dir, user, env }: Confinement,
): { file: string; args: string[]; execArgv: string[]; env: Record<string, string> } {
  const file = fileURLToPath(moduleUrl('./worker.ts', import.meta.url));
  const json = fileURLToPath(moduleUrl('../../shared/domain/json.ts', import.meta.url));
  const readable = [dirname(file), json, resolve(dirname(file), '../../package.json'), dir];
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
