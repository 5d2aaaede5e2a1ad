import type { Context, Middleware } from 'koa';
import type {
  ConsoleFile,
  ConsoleFiles,
  Encoding,
  LoadedConsole,
} from '../../services/server/console-files.ts';
import {
  htmlPage,
  type Language,
  type Page,
  pageHeaders,
} from '../../services/server/html-page.ts';
import { languageOf } from '../errors.ts';

/** Links of the front page, in order. Links without a route are omitted. */
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
      api:
        'It works. Apps speak to the paths below <code>/1.1</code> with their id and key. ' +
        'The console contains the guides. The folder <code>docs</code> of the software contains ' +
        'all documentation.',
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
      api:
        '服务运行正常。应用用自己的 id 和 key 访问 <code>/1.1</code> 下的接口。控制台中有使用指南，全部文档在软件的 ' +
        '<code>docs</code> 目录中。',
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

/** Returns whether a browser sent the request, because it prefers HTML to JSON. */
const wantsPage = (ctx: Context): boolean =>
  (ctx.method === 'GET' || ctx.method === 'HEAD') && ctx.accepts('json', 'html') === 'html';

/**
 * Serves HTML pages to browsers: a front page at `/`, and a page for paths without a route. Other
 * clients get JSON. `hasRoute` returns whether GET of a path has a route.
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

/** Sends a page as the reply. */
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
  return htmlPage(404, {
    language,
    title,
    body: [`<p>${text}</p>`, `<p><a href="/">${home}</a></p>`],
  });
}

/** Path below which the console is served. `/console/api` contains the routes of the admin API. */
const base = '/console';
const index = 'index.html';
/** Paths of pages (ops/console/src/router.tsx) and files. Other paths get the usual 404. */
const pages =
  /^\/console\/(?:$|assets\/|build\.json$|icon\.svg$|login$|(?:apps|docs)(?:\/|$)|(?:operating|webhooks|people|audit|secret|go-live)$)/;

/**
 * Headers of every console file (protocol/admin-api.md#console-page). Scripts and styles come only
 * from this server, no text becomes markup (Trusted Types), and no other page may frame the console
 * or share its process.
 */
const headers: Readonly<Record<string, string>> = {
  'Content-Security-Policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; '),
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'same-origin',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Permissions-Policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
};
const strictTransport = { 'Strict-Transport-Security': 'max-age=31536000' };

/**
 * Serves the console's files to GET and HEAD below `/console`, compressed if the build contains
 * compressed files. Paths of pages get the index, which shows the page. Before the first build is
 * ready, replies with 503 and a page that reloads itself.
 */
export function serveConsole(files: ConsoleFiles, { isHttps }: { isHttps: boolean }): Middleware {
  return async (ctx, next) => {
    if (!isConsolePath(ctx)) return next();
    // The log and the metrics contain the route, never the path.
    ctx._matchedRoute = `${base}/*`;
    const build = await files.current();
    if (!build) return showUnbuilt(ctx);
    ctx.set({ ...headers, ...(isHttps ? strictTransport : {}) });
    serve(ctx, build);
  };
}

function isConsolePath({ method, path }: Context): boolean {
  if (method !== 'GET' && method !== 'HEAD') return false;
  return path === base || pages.test(path);
}

function serve(ctx: Context, { digest, files }: LoadedConsole): void {
  const path = ctx.path.slice(base.length + 1);
  const isAsset = path.startsWith('assets/');
  const name = isAsset || files.has(path) ? path : index;
  const file = files.get(name);
  if (!file) {
    ctx.status = 404;
    ctx.body = { code: 404, error: 'There is no such file.' };
    return;
  }
  // The name of an asset changes with its content.
  ctx.set('Cache-Control', isAsset ? 'public, max-age=31536000, immutable' : 'no-cache');
  ctx.vary('Accept-Encoding');
  ctx.status = 200;
  ctx.set('ETag', `W/"${digest}"`);
  if (ctx.fresh) ctx.status = 304;
  else send(ctx, file);
}

function send(ctx: Context, { type, bodies }: ConsoleFile): void {
  const wanted = ctx.acceptsEncodings(...(bodies.br ? ['br', 'gzip', 'identity'] : ['identity']));
  const encoding: Encoding = wanted === 'br' || wanted === 'gzip' ? wanted : 'identity';
  if (encoding !== 'identity') ctx.set('Content-Encoding', encoding);
  ctx.body = bodies[encoding];
  ctx.type = type;
}

const unbuiltTexts: Record<Language, { title: string; text: string }> = {
  en: {
    title: 'The console is being built',
    text:
      'This page loads itself again. If it stays, run <code>npx carillon console ' +
      'build</code> on the server.',
  },
  zh: {
    title: '控制台正在构建',
    text: '页面会自动刷新。如果一直停留在此，请在服务器上运行 <code>npx carillon console build</code>。',
  },
};

function showUnbuilt(ctx: Context): void {
  const language = languageOf(ctx);
  const { title, text } = unbuiltTexts[language];
  const { html } = htmlPage(503, { language, title, body: [`<p>${text}</p>`] });
  ctx.status = 503;
  ctx.set({ ...pageHeaders, 'Retry-After': '1', Refresh: '1' });
  ctx.vary('Accept-Language');
  ctx.type = 'text/html; charset=utf-8';
  ctx.body = html;
}
