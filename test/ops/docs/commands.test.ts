import { readdir, readFile } from 'node:fs/promises';
import type { Command } from 'commander';
import { describe, expect, test } from 'vitest';
import { program } from '../../../ops/cli/program.ts';

const root = new URL('../../../', import.meta.url);
const pages = [
  'README.md',
  'CONTRIBUTING.md',
  ...(await readdir(new URL('docs/', root)))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
];

/** Command lines of the blocks of a page that start `carillon`, without comments; continued lines are one. */
function commandLines(text: string): string[] {
  const blocks = [...text.matchAll(/^```sh\n([\s\S]+?)^```$/gm)].map(([, block = '']) => block);
  return blocks
    .flatMap((block) => block.replaceAll('\\\n', ' ').split('\n'))
    .map((line) => line.replace(/\s+#.*$/, ''))
    .flatMap((line) => line.match(/npx carillon (.*)$/)?.[1] ?? []);
}

/** Words of a command line as a shell splits them; `<placeholders with blanks>` are one word. */
const wordsOf = (line: string): string[] => line.match(/'[^']*'|"[^"]*"|<[^>]*>|\S+/g) ?? [];

/** Names the first word that the command line does not know; undefined if it knows all of them. */
function unknownWord(words: string[]): string | undefined {
  let command: Command = program;
  const options = [...program.options];
  for (const [at, word] of words.entries()) {
    if (word.startsWith('--')) {
      const option = options.find(({ long }) => long === word.split('=')[0]);
      if (!option) return word;
      if (option.required && !word.includes('=')) words[at + 1] = '(value)';
      continue;
    }
    if (word === '>' || word === '|') return undefined;
    const next = command.commands.find((candidate) => candidate.name() === word);
    if (next) {
      command = next;
      options.push(...next.options);
    } else if (command.commands.length > 0) {
      return word;
    }
  }
  return undefined;
}

test('unknown words of a command line are detected', () => {
  expect(unknownWord(wordsOf('push --app <app id> --alert Hello --dry-run'))).toBeUndefined();
  expect(unknownWord(wordsOf('push --ap <app id>'))).toBe('--ap');
  expect(unknownWord(wordsOf('profiles put'))).toBe('profiles');
  expect(unknownWord(wordsOf('profile pot'))).toBe('pot');
});

const found = await Promise.all(
  pages.map(async (page) => ({ page, lines: commandLines(await readFile(new URL(page, root), 'utf8')) })),
);

describe('every command of the documentation is one that the command line knows', () => {
  test.each(found.filter(({ lines }) => lines.length > 0))('$page', ({ lines }) => {
    expect(lines.filter((line) => unknownWord(wordsOf(line)) !== undefined)).toEqual([]);
  });

  test('and the pages name more than twenty of them', () => {
    expect(found.flatMap(({ lines }) => lines).length).toBeGreaterThan(20);
  });
});
