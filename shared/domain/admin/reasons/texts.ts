import { failuresEn } from './failures-en.ts';
import { failuresZh } from './failures-zh.ts';
import { refusalsEn } from './refusals-en.ts';
import { refusalsZh } from './refusals-zh.ts';

/** Meanings of all reasons by code, in the two languages of the console. */
export const reasonTexts = {
  en: { ...refusalsEn, ...failuresEn },
  zh: { ...refusalsZh, ...failuresZh },
} as const;

export type ReasonCode = keyof typeof reasonTexts.en;

export const isReasonCode = (text: string): text is ReasonCode => Object.hasOwn(reasonTexts.en, text);
