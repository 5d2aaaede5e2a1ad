import { spawn } from 'node:child_process';
import { sleep } from '../../../shared/clock.ts';
import { dispatcherFlags } from '../../../shared/process/memory.ts';
import type { Stage } from './stage.ts';

/**
 * Runs the dispatcher `main`, started by a command in front of Node if one is given, in place of the stage's, while `work`
 * runs. `work` gets its process id and starts when it is ready.
 */
export async function whileOtherRuns(
  { service, targets }: Stage,
  { main, prefix = [] }: { main: string; prefix?: string[] },
  work: (pid: number) => Promise<void>,
): Promise<void> {
  await service.stopDispatchers();
  const [file = '', ...args] = [...prefix, process.execPath, ...dispatcherFlags, main];
  const child = spawn(file, args, { env: service.environment, stdio: 'ignore' });
  const gone = new Promise((settle) => child.once('exit', settle));
  try {
    const isReady = () =>
      fetch(`http://${targets['carillon-dispatcher']?.[0]}/readyz`).then(
        ({ ok }) => ok,
        () => false,
      );
    while (!(await isReady())) {
      if (child.exitCode !== null) throw new Error(`${main} ended with code ${child.exitCode}`);
      await sleep(200);
    }
    await work(child.pid ?? 0);
  } finally {
    child.kill('SIGTERM');
    await gone;
    await service.startDispatcher();
  }
}
