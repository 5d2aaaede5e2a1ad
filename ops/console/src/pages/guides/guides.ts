import type { Language } from '../../../../../shared/domain/texts/catalogue.ts';
import { isChinese } from '../../text/texts.ts';
import { type Guide, guides } from './guide-list.ts';

/**
 * Returns a guide in the language of the page, or in English if the guide is not translated.
 * Returns undefined if there is no such guide.
 */
export function findGuide(path: string): (Guide & { language: Language }) | undefined {
  const { zh, en } = guides[path] ?? {};
  if (zh && isChinese()) return { ...zh, language: 'zh' };
  return en && { ...en, language: 'en' };
}

/** Returns the guides whose title in any language contains a text. Letter case is ignored. */
export function searchGuides(text: string): { path: string; title: string }[] {
  const searchText = text.trim().toLowerCase();
  if (searchText === '') return [];
  return Object.entries(guides)
    .filter(([, inLanguages]) =>
      Object.values(inLanguages).some(({ title }) => title.toLowerCase().includes(searchText)),
    )
    .map(([path]) => ({ path, title: findGuide(path)?.title ?? path }));
}
