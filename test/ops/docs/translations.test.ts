import { readdir, readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';

/** Tests the user documentation, which exists in English (`docs/`) and in Chinese (`docs/zh/`). */
const docs = new URL('../../../docs/', import.meta.url);
const read = (page: string) => readFile(new URL(page, docs), 'utf8');
const translated = (await readdir(new URL('zh/', docs), { recursive: true })).filter((name) =>
  name.endsWith('.md'),
);

const fence = /^```\w+\n[\s\S]+?^```$/gm;
const blocks = (text: string) => [...text.matchAll(fence)].map(([block]) => block);
/** Returns the code spans outside blocks: paths, options, members, lines of SDKs. */
const codeMarks = (text: string) => {
  const marks = [...text.replaceAll(fence, '').matchAll(/`([^`\n]+)`/g)].map(([, code]) => code);
  return [...new Set(marks)].sort();
};

test('the pages for newcomers, and those about services in China, are translated', () => {
  // Each client and each vendor has a page in both languages.
  const guides = translated.filter((name) => !/^(clients|credentials)\//.test(name));
  expect(guides.sort()).toEqual([
    'README.md',
    'accounts.md',
    'backup.md',
    'cloud-functions.md',
    'concepts.md',
    'console.md',
    'faq.md',
    'first-push.md',
    'getting-started.md',
    'glossary.md',
    'go-live.md',
    'limitations.md',
    'live-activities.md',
    'moving-in.md',
    'opens.md',
    'operate/alerts.md',
    'operate/credentials.md',
    'operate/deploy.md',
    'operate/distributed.md',
    'operate/growth.md',
    'operate/high-availability.md',
    'operate/mail-and-sms.md',
    'operate/people.md',
    'operate/personal-data.md',
    'operate/pgbackrest.md',
    'operate/redrive.md',
    'operate/secret.md',
    'operate/single-sign-on.md',
    'operate/sizing.md',
    'operate/tracing.md',
    'operate/upgrade.md',
    'production.md',
    'security.md',
    'sending.md',
    'troubleshooting.md',
    'web-push.md',
    'webhooks.md',
  ]);
});

test.each(translated)(
  '%s has the same blocks, commands, members and paths in both languages',
  async (page) => {
    const [english, chinese] = await Promise.all([read(page), read(`zh/${page}`)]);
    expect(blocks(chinese)).toEqual(blocks(english));
    expect(codeMarks(chinese)).toEqual(codeMarks(english));
  },
);

test.each(translated)('%s leads to the page in the other language', async (page) => {
  const [english, chinese] = await Promise.all([read(page), read(`zh/${page}`)]);
  const up = '../'.repeat(page.split('/').length - 1);
  expect(english).toContain(`\n[中文](${up}zh/${page})\n`);
  expect(chinese).toContain(`\n[English](../${up}${page})\n`);
});

test('no Chinese page calls a translated page English', async () => {
  const called: string[] = [];
  for (const page of ['../README.zh.md', ...translated.map((name) => `zh/${name}`)]) {
    const marked = (await read(page)).matchAll(/\]\(([^()#]+\.md)[^()]*\)(?:（英文|，英文)/g);
    for (const [, target = ''] of marked) {
      const { pathname } = new URL(target, new URL(page, docs));
      const name = pathname.split('/docs/')[1]?.replace(/^zh\//, '') ?? '';
      if (translated.includes(name)) called.push(`${page}: ${target}`);
    }
  }
  expect(called).toEqual([]);
});

test('README.zh.md has the blocks of README.md, and no other commands, members and paths', async () => {
  const [english, chinese] = await Promise.all([read('../README.md'), read('../README.zh.md')]);
  const examples = (text: string) => [...text.matchAll(/^```\w*\n[\s\S]+?^```$/gm)].map(String);
  expect(examples(english)).toEqual(expect.arrayContaining(examples(chinese)));
  expect(examples(chinese).length).toBeGreaterThan(2);
  expect(codeMarks(chinese).filter((mark) => !codeMarks(english).includes(mark))).toEqual([]);
});
