import type { Context, Middleware } from 'koa';
import type {
  ConsoleFile,
  ConsoleFiles,
  Encoding,
  LoadedConsole,
} from '../../services/server/console-files.ts';
import { htmlPage, type Language, pageHeaders } from '../../services/server/html-page.ts';
import { languageOf } from '../errors.ts';

/** Path below which the console is served; `/console/api` has the routes of the admin API. */
const base = '/console';
const index = 'index.html';
/** Paths of pages (ops/console/src/router.tsx) and files; other paths are 404 as everywhere. */
const pages =
  /^\/console\/(?:$|assets\/|build\.json$|icon\.svg$|login$|apps(?:\/|$)|(?:operating|people|audit|secret)$)/;

/**
 * Headers of every file of the console (protocol/admin-api.md#console-page): scripts and styles come from this server only,
 * no text becomes markup (Trusted Types), and no other page may frame it or share its process.
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
 * Serves the files of the console to GET and HEAD below `/console`, compressed when the build was. Paths of pages get the
 * index, which shows the page. Before the first build is ready: 503 with a page that loads itself again.
 */
export function serveConsole(files: ConsoleFiles, { isHttps }: { isHttps: boolean }): Middleware {
  return async (ctx, next) => {
    if (!isConsolePath(ctx)) return next();
    // The log and the metrics name the route, never the path.
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
    text: 'This page loads itself again. If it stays, run <code>npx carillon console build</code> on the server.',
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
