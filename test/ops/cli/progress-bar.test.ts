import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

/** Tests the output of the bar to a terminal and to a pipe. */
const source = fileURLToPath(new URL('../../../ops/cli/report.ts', import.meta.url));
const program = `
  const { ProgressBar } = await import(${JSON.stringify(source)});
  let done = 0;
  const bar = new ProgressBar({
    stream: process.stdout,
    marks: ['=', '-'],
    line: (shown, percentage) => '[' + shown + '] ' + percentage + ' % ' + done,
    writesLines: true,
  });
  for (done of [0, 500, 1200]) bar.show(done, 1000);
  bar.stop();
`;
const bar = (full: number) => `[${'='.repeat(full)}${'-'.repeat(40 - full)}]`;

test.skipIf(process.platform !== 'linux')(
  'a bar in a terminal is one line that is overwritten, and leaves its last state',
  () => {
    const node = `'${process.execPath}' --input-type=module -e "$PROGRAM"`;
    const printed = execFileSync(
      'script',
      ['--quiet', '--return', '--command', node, '/dev/null'],
      {
        env: { ...process.env, PROGRAM: program },
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    ).toString();
    const states = [`${bar(0)} 0 % 0`, `${bar(20)} 50 % 500`, `${bar(40)} 100 % 1200`];
    expect(printed).toBe(`${states.map((state) => `\r${state}\x1b[K`).join('')}\r\n`);
  },
);

test('a bar in a pipe is at most one line per half second, and its last state', () => {
  const printed = execFileSync(process.execPath, ['--input-type=module', '-e', program]).toString();
  expect(printed).toBe(`${bar(0)} 0 % 0\n${bar(40)} 100 % 1200\n`);
});
