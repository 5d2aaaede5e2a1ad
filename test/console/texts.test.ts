import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { program } from '../../ops/cli/program.ts';
import { guideFiles, placeOf } from '../../ops/console/guides.ts';

const folder = join(import.meta.dirname, '../../ops/console/src');
const read = (file: string): unknown =>
  JSON.parse(readFileSync(join(folder, 'text', file), 'utf8'));
const sources = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  .filter((name) => /\.tsx?$/.test(name))
  .map((name) => readFileSync(join(folder, name), 'utf8'));

/** Returns the texts of a language by their full keys. */
function flat(value: unknown, path = ''): [string, string][] {
  if (typeof value === 'string') return [[path, value]];
  return Object.entries(value ?? {}).flatMap(([key, inner]) =>
    flat(inner, path === '' ? key : `${path}.${key}`),
  );
}

const english = new Map(flat(read('en.json')));
const chinese = new Map(flat(read('zh.json')));
const placeholders = (text = '') =>
  [...text.matchAll(/\{\{(\w+)\}\}/g)].map(([, name]) => name).sort();

test('both languages have the same texts with the same placeholders', () => {
  expect([...chinese.keys()]).toEqual([...english.keys()]);
  const different = [...english].filter(
    ([key, text]) => String(placeholders(text)) !== String(placeholders(chinese.get(key))),
  );
  expect(different).toEqual([]);
});

test('Chinese texts are Chinese', () => {
  const allowed = new Set(['shell.person', 'apps.id', 'push.id', 'devices.id', 'overview.of']);
  const others = [...chinese].filter(
    ([key, text]) => !/\p{Script=Han}/u.test(text) && !allowed.has(key),
  );
  expect(others).toEqual([]);
});

test('every text that a page names exists', () => {
  const used = sources.flatMap((source) =>
    [...source.matchAll(/(?:\bt\(\s*|title: )'(\w[\w.-]+\.[\w.-]+)'/g)].map(([, key = '']) => key),
  );
  expect(used.length).toBeGreaterThan(50);
  const known = (key: string) => english.has(key) || english.has(`${key}_other`);
  expect(used.filter((key) => !known(key))).toEqual([]);
});

test('every command that a page shows exists', () => {
  const commands = sources.flatMap((source) =>
    [...source.matchAll(/(?:command=[{]?["`]|npx carillon )([a-z][a-z -]*)/g)].map(
      ([, words = '']) => words.trim().replace(/ --?.*/, ''),
    ),
  );
  expect(commands.length).toBeGreaterThan(4);
  for (const words of commands) {
    let command: { commands: readonly (typeof program)[] } = program;
    for (const word of words.split(' ').filter((part) => !part.startsWith('-'))) {
      const next = command.commands.find((one) => one.name() === word);
      if (!next) break;
      command = next;
    }
    expect(command, words).not.toBe(program);
  }
});

test('every guide that a page names exists', () => {
  const docs = sources.flatMap((source) =>
    [...source.matchAll(/\bdoc: '([\w/-]+)'/g)].map(([, name = '']) => name),
  );
  expect(docs.length).toBeGreaterThan(20);
  const guides = new Set(guideFiles().map((file) => placeOf(file).path));
  expect(docs.filter((path) => !guides.has(path))).toEqual([]);
});
