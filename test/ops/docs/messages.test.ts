import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const root = new URL('../../../', import.meta.url);
const read = (name: string) => readFile(new URL(name, root), 'utf8');
const run = promisify(execFile);

/** Sources with texts for people, without the marks of values: `{name}` and `${name}`. */
const paths = ['api/**.ts', 'ops/cli/**.ts', 'ops/import/**.ts', 'ops/move-in/**.ts'];
const listed = await run('git', ['ls-files', ...paths, 'ops/local/**.ts', 'shared/**.ts'], {
  cwd: root,
});
const sources = [...listed.stdout.trim().split('\n'), 'shared/domain/texts/en.json'];
const texts = (await Promise.all(sources.map(read)))
  .join('\n')
  .replaceAll(/\\(['"`])/g, '$1')
  // A long sentence is joined from several literals.
  .replaceAll(/'\s*\+\s*'/g, '');

/** Returns the messages in the first column of the tables whose heading is "message". */
const messagesOf = (page: string): string[] =>
  [...page.matchAll(/^\| message \|.*\n\|[-|]+\n((?:\|.*\n)+)/gm)].flatMap(([, rows = '']) =>
    [...rows.matchAll(/^\| (.+?) \|/gm)].flatMap(([, cell = '']) =>
      [...cell.matchAll(/`([^`]+)`/g)].map(([, message = '']) => message),
    ),
  );

/** True if all parts of a message between its values are texts of the code. */
const isText = (message: string): boolean =>
  message
    .split('…')
    .map((part) => part.replace(/^[\s(]+|[\s(]+$/g, ''))
    .filter((part) => part.length > 3)
    .flatMap((part) => (texts.includes(part) ? [] : part.split(/(?<=\.) /)))
    .every((part) => texts.includes(part));

test.each(['docs/zh/moving-in.md', 'docs/zh/go-live.md', 'docs/zh/troubleshooting.md'])(
  'the Chinese messages that %s explains are texts of a Chinese terminal',
  async (page) => {
    const catalogues = ['shared/domain/texts/zh.json', 'ops/cli/zh.json'];
    const known = (await Promise.all(catalogues.map(read)))
      .join('\n')
      .replaceAll(/\\(.)|`|\{\w+\}/g, '$1');
    const cells = [
      ...(await read(page)).matchAll(/^\| `[^|]*`（([^|]*\p{Script=Han}[^|]*)） \|/gmu),
    ];
    const parts = cells.flatMap(([, text = '']) => text.split('……'));
    expect(cells.length).toBeGreaterThan(10);
    expect(parts.filter((part) => !known.includes(part.trim()))).toEqual([]);
  },
);

test.each(['docs/moving-in.md', 'docs/go-live.md', 'docs/troubleshooting.md'])(
  'the messages that %s explains are messages of the code',
  async (page) => {
    const messages = messagesOf(await read(page));
    expect(messages.length).toBeGreaterThan(10);
    expect(messages.filter((message) => !isText(message))).toEqual([]);
    expect(isText('There is no mesage of … here.')).toBe(false);
  },
);
