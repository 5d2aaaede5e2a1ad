import type { Context, Middleware } from 'koa';
import { htmlPage, type Language, type Page, pageHeaders } from '../../services/server/html-page.ts';
import { languageOf } from '../errors.ts';

/** Links of the front page, in its order; those without a route are left out. */
const frontPageLinks = ['/console', '/docs', '/healthz', '/readyz'] as const;

const texts: Record<
  Language,
  {
    front: { title: string; text: string; api: string };
    frontPageLinks: Record<(typeof frontPageLinks)[number], string>;
    missing: { title: string; text: string; home: string };
  }
> = {
  en: {
    front: {
      title: 'Carillon',
      text: 'A push-delivery server with the account and verification API of mobile apps.',
      api: 'It works. Apps speak to the paths below <code>/1.1</code> with their id and key; its documentation came with it: <code>README.md</code> and the folder <code>docs</code>.',
    },
    frontPageLinks: {
      '/console': 'Console',
      '/docs': 'Documentation',
      '/healthz': 'Health: the process lives',
      '/readyz': 'Readiness: it can do its work',
    },
    missing: {
      title: 'Page not found',
      text: 'There is nothing at this address.',
      home: 'To the front page',
    },
  },
  zh: {
    front: {
      title: 'Carillon',
      text: '推送服务器，提供移动应用的账号与验证接口。',
      api: '服务运行正常。应用用自己的 id 和 key 访问 <code>/1.1</code> 下的接口；文档随软件提供：<code>README.md</code> 和 <code>docs</code> 目录。',
    },
    frontPageLinks: {
      '/console': '控制台',
      '/docs': '文档',
      '/healthz': '健康检查：进程正在运行',
      '/readyz': '就绪检查：可以处理请求',
    },
    missing: { title: '页面不存在', text: '此地址没有内容。', home: '返回首页' },
  },
};

/** Tells whether a browser sends the request: it prefers HTML to JSON. */
const wantsPage = (ctx: Context): boolean =>
  (ctx.method === 'GET' || ctx.method === 'HEAD') && ctx.accepts('json', 'html') === 'html';

/**
 * Serves HTML pages to browsers: a front page at `/`, and a page for a path without a route. Other clients get JSON.
 * `hasRoute` tells whether a GET of a path has a route.
 */
export function serveHtmlPages(hasRoute: (path: string) => boolean): Middleware {
  return async (ctx, next) => {
    const isFront = ctx.path === '/' && !hasRoute('/');
    if (isFront && wantsPage(ctx)) return showPage(ctx, frontPage(languageOf(ctx), hasRoute));
    await next();
    const isUnanswered = ctx.status === 404 && ctx.body === undefined;
    if (isUnanswered) ctx.vary('Accept');
    if (isUnanswered && wantsPage(ctx)) showPage(ctx, missingPage(languageOf(ctx)));
  };
}

/** Answers with a page. */
export function showPage(ctx: Context, { status, html }: Page): void {
  ctx.status = status;
  ctx.set({ ...pageHeaders });
  ctx.vary('Accept');
  ctx.vary('Accept-Language');
  ctx.type = 'text/html; charset=utf-8';
  ctx.body = html;
}

function frontPage(language: Language, hasRoute: (path: string) => boolean): Page {
  const { front, frontPageLinks: names } = texts[language];
  const links = frontPageLinks
    .filter(hasRoute)
    .map((path) => `<li><a href="${path}">${names[path]}</a></li>`);
  const body = [`<p>${front.text}</p>`, `<p>${front.api}</p>`, '<ul>', ...links, '</ul>'];
  return htmlPage(200, { language, title: front.title, body });
}

function missingPage(language: Language): Page {
  const { title, text, home } = texts[language].missing;
  return htmlPage(404, { language, title, body: [`<p>${text}</p>`, `<p><a href="/">${home}</a></p>`] });
}
