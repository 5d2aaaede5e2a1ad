import { execFile, spawn } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);

/**
 * The command in front of the server that makes the kernel interrupt it when its parent dies, however it dies. It
 * comes after the change of user, since a change of user clears that wish. undefined where it is missing (macOS).
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
 * The same without the kernel's help: a shell holds the reading end of a pipe whose other end is ours alone. When we
 * are gone the pipe closes and the shell interrupts the server.
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
