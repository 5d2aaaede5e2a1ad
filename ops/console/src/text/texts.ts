import i18next from 'i18next';
import { initReactI18next } from 'react-i18next';
import en from './en.json';
import zh from './zh.json';

export const languages = ['en', 'zh'] as const;
export type Language = (typeof languages)[number];

const storageKey = 'carillon-language';

function preferredLanguage(): Language {
  const stored = localStorage.getItem(storageKey);
  if (stored === 'en' || stored === 'zh') return stored;
  return navigator.language.toLowerCase().startsWith('zh') ? 'zh' : 'en';
}

/** Loads both languages (about 10 kB compressed) and chooses the reader's. */
export async function startTexts(): Promise<void> {
  await i18next.use(initReactI18next).init({
    lng: preferredLanguage(),
    fallbackLng: false,
    resources: { en: { translation: en }, zh: { translation: zh } },
    interpolation: { escapeValue: false },
    returnNull: false,
  });
  document.documentElement.lang = preferredLanguage() === 'zh' ? 'zh-CN' : 'en';
}

/** Changes the language of all pages, now and for later visits. */
export async function chooseLanguage(language: Language): Promise<void> {
  localStorage.setItem(storageKey, language);
  await i18next.changeLanguage(language);
  document.documentElement.lang = language === 'zh' ? 'zh-CN' : 'en';
}

/** Returns the locale of numbers and times. */
export const currentLocale = (): string => (i18next.language === 'zh' ? 'zh-CN' : 'en-GB');
