import { useTranslation } from 'react-i18next';
import type { DeviceExplanation, PushForecast } from '../../../../api/replies/admin/types.ts';
import { formatTime } from './format.ts';

/** Times in sentences of the server, which are in UTC. */
const utcTime = /\d{4}-\d\d-\d\dT[\d:.]+Z/g;

/** Returns what became of a device, as sentences in the language of the page with times in the zone of the reader. */
export function useSentence({ sentence, texts }: Pick<DeviceExplanation, 'sentence' | 'texts'>): string {
  const { i18n } = useTranslation();
  const text = i18n.language === 'zh' && texts.length > 0 ? texts.map(({ zh }) => zh).join('') : sentence;
  return text.replaceAll(utcTime, formatTime);
}

/** Returns a function that gives the text of a sentence of a dry run in the language of the page. */
export function useForecastText(): (sentence: PushForecast['texts']['pace']) => string {
  const { i18n } = useTranslation();
  return ({ text, zh }) => (i18n.language === 'zh' ? zh : text);
}
