import { execFile, execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { currentEnvironment } from '../../../shared/config/config.ts';

const run = promisify(execFile);
const root = resolve(import.meta.dirname, '../../..');

/** Runs podman in the root of the clone. */
export interface Podman {
  env: NodeJS.ProcessEnv;
  /** Resolves with what it prints, of `logs` both streams, without the spaces around it; rejects if it fails. */
  run(...args: string[]): Promise<string>;
}

/** Returns whether podman can be used here. */
export function isInstalled(): boolean {
  try {
    execFileSync('podman', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** Prepares podman with settings in `folder`: runc and lower limits also work where a machine gives root fewer rights. */
export async function preparePodman(folder: string): Promise<Podman> {
  const env = { ...currentEnvironment(), CONTAINERS_CONF: join(folder, 'containers.conf') };
  const limitsLine = 'default_ulimits = ["nofile=16384:16384", "nproc=16384:16384"]';
  const runtime = existsSync('/usr/sbin/runc') ? '[engine]\nruntime = "runc"\n' : '';
  await writeFile(env.CONTAINERS_CONF, `[containers]\n${limitsLine}\n${runtime}`);
  return {
    env,
    run: async (...args) => {
      const { stdout, stderr } = await run('podman', args, { env, cwd: root, maxBuffer: 1e8 });
      return (args[0] === 'logs' ? stdout + stderr : stdout).trim();
    },
  };
}
