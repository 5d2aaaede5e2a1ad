import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { afterAll } from 'vitest';
import { testEnvironment } from '../api.ts';

/**
 * Starts dispatchers as separate processes for tests that kill them. Kills the remaining processes
 * after the test file.
 */
export function useDispatcherProcesses(service: { readonly databaseUrl: string }) {
  const children: ChildProcess[] = [];
  afterAll(() => {
    for (const child of children) child.kill('SIGKILL');
  });
  return {
    /** The process that was started last. */
    latest: () => children.at(-1),
    /** Starts a dispatcher with additional variables. Resolves when it is ready. */
    async start(more: Record<string, string> = {}): Promise<ChildProcess> {
      const file = fileURLToPath(new URL('../../../dispatcher/main.ts', import.meta.url));
      const env = { ...process.env, ...testEnvironment(service.databaseUrl), ...more };
      const child = spawn(process.execPath, [file], {
        env,
        stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      });
      children.push(child);
      await new Promise((resolve, reject) => {
        child.once('message', resolve);
        child.once('exit', (code) => reject(new Error(`the dispatcher ended with ${code}`)));
      });
      return child;
    },
  };
}
