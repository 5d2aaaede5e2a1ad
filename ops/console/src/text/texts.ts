import i18next from 'i18next';
import { initReactI18next } from 'react-i18next';
import type { Language } from '../../../../shared/domain/texts/catalogue.ts';
import { hasCatalogue, loadCatalogue } from './catalogue-texts.ts';

export const languages = ['en', 'zh'] as const;

const storageKey = 'carillon-language';

function preferredLanguage(): Language {
  const stored = localStorage.getItem(storageKey);
  if (stored === 'en' || stored === 'zh') return stored;
  return navigator.language.toLowerCase().startsWith('zh') ? 'zh' : 'en';
}

/** Loads the texts of the reader's language. Throws if they cannot be loaded. */
export async function startTexts(): Promise<void> {
  await i18next.use(initReactI18next).init({
    fallbackLng: false,
    resources: {},
    interpolation: { escapeValue: false },
    returnNull: false,
  });
  // If the Chinese texts cannot be loaded, the page is in English.
  await show(preferredLanguage()).catch(() => show('en'));
}

/** Loads the texts of a language, which are in a file of their own. */
async function load(language: Language): Promise<void> {
  if (i18next.hasResourceBundle(language, 'translation')) return;
  const texts = await (language === 'zh' ? import('./zh.json') : import('./en.json'));
  i18next.addResourceBundle(language, 'translation', texts.default);
}

/** Loads the texts of all languages, for the search. */
export async function loadAllLanguages(): Promise<void> {
  await Promise.all(languages.map(load));
}

/** Switches the language. */
async function show(language: Language): Promise<void> {
  await load(language);
  await i18next.changeLanguage(language);
  document.documentElement.lang = language === 'zh' ? 'zh-CN' : 'en';
}

/** Loads the texts of the shared catalogue in the reader's language. */
export const loadSharedTexts = (): Promise<void> => loadCatalogue(isChinese() ? 'zh' : 'en');

/** Changes the language for this and later visits. */
export async function chooseLanguage(language: Language): Promise<void> {
  localStorage.setItem(storageKey, language);
  if (hasCatalogue()) await loadCatalogue(language);
  await show(language);
}

/** True if the page is in Chinese. */
export const isChinese = (): boolean => i18next.language === 'zh';

/** Returns the locale for numbers and times. */
export const currentLocale = (): string => (isChinese() ? 'zh-CN' : 'en-GB');
