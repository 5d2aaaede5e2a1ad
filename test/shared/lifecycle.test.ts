import { spawn } from 'node:child_process';
import { open } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { describe, expect, onTestFinished, test } from 'vitest';
import { ClosingStack } from '../../shared/process/lifecycle.ts';
import { createLogger } from '../../shared/process/logging.ts';

function stackWithLog() {
  const lines: string[] = [];
  const log = createLogger({
    level: 'info',
    name: 'test',
    destination: { write: (line) => lines.push(line) },
  });
  return { stack: new ClosingStack(log), lines };
}

const never = () => new Promise<void>(() => undefined);

describe('ClosingStack', () => {
  test('closes in reverse order, one after the other', async () => {
    const { stack } = stackWithLog();
    const order: string[] = [];
    for (const name of ['database', 'queue', 'http'])
      stack.add(name, async () => {
        order.push(`${name} begins`);
        await new Promise((resolve) => setTimeout(resolve, 5));
        order.push(`${name} ends`);
      });
    await stack.close();
    expect(order).toEqual(
      ['http', 'queue', 'database'].flatMap((name) => [`${name} begins`, `${name} ends`]),
    );
  });

  test('logs a closer that throws, rejects or hangs, and closes the others', async () => {
    const { stack, lines } = stackWithLog();
    let isClosed = false;
    stack.add('first', () => {
      isClosed = true;
    });
    stack.add('throws', () => {
      throw new Error('broken');
    });
    stack.add('rejects', () => Promise.reject(new Error('torn')));
    stack.add('hangs', never);
    await stack.close(100);
    expect(isClosed).toBe(true);
    expect(lines.map((line) => JSON.parse(line).what)).toEqual(['hangs', 'rejects', 'throws']);
  });

  test('takes at most twice the time limit for ten closers that hang', async () => {
    const { stack } = stackWithLog();
    for (let i = 0; i < 10; i += 1) stack.add(`hangs ${i}`, never);
    const startedAtMs = performance.now();
    await stack.close(200);
    expect(performance.now() - startedAtMs).toBeLessThan(1500);
  });

  test('closes each resource once, even if called again', async () => {
    const { stack } = stackWithLog();
    let times = 0;
    stack.add('once', () => {
      times += 1;
    });
    await Promise.all([stack.close(), stack.close()]);
    await stack.close();
    expect(times).toBe(1);
  });

  test('closes a resource that is opened during the close', async () => {
    const { stack } = stackWithLog();
    const closed: string[] = [];
    stack.add('first', async () => {
      stack.add('late', () => closed.push('late'));
      closed.push('first');
    });
    await stack.close();
    expect(closed).toEqual(['first', 'late']);
  });

  test('immediately closes a resource that is opened after the end', async () => {
    const { stack } = stackWithLog();
    await stack.close();
    let isClosed = false;
    stack.add('too late', () => {
      isClosed = true;
    });
    await new Promise((resolve) => setTimeout(resolve, 1));
    expect(isClosed).toBe(true);
  });
});

/** Returns a program that closes on signals and runs `body`. */
const program = (body: string) => `
  import { ClosingStack, closeOnSignals } from '${new URL('../../shared/process/lifecycle.ts', import.meta.url).href}';
  import { createLogger } from '${new URL('../../shared/process/logging.ts', import.meta.url).href}';
  const log = createLogger({ level: 'info', name: 'test' });
  const stack = new ClosingStack(log);
  let isNoisy = false;
  stack.add('line', async () => {
    await new Promise((resolve) => setTimeout(resolve, 50));
    if (!isNoisy) console.log('closed');
  });
  closeOnSignals({ log, stack });
  setInterval(() => {}, 1000);
  ${body}
  if (!isNoisy) console.log('ready');
`;

/**
 * Runs a program with an IPC channel. `ended` resolves with its exit code or the signal that ended
 * it.
 */
