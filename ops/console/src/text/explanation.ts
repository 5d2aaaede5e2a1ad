import { useTranslation } from 'react-i18next';
import type { DeviceExplanation, PushForecast } from '../../../client/operations.ts';
import { withBrands } from './connectors.ts';
import { formatTime } from './format.ts';
import { withTimes } from './sentences.ts';

/**
 * Returns what became of a device, as sentences in the language of the page, with times in the zone
 * of the reader.
 */
export function useSentence({ sentence, texts }: Pick<DeviceExplanation, 'sentence' | 'texts'>): string {
  const { i18n } = useTranslation();
  if (texts.length === 0) return sentence;
  return i18n.language === 'zh'
    ? texts.map(({ zh, params }) => withOwnTimes(zh, params)).join('')
    : texts.map(({ en, params }) => withOwnTimes(en, params)).join(' ');
}

/** Returns a function that gives the text of a sentence of a dry run in the language of the page. */
export function useForecastText(): (sentence: PushForecast['texts']['pace']) => string {
  const { i18n } = useTranslation();
  return ({ text, zh, params }) => withBrands(withOwnTimes(i18n.language === 'zh' ? zh : text, params));
}

const withOwnTimes = (sentence: string, params: Record<string, unknown>): string =>
  withTimes(sentence, params, formatTime);
