import type { Language } from '../../../shared/domain/texts/catalogue.ts';
import texts from './texts.json' with { type: 'json' };

export { texts };

/** Returns the language of a page by `Accept-Language`: the first of our languages in the list. */
export function languageFor(accepted: string | undefined): Language {
  const first = (accepted ?? '').toLowerCase().match(/(?:^|,)\s*(en|zh)\b/)?.[1];
  return first === 'zh' ? 'zh' : 'en';
}
