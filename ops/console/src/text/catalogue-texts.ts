import type { Language } from '../../../../shared/domain/texts/catalogue.ts';
import type english from '../../../../shared/domain/texts/en.json';
import type chinese from '../../../../shared/domain/texts/zh.json';

/**
 * Texts of the shared catalogue. The bundler uses these empty objects instead of `en.json` and
 * `zh.json` (`bundle.ts`), because the first page does not need them.
 */
export const englishCatalogue: Partial<typeof english> = {};
export const chineseCatalogue: Partial<typeof chinese> = {};

/** True if the texts of the shared catalogue are loaded. */
export const hasCatalogue = (): boolean => 'errors' in englishCatalogue;

/**
 * Loads the shared catalogue: English, which also has the codes, and the language of the page.
 * Throws if the texts cannot be loaded.
 */
export async function loadCatalogue(language: Language): Promise<void> {
  const chinese = language === 'zh' ? import('../../../../shared/domain/texts/zh.json') : null;
  const english = import('../../../../shared/domain/texts/en.json');
  Object.assign(chineseCatalogue, (await chinese)?.default);
  Object.assign(englishCatalogue, (await english).default);
}
