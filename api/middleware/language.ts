import type { Context } from 'koa';

/** Which of our languages the sender of a request reads, by `Accept-Language`; English is the default. */
export const languageOf = (ctx: Context): 'en' | 'zh' =>
  ctx.acceptsLanguages('en', 'zh') === 'zh' ? 'zh' : 'en';
