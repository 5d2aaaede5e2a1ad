import { useTranslation } from 'react-i18next';
import type { DeviceExplanation, PushForecast } from '../../../../api/replies/admin/types.ts';

/** Returns what became of a device, as sentences in the language of the page. */
export function useSentence({ sentence, texts }: Pick<DeviceExplanation, 'sentence' | 'texts'>): string {
  const { i18n } = useTranslation();
  return i18n.language === 'zh' && texts.length > 0 ? texts.map(({ zh }) => zh).join('') : sentence;
}

/** Returns a function that gives the text of a sentence of a dry run in the language of the page. */
export function useForecastText(): (sentence: PushForecast['texts']['pace']) => string {
  const { i18n } = useTranslation();
  return ({ text, zh }) => (i18n.language === 'zh' ? zh : text);
}
