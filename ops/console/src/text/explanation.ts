import { useTranslation } from 'react-i18next';
import type { DeviceExplanation, PushForecast } from '../../../../api/replies/admin/types.ts';
import { withBrands } from '../api/connectors.ts';
import { formatTime } from './format.ts';

type Params = Record<string, unknown>;

const isoTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;

/** Returns what became of a device, as sentences in the language of the page, with times in the zone of the reader. */
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

/** Returns a sentence of the server with the times among its values as the page shows times. */
export function withOwnTimes(sentence: string, params: Params): string {
  return timesIn(params).reduce((text, time) => text.replaceAll(time, formatTime(time)), sentence);
}

/** Times in UTC among values; a value may be a sentence with values of its own. */
function timesIn(params: Params): string[] {
  return Object.values(params).flatMap((value) => {
    if (typeof value === 'string') return isoTime.test(value) ? [value] : [];
    const isSentence = typeof value === 'object' && value !== null && 'params' in value;
    return isSentence && isParams(value.params) ? timesIn(value.params) : [];
  });
}

const isParams = (value: unknown): value is Params => typeof value === 'object' && value !== null;
