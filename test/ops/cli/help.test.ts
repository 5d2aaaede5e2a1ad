import type { Command } from 'commander';
import { afterEach, describe, expect, test } from 'vitest';
import { exampleOf, visibleCommands } from '../../../ops/cli/command.ts';
import { chooseLanguage } from '../../../ops/cli/language.ts';
import { program } from '../../../ops/cli/program.ts';
import { widthOf } from '../../../ops/cli/table.ts';
import { carillon } from '../../support/cli.ts';

interface Named {
  words: string[];
  command: Command;
}

const all = (command: Command, words: string[] = []): Named[] =>
  visibleCommands(command).flatMap((one) => {
    const own = [...words, one.name()];
    return [{ words: own, command: one }, ...all(one, own)];
  });

/** Commands that do something. The other commands only group subcommands. */
const commands = all(program).filter(
  ({ command }) => exampleOf(command) !== undefined || visibleCommands(command).length === 0,
);

/** Splits a line like a shell: words in single quotes stay together. */
const shellWords = (line: string): string[] =>
  [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '');

test.each(commands.map(({ words, command }) => [words.join(' '), words, command] as const))(
  'carillon %s has an example that it accepts',
  (_name, words, command) => {
    const given = shellWords(exampleOf(command) ?? '');
    expect(given.slice(0, words.length)).toEqual(words);
    const { operands, unknown } = command.parseOptions(given.slice(words.length));
    expect(unknown).toEqual([]);
    const { registeredArguments } = command;
    expect(operands.length).toBeGreaterThanOrEqual(
      registeredArguments.filter((one) => one.required).length,
    );
    if (!registeredArguments.some((one) => one.variadic))
      expect(operands.length).toBeLessThanOrEqual(registeredArguments.length);
    const missing = command.options.filter(
      (option) => option.mandatory && command.opts()[option.attributeName()] === undefined,
    );
    expect(missing).toEqual([]);
  },
);

const helpLines = () =>
  [program, ...all(program).map(({ command }) => command)].flatMap((command) =>
    command.helpInformation().split('\n'),
  );

afterEach(() => chooseLanguage('en'));

describe.for(['en', 'zh'] as const)('the help of every command in %s', (language) => {
  test('fits into 80 columns', () => {
    chooseLanguage(language);
    const lines = helpLines();
    expect(lines.length).toBeGreaterThan(1000);
    expect(lines.filter((line) => widthOf(line) > 80)).toEqual([]);
  });
});

test('the Chinese help of every command has no English sentence', () => {
  chooseLanguage('zh');
  // Typed words stay English: commands and the names of values.
  const withoutNames = helpLines().map((line) =>
    line.replaceAll(/`[^`]*`|<[^>]*>|\[[^\]]*\]/g, ''),
  );
  const sentences = withoutNames.filter(
    (line) => /[a-z]+( [a-z]+){2}/i.test(line) && !line.startsWith('用法：'),
  );
  expect(sentences).toEqual([]);
});

test('a line of Chinese help does not start with punctuation', () => {
  chooseLanguage('zh');
  expect(helpLines().filter((line) => /^\s*[，。；：、）》”]/.test(line))).toEqual([]);
});

test('--help lists the commands by task', async () => {
  const { code, stdout } = await carillon(['--help']);
  expect(code).toBe(0);
  const headings = stdout.split('\n').filter((line) => /^\S.*:$/.test(line));
  expect(headings.slice(1, -1)).toEqual([
    'Send:',
    'Look:',
    'Control:',
    'People:',
    'Set up:',
    'Operate:',
  ]);
});

test('the help of a command ends with its example', async () => {
  const { stdout } = await carillon(['breakers', 'open', '--help']);
  expect(stdout).toMatch(/Example:\n {2}carillon breakers open apns:\w+:_default\n$/);
});

test.each([
  [['schedule', 'list', '--app', 'x'], 'schedule', 'scheduled'],
  [['resend', 'x', '--app', 'x'], 'resend', 'redrive'],
  [['apps', '--q', 'shop'], 'apps', 'app list --sizes'],
  [['user', 'find', 'ada@example.com'], 'user find', 'user list --q'],
])('%j names the command that replaced it', async (args, old, replacement) => {
  const sentence = `\`carillon ${old}\` was removed: use \`carillon ${replacement}\`.`;
  expect(await carillon(args)).toMatchObject({
    code: 2,
    stdout: '',
    stderr: `carillon: ${sentence}\n`,
  });
  expect((await carillon([...args, '--json'])).json()).toEqual({ error: sentence });
});
