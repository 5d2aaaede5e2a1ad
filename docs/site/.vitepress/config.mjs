import { posix } from 'node:path';
import { defineConfig } from 'vitepress';
import { chinese, english } from './sidebar.ts';

/**
 * Address of the repository's files, such as https://git.example/carillon/blob/main; without it
 * links to code become plain text.
 */
const repository = process.env.REPOSITORY_URL?.replace(/\/$/, '');

/** Resolves a link of a page; returns undefined where it stays inside docs/ or names a host. */
function pathOutside(page, href) {
  if (/^([a-z]+:|#|\/)/.test(href)) return undefined;
  const path = posix.normalize(posix.join('docs', posix.dirname(page), href));
  return path.startsWith('docs/') && !path.startsWith('docs/site') && !/\.json$/.test(path)
    ? undefined
    : path;
}

/**
 * Takes `<name>` and `{{name}}` in a page as text, as they are meant, and points links that leave
 * docs/ to the repository or turns them into text.
 */
function plainMarkdown(md) {
  md.set({ html: false });
  for (const rule of ['text', 'code_inline']) {
    const render = md.renderer.rules[rule];
    md.renderer.rules[rule] = (...args) => render(...args).replaceAll('{{', '&#123;&#123;');
  }
  md.core.ruler.push('links-to-code', ({ tokens, env }) => {
    for (const { children } of tokens) {
      for (const [at, token] of (children ?? []).entries()) {
        const path =
          token.type === 'link_open' && pathOutside(env.relativePath, token.attrGet('href'));
        if (!path) continue;
        if (repository) {
          token.attrSet('href', `${repository}/${path}`);
          continue;
        }
        token.type = 'html_inline';
        const close = children.slice(at).find(({ type }) => type === 'link_close');
        if (close) close.type = 'html_inline';
      }
    }
  });
}

/** Returns the anchor that GitHub gives a heading, so that a link to a section works in both places. */
const anchorOf = (heading) =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(' ', '-');

/** Texts of the search in Chinese. */
const searchInChinese = {
  button: { buttonText: '搜索', buttonAriaLabel: '搜索' },
  modal: {
    displayDetails: '显示详细列表',
    resetButtonTitle: '清除查询条件',
    backButtonTitle: '关闭搜索',
    noResultsText: '没有找到结果',
    footer: { selectText: '选择', navigateText: '切换', closeText: '关闭' },
  },
};

/**
 * Splits a text into terms for the search. Chinese has no spaces, so each Han character is a term.
 * The page loads this function as text, so it uses nothing outside of itself.
 */
function termsOf(text) {
  return text.match(/\p{Script=Han}|[^\s\p{P}\p{S}\p{Script=Han}]+/gu) ?? [];
}

export default defineConfig({
  title: 'Carillon',
  description:
    'Self-hosted push notifications, accounts and verification codes, with the API of LeanCloud',
  srcDir: 'pages',
  rewrites: (path) => path.replace(/README\.md$/, 'index.md'),
  cleanUrls: true,
  markdown: { config: plainMarkdown, anchor: { slugify: anchorOf } },
  themeConfig: {
    search: {
      provider: 'local',
      options: {
        miniSearch: { options: { tokenize: termsOf }, searchOptions: { combineWith: 'AND' } },
        locales: { zh: { translations: searchInChinese } },
      },
    },
  },
  locales: {
    root: {
      label: 'English',
      lang: 'en',
      themeConfig: { sidebar: english() },
    },
    zh: {
      label: '中文',
      lang: 'zh-CN',
      description: '可自行部署的推送、账号和验证码服务，兼容 LeanCloud 的 API',
      themeConfig: {
        sidebar: chinese(),
        outline: { label: '本页目录' },
        docFooter: { prev: '上一页', next: '下一页' },
      },
    },
  },
});
