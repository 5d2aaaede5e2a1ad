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
  expect(translated.sort()).toEqual([
    'clients/README.md',
    'clients/android-china.md',
    'clients/android-fcm.md',
    'clients/flutter.md',
    'clients/harmonyos.md',
    'clients/ios.md',
    'clients/mini-program.md',
    'clients/react-native.md',
    'clients/web.md',
    'concepts.md',
    'credentials/README.md',
    'credentials/apns.md',
    'credentials/fcm.md',
    'credentials/honor.md',
    'credentials/huawei.md',
    'credentials/meizu.md',
    'credentials/oppo.md',
    'credentials/vivo.md',
    'credentials/webpush.md',
    'credentials/xiaomi.md',
    'getting-started.md',
    'moving-in.md',
    'operate/mail-and-sms.md',
    'operate/single-sign-on.md',
    'sending.md',
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

test('the site has a link to every page', async () => {
  const config = await readFile(new URL('site/.vitepress/config.mjs', docs), 'utf8');
  const pages = (await readdir(docs, { recursive: true }))
    .filter(
      (name) => name.endsWith('.md') && !/^(site|reference\/protocol)\/|README\.md$/.test(name),
    )
    .map((name) => `/${name.replace(/\.md$/, '')}`);
  expect(pages.length).toBeGreaterThan(30);
  expect(pages.filter((page) => !config.includes(`'${page}'`))).toEqual([]);
});
