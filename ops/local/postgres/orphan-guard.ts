import { execFile, spawn } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);

/**
 * Returns a command prefix with which the kernel interrupts the server when its parent exits for
 * any reason. The prefix must come after the change of user, because a change of user clears this
 * setting. Returns undefined if the command is missing (macOS).
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
 * Interrupts the server without help of the kernel when this process exits. A shell reads from a
 * pipe to this process. When this process exits, the pipe closes and the shell interrupts the
 * server.
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
