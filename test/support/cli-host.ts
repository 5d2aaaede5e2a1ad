// Process that runs CLI commands one after the other, because loading the modules takes most of a
// command's time. It answers each message with the result of the command.
import { Readable } from 'node:stream';
import { runCommandLine } from '../../ops/cli/program.ts';

/** Command to run, with the environment that a separate process would have. */
export interface CommandCall {
  args: string[];
  env: Record<string, string>;
  cwd: string;
  stdin: string;
}

/** Output of the command and its exit code. */
export interface CommandEnd {
  code: number;
  stdout: string;
  stderr: string;
}

const own = { env: process.env, cwd: process.cwd() };

process.on('message', (call: CommandCall) => void run(call).then((end) => process.send?.(end)));
process.on('disconnect', () => process.exit());

async function run({ args, env, cwd, stdin }: CommandCall): Promise<CommandEnd> {
  const written = { stdout: '', stderr: '' };
  const restore = (['stdout', 'stderr'] as const).map((name) => {
    const write = process[name].write;
    process[name].write = (chunk: string | Uint8Array) => {
      written[name] += typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString();
      return true;
    };
    return () => {
      process[name].write = write;
    };
  });
  const input = Object.getOwnPropertyDescriptor(process, 'stdin');
  Object.defineProperty(process, 'stdin', {
    value: Readable.from([Buffer.from(stdin)]),
    configurable: true,
  });
  process.env = env;
  process.exitCode = 0;
  process.chdir(cwd);
  try {
    const code = await runCommandLine(args);
    return { code: code || Number(process.exitCode), ...written };
  } finally {
    process.env = own.env;
    process.exitCode = 0;
    process.chdir(own.cwd);
    if (input) Object.defineProperty(process, 'stdin', input);
    for (const one of restore) one();
  }
}
