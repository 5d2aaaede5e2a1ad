import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import type { Command } from 'commander';
import { describe, expect, test } from 'vitest';
import { readArgs } from '../../../ops/bench/harness/arguments.ts';
import { benchmarkNames } from '../../../ops/bench/main.ts';
import { program } from '../../../ops/cli/program.ts';
import { currentPart } from './pages.ts';

const root = new URL('../../../', import.meta.url);
const run = promisify(execFile);
const files = (await run('git', ['ls-files', '*.md', '*package.json'], { cwd: root })).stdout
  .trim()
  .split('\n');
const pages = files.filter((name) => name.endsWith('.md'));

/** Returns the lines of the shell blocks, without comments. Continued lines are joined. */
function linesOf(text: string): string[] {
  const blocks = [...text.matchAll(/^```(?:sh|bash|console)\n([\s\S]+?)^```$/gm)].map(
    ([, block = '']) => block,
  );
  return blocks
    .flatMap((block) => block.replaceAll('\\\n', ' ').split('\n'))
    .map((line) => line.replace(/\s+#.*$/, ''));
}

/** Returns the code spans in the text. */
function spansOf(text: string): string[] {
  const spans = text.replaceAll(/^```[\s\S]+?^```$/gm, '').matchAll(/`([^`]+)`/g);
  return [...spans].map(([, code = '']) => code.replaceAll(/\s+/g, ' '));
}

/**
 * Matches one of our command lines, from its first argument on. `carillon ready <URL>` is a line
 * that `npm start` prints.
 */
const commandLine = /^(?:.*\bnpx )?carillon (?!ready )([a-z-].*)$/;

/**
 * Returns the words of a command line as a shell splits them. `<placeholders with spaces>` are one
 * word.
 */
const wordsOf = (line: string): string[] => line.match(/'[^']*'|"[^"]*"|<[^>]*>|\S+/g) ?? [];

/** Returns the first unknown word of a command line, or undefined if all words are known. */
function unknownWord(words: readonly string[]): string | undefined {
  let command: Command = program;
  let isValue = false;
  const options = [...program.options];
  for (const word of words) {
    if (isValue || word === '--help') {
      isValue = false;
    } else if (word.startsWith('--')) {
      const option = options.find(({ long }) => long === word.split('=')[0]);
      if (!option) return word;
      isValue = option.required && !word.includes('=');
    } else {
      if (word === '>' || word === '|' || word === '&&') return undefined;
      const next = command.commands.find((candidate) => candidate.name() === word);
      const takesArguments = command.registeredArguments.length > 0;
      if (!next && command.commands.length > 0 && !takesArguments) return word;
      command = next ?? command;
      options.push(...(next?.options ?? []));
    }
  }
  return undefined;
}

/** True if a command needs an app and names none. It fails if there are two apps. */
function lacksApp(words: readonly string[]): boolean {
  let command: Command = program;
  for (const word of words)
    command = command.commands.find((candidate) => candidate.name() === word) ?? command;
  const option = command.options.find(({ long }) => long === '--app');
  return option?.description.includes('not needed') === true && !words.includes('--app');
}

/** True if a line sends to every device when a reader pastes it. */
const lacksTarget = (line: string): boolean =>
  /^(push|recurring create) /.test(line) && !/ --(channels|where|dry-run)\b/.test(line);

/** True if a benchmark accepts the option. */
function isBenchOption(name: string): boolean {
  try {
    readArgs([`${name}=1`]);
    return true;
  } catch (error) {
    return !(error instanceof Error && 'code' in error);
  }
}

/** Scripts of all packages in the repository. */
const scripts = new Set<string>();
for (const name of files.filter((one) => one.endsWith('package.json')))
  for (const script of Object.keys(
    JSON.parse(await readFile(new URL(name, root), 'utf8')).scripts ?? {},
  ))
    scripts.add(script);

/** Returns the error in the words after `npm run`, or undefined if there is none. */
function unknownScript([script = '', separator, benchmark = '', ...more]: readonly string[]):
  | string
  | undefined {
  if (!scripts.has(script)) return script;
  if (script !== 'bench' || separator !== '--' || benchmark.startsWith('<')) return undefined;
  if (!benchmarkNames.includes(benchmark)) return benchmark;
  return more.find((word) => word.startsWith('--') && !isBenchOption(word));
}

/** Options of all commands. */
const options = new Set(['--help']);
(function collect(command: Command): void {
  for (const { long } of command.options) options.add(long ?? '');
  command.commands.forEach(collect);
})(program);
/** Options of other programs that a page mentions alone. */
const foreign = new Set(['--delta']);

test('unknown words of a command line are detected', () => {
  expect(unknownWord(wordsOf('push --app <app id> --alert Hello --dry-run'))).toBeUndefined();
  expect(unknownWord(wordsOf('outbox --state failed'))).toBeUndefined();
  expect(unknownWord(wordsOf('push --ap <app id>'))).toBe('--ap');
  expect(unknownWord(wordsOf('profiles put'))).toBe('profiles');
  expect(unknownWord(wordsOf('profile pot'))).toBe('pot');
  expect(unknownScript(wordsOf('bench -- pipeline 5000 --threads 2'))).toBeUndefined();
  expect(unknownScript(wordsOf('bench -- pipelines'))).toBe('pipelines');
  expect(unknownScript(wordsOf('bench -- pipeline --thread 2'))).toBe('--thread');
  expect(unknownScript(wordsOf('benches'))).toBe('benches');
});

const found = await Promise.all(
  pages.map(async (page) => {
    const text = currentPart(await readFile(new URL(page, root), 'utf8'));
    const lines = linesOf(text);
    return { page, lines, codes: [...lines, ...spansOf(text)] };
  }),
);
/**
 * Returns what `pattern` captures in the code of the pages and `isKnown` refuses, with its page.
 */
function refused(pattern: RegExp, isKnown: (text: string) => boolean): string[] {
  return found.flatMap(({ page, codes }) =>
    codes
      .flatMap((code) => code.match(pattern)?.[1] ?? [])
      .filter((text) => !isKnown(text))
      .map((text) => `${page}: ${text}`),
  );
}

describe('every document names only existing', () => {
  test('commands of the command line, with their options', () => {
    const commands = found.flatMap(({ codes }) =>
      codes.flatMap((code) => code.match(commandLine)?.[1] ?? []),
    );
    expect(commands.length).toBeGreaterThan(300);
    expect(refused(commandLine, (line) => unknownWord(wordsOf(line)) === undefined)).toEqual([]);
  });

  test('commands in blocks, with their app, and with targets if they send', () => {
    const wanting = found.flatMap(({ page, lines }) =>
      lines
        .flatMap((line) => line.match(commandLine)?.[1] ?? [])
        .filter((line) => lacksApp(wordsOf(line)) || lacksTarget(line))
        .map((line) => `${page}: ${line}`),
    );
    expect(wanting).toEqual([]);
  });

  test('scripts of npm, and benchmarks with their options', () => {
    expect(
      refused(/\bnpm run (.+)$/, (line) => unknownScript(wordsOf(line)) === undefined),
    ).toEqual([]);
  });

  test('options of `npm test`, each on the pages for contributors', async () => {
    const source = await readFile(new URL('ops/check/all.ts', root), 'utf8');
    const [, members = ''] = source.match(/const optional = \{([^}]+)\}/) ?? [];
    const options = [...members.matchAll(/(\w+):/g)].map(([, name]) => `--${name}`);
    expect(options.length).toBeGreaterThan(4);
    const named = (page: string) =>
      found
        .filter((one) => one.page === page)
        .flatMap(({ codes }) => codes.filter((code) => code.startsWith('npm test -- ')))
        .flatMap((code) => code.split(' ').slice(3));
    for (const page of ['CONTRIBUTING.md', 'docs/develop/testing.md'])
      expect([...new Set(named(page))].sort(), page).toEqual([...options].sort());
  });

  test('benchmarks, and lists all of them', async () => {
    const text = await readFile(new URL('ops/bench/README.md', root), 'utf8');
    const listed = [...text.matchAll(/`([a-z0-9]+)(?: \[[^`]*)?`(?=[^|\n]*\|)/g)].map(
      ([, name]) => name,
    );
    expect(benchmarkNames.filter((name) => !listed.includes(name))).toEqual([]);
  });

  test('options that are mentioned alone', () => {
    const isKnown = (name: string) => options.has(name) || foreign.has(name) || isBenchOption(name);
    expect(refused(/^(--[a-z][a-z-]*)/, isKnown)).toEqual([]);
  });
});
