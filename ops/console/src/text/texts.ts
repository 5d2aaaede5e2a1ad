import i18next from 'i18next';
import { initReactI18next } from 'react-i18next';
import type { Language } from '../../../../shared/domain/texts/catalogue.ts';
import { loadChinese } from './chinese.ts';
import en from './en.json';

export const languages = ['en', 'zh'] as const;

const storageKey = 'carillon-language';

function preferredLanguage(): Language {
  const stored = localStorage.getItem(storageKey);
  if (stored === 'en' || stored === 'zh') return stored;
  return navigator.language.toLowerCase().startsWith('zh') ? 'zh' : 'en';
}

/** Loads the texts and selects the reader's language. */
export async function startTexts(): Promise<void> {
  await i18next.use(initReactI18next).init({
    fallbackLng: false,
    resources: { en: { translation: en } },
    interpolation: { escapeValue: false },
    returnNull: false,
  });
  // If the Chinese texts cannot be loaded, the page stays in English. The English texts are part of
  // its code.
  await show(preferredLanguage()).catch(() => show('en'));
}

/** Switches the language. Loads the Chinese texts from a separate file. */
async function show(language: Language): Promise<void> {
  if (language === 'zh' && !i18next.hasResourceBundle('zh', 'translation'))
    i18next.addResourceBundle('zh', 'translation', await loadChinese());
  await i18next.changeLanguage(language);
  document.documentElement.lang = language === 'zh' ? 'zh-CN' : 'en';
}

/** Changes the language for this and later visits. */
export async function chooseLanguage(language: Language): Promise<void> {
  localStorage.setItem(storageKey, language);
  await show(language);
}

/** Returns the locale for numbers and times. */
export const currentLocale = (): string => (i18next.language === 'zh' ? 'zh-CN' : 'en-GB');
