import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { say } from '../language.ts';
import { UsageError } from '../report.ts';

const noOutput = new Writable({ write: (_chunk, _encoding, done) => done() });

/**
 * Asks for a secret in the terminal without echo. If there is no terminal, throws `UsageError` that
 * names the option to use instead.
 */
export async function askSecret(question: string, option: string): Promise<string> {
  if (!process.stdin.isTTY)
    throw new UsageError(say('{option} <file> is required without a terminal', { option }));
  process.stderr.write(`${question}: `);
  const terminal = createInterface({ input: process.stdin, output: noOutput, terminal: true });
  try {
    return await terminal.question('');
  } finally {
    terminal.close();
    process.stderr.write('\n');
  }
}
