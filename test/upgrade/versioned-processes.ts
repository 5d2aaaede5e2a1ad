import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll } from 'vitest';
import { freePort } from '../../ops/local/ports.ts';
import { testEnvironment } from '../support/api.ts';
import { bareEnvironment } from '../support/cli.ts';

/** Process of a version. */
export interface VersionedProcess {
  /** Resolves when the process is ready. Rejects if it exits before. */
  ready: Promise<unknown>;
  /** Base URL of the api, or of the dispatcher's probes and metrics. */
  url: string;
  /** Sends SIGTERM. Resolves with the exit code. */
  stop(): Promise<number | null>;
}

/**
 * Starts processes from the sources of several versions. Kills the remaining processes after the
 * tests.
 */
export function useVersionedProcesses() {
  const children: ChildProcess[] = [];
  afterAll(() => {
    for (const child of children) child.kill('SIGKILL');
  });
  return {
    /** Starts a process from the sources in `root`. */
    async start(
      root: string,
      kind: 'api' | 'dispatcher',
      databaseUrl: string,
    ): Promise<VersionedProcess> {
      const host = '127.0.0.1';
      const variable = kind === 'api' ? 'PORT' : 'METRICS_PORT';
      const port = await freePort();
      const child = spawn(process.execPath, [join(root, kind, 'main.ts')], {
        env: {
          ...process.env,
          ...testEnvironment(databaseUrl),
          [variable]: String(port),
          LOG_LEVEL: 'fatal',
        },
        stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      });
      children.push(child);
      const ended = once(child, 'exit');
      const ready = Promise.race([
        once(child, 'message'),
        ended.then(([code]) => Promise.reject(new Error(`the ${kind} ended with ${code}`))),
      ]);
      // A test may stop the process before it is ready.
      ready.catch(() => undefined);
      return {
        ready,
        url: `http://${host}:${port}`,
        async stop() {
          child.kill('SIGTERM');
          const [code] = await ended;
          return code;
        },
      };
    },
  };
}

/** Runs `carillon migrate` from the sources in `root`. */
export async function migrateWith(root: string, databaseUrl: string): Promise<void> {
  const child = spawn(process.execPath, [join(root, 'ops/cli/carillon.mjs'), 'migrate'], {
    env: { ...bareEnvironment(), DATABASE_URL: databaseUrl },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const [errors, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')]);
  if (code !== 0) throw new Error(`carillon migrate: ${errors}`);
}
