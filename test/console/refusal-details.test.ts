import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { detailTexts } from '../../shared/domain/errors/detail-texts.ts';
import { detailOf } from '../../shared/domain/errors/details.ts';

const root = join(import.meta.dirname, '../..');
const folders = ['api/services/operator', 'api/services/push', 'api/routes/admin'];

/** Returns the texts of refusals that the sources of the admin API have, with `x` for each value. */
function textsOfSources(): string[] {
  const files = folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => join(root, folder, name)),
  );
  files.push(join(root, 'api/middleware/operator-authentication.ts'));
  const refusal = /refuse\(\s*'\w+',\s*(['`])(.*?)\1,?\s*\)/gs;
  return files.flatMap((file) =>
    [...readFileSync(file, 'utf8').matchAll(refusal)].map(([, , text = '']) =>
      text.replaceAll(/\$\{[^}]*\}/g, 'x').replaceAll('\\`', '`'),
    ),
  );
}

/** Texts whose value is a sentence of its own, or has a code with each value. */
const withoutCode = ['data: x', 'x.', 'x is not frozen.'];

test('every refusal of the admin API with a text of its own has a code and a Chinese text', () => {
  const texts = textsOfSources();
  expect(texts.length).toBeGreaterThan(50);
  expect(texts.filter((text) => !withoutCode.includes(text) && !detailOf(text))).toEqual([]);
});

test('a template has the same members in both languages, and fits its own text first', () => {
  const membersOf = (text: string) => [...text.matchAll(/\{(\w+)\}/g)].map(([, name]) => name).sort();
  for (const [code, [en, zh]] of Object.entries(detailTexts)) {
    expect([code, membersOf(zh)]).toEqual([code, membersOf(en)]);
    expect(zh).toMatch(/\p{Script=Han}/u);
    expect(detailOf(en.replaceAll(/\{\w+\}/g, 'x'))?.code).toBe(code);
  }
});

test('a detail has its members, and words of states in Chinese', () => {
  expect(detailOf('The push is done and cannot be paused.')).toEqual({
    code: 'wrongState',
    params: { state: 'done', verb: 'paused' },
    zh: '推送的状态是已完成，不能暂停。',
  });
  expect(detailOf('Something else.')).toBeUndefined();
});
