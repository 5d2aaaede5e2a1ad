import type { Context } from 'koa';

/** Returns the language of a reply by `Accept-Language`; English is the default. */
export const languageOf = (ctx: Context): 'en' | 'zh' =>
  ctx.acceptsLanguages('en', 'zh') === 'zh' ? 'zh' : 'en';
