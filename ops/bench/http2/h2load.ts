import { execFile, spawnSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { headers, type Measured, pathPrefix, recipients, requestHeaderName, sharedBody } from './shape.ts';

const run = promisify(execFile);

/** Load generator of nghttp2, in C (Debian's package `nghttp2`). */
export const isH2loadInstalled = (): boolean => spawnSync('h2load', ['--version']).status === 0;

/** Sends similar requests with one body and one set of headers. The shell reports its CPU time. */
export async function runH2load(url: string, requests: number): Promise<Measured> {
  const directory = await mkdtemp(join(tmpdir(), 'carillon-h2load-'));
  try {
    const [bodyFile, uriFile] = [join(directory, 'body'), join(directory, 'uris')];
    await writeFile(bodyFile, sharedBody);
    await writeFile(uriFile, recipients.map(({ token }) => `${url}${pathPrefix}${token}\n`).join(''));
    const sent = { ...headers, [requestHeaderName]: recipients[0]?.id ?? '' };
    const fields = Object.entries(sent).flatMap(([name, value]) => ['-H', `${name}: ${value}`]);
    const options = [
      '-n',
      String(requests),
      '-c',
      '1',
      '-m',
      '1000',
      '-t',
      '1',
      '-d',
      bodyFile,
      '-i',
      uriFile,
    ];
    const { stdout } = await run('bash', ['-c', 'h2load "$@"; times', 'h2load', ...options, ...fields]);
    if (!new RegExp(`status codes: ${requests} 2xx`).test(stdout)) throw new Error('h2load was refused');
    const seconds = Number(/finished in ([\d.]+)s/.exec(stdout)?.[1] ?? milliseconds(stdout));
    return { seconds, cpuSeconds: childSeconds(stdout) };
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

const milliseconds = (stdout: string): number =>
  Number(/finished in ([\d.]+)ms/.exec(stdout)?.[1] ?? Number.NaN) / 1000;

/** Parses the second line of `times`: user and system time of the shell's children. */
function childSeconds(stdout: string): number {
  const last = stdout.trimEnd().split('\n').at(-1) ?? '';
  return last.split(' ').reduce((sum, text) => {
    const [, minutes, seconds] = /^(\d+)m([\d.]+)s$/.exec(text) ?? [];
    return sum + Number(minutes) * 60 + Number(seconds);
  }, 0);
}