function launch(source: string, stdout: 'pipe' | number = 'pipe') {
  const child = spawn(process.execPath, ['--input-type=module', '-e', source], {
    stdio: ['ignore', stdout, 'inherit', 'ipc'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const ended = new Promise((resolve) =>
    child.once('exit', (code, signal) => resolve(code ?? signal)),
  );
  const output = child.stdout ? text(child.stdout) : '';
  return { child, ended, output };
}

async function run(body: string, act: (child: ReturnType<typeof spawn>) => void) {
  const { child, ended, output } = launch(program(body));
  child.stdout?.once('data', () => act(child));
  const written = await output;
  return { code: await ended, closed: written.split('closed').length - 1, output: written };
}

describe('closeOnSignals', () => {
  test.each(['SIGTERM', 'SIGINT'] as const)('%s closes and exits with 0', async (signal) => {
    expect(await run('', (child) => child.kill(signal))).toMatchObject({ code: 0, closed: 1 });
  });

  test('a second signal does not close twice', async () => {
    const twice = await run('', (child) => {
      child.kill('SIGINT');
      setTimeout(() => child.kill('SIGTERM'), 20);
    });
    expect(twice).toMatchObject({ code: 0, closed: 1 });
  });

  test('loss of the supervisor closes and exits with 0', async () => {
    expect(await run('', (child) => child.disconnect())).toMatchObject({ code: 0, closed: 1 });
  });

  test('loss of the supervisor while modules are loaded closes and exits with 0', async () => {
    const early = "await new Promise((resolve) => process.once('disconnect', resolve));";
    const source = program('').replace('closeOnSignals({', `${early} closeOnSignals({`);
    const { child, ended, output } = launch(source);
    child.disconnect();
    expect(await ended).toBe(0);
    expect(await output).toContain('supervisor gone');
  });

  test.skipIf(process.platform !== 'linux')(
    'an unwritable log (full disk) stops neither the work nor the exit after an error',
    async () => {
      const full = await open('/dev/full', 'w');
      const body = `
        isNoisy = true;
        log.info('a line');
        setTimeout(() => process.send('at work'), 100);
        process.once('message', () => { throw new Error('nobody caught me'); });`;
      const { child, ended } = launch(program(body), full.fd);
      await full.close();
      const first = await Promise.race([
        new Promise((resolve) => child.once('message', resolve)),
        ended,
      ]);
      expect(first).toBe('at work');
      child.send('fail');
      expect(await ended).toBe(1);
    },
  );

  test('a log without a reader blocks neither the work nor the exit', async () => {
    // Prints only the log, because printing waits for a reader.
    const noise = `
      isNoisy = true;
      for (let i = 0; i < 20_000; i += 1) log.info({ i, filler: 'x'.repeat(100) }, 'line');
      setTimeout(() => process.send('at work'), 10);`;
    // The output is not read.
    const child = spawn(process.execPath, ['--input-type=module', '-e', program(noise)], {
      stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    });
    const ended = new Promise((resolve) =>
      child.once('exit', (code, signal) => resolve(code ?? signal)),
    );
    expect(await new Promise((resolve) => child.once('message', resolve))).toBe('at work');
    child.disconnect();
    expect(await ended).toBe('SIGKILL');
  });

  test.each([
    ['thrown', "setTimeout(() => { throw new Error('nobody caught me') }, 50);"],
    ['rejected', "setTimeout(() => void Promise.reject(new Error('nobody caught me')), 50);"],
  ])('an uncaught error that is %s is logged, closes and exits with 1', async (_case, body) => {
    const { code, closed, output } = await run(body, () => undefined);
    expect({ code, closed }).toEqual({ code: 1, closed: 1 });
    expect(output).toContain('nobody caught me');
  });

  test('an error during the stop is logged and does not interrupt it', async () => {
    const body = "process.on('SIGTERM', () => setTimeout(() => { throw new Error('late') }, 5));";
    const { code, closed, output } = await run(body, (child) => child.kill('SIGTERM'));
    expect({ code, closed }).toEqual({ code: 0, closed: 1 });
    expect(output).toContain('late');
  });
});
