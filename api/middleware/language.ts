import type { Context } from 'koa';

/** Returns the language of a reply by `Accept-Language`; English is the default. */
export const languageOf = (ctx: Context): 'en' | 'zh' =>
  // SDKs send no such header, and parsing one takes longer than most of a call.
  ctx.req.headers['accept-language'] !== undefined && ctx.acceptsLanguages('en', 'zh') === 'zh' ? 'zh' : 'en';
