import { execFile, spawn } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);

/**
 * Returns the command prefix that makes the kernel interrupt the server when its parent exits for
 * any reason. It comes after the change of user, which would clear this setting. Returns undefined
 * where the command is missing (macOS).
 */
export async function guardPrefix(): Promise<string[] | undefined> {
  if (process.platform !== 'linux') return undefined;
  const prefix = ['setpriv', '--pdeathsig', 'INT', '--'];
  return run('setpriv', [...prefix.slice(1), 'true']).then(
    () => prefix,
    () => undefined,
  );
}

/**
 * Does the same without the kernel: a shell reads from a pipe to this process. When this process
 * exits, the pipe closes and the shell interrupts the server.
 */
export function startWatchdog(
  pid: number,
  serverExited: Promise<unknown>,
  ids: { uid?: number; gid?: number },
): void {
  const script = 'while read -r line; do :; done; kill -INT "$0"';
  const watchdog = spawn('/bin/sh', ['-c', script, String(pid)], {
    ...ids,
    cwd: '/',
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  watchdog.on('error', () => undefined);
  watchdog.stdin.on('error', () => undefined);
  const release = () => watchdog.kill('SIGKILL');
  serverExited.then(release, release);
}
