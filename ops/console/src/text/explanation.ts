import { useTranslation } from 'react-i18next';
import { type Language, textIn } from '../../../../shared/domain/texts/catalogue.ts';
import { writeShown } from '../../../../shared/domain/texts/texts.ts';
import type { DeviceExplanation, FailureGroup, PushForecast } from '../../../client/operations.ts';
import { withBrands } from './connectors.ts';
import { formatTime } from './format.ts';
import { withTimes } from './sentences.ts';

/** Returns the language of the page. */
export const useLanguage = (): Language => (useTranslation().i18n.language === 'zh' ? 'zh' : 'en');

/** Returns the explanation for a device in the page's language. Times are in the reader's zone. */
export function useSentence({
  sentence,
  texts,
}: Pick<DeviceExplanation, 'sentence' | 'texts'>): string {
  const language = useLanguage();
  if (texts.length === 0) return sentence;
  return texts
    .map((text) => withTimes(writeShown('trace', text, language), text.params, formatTime))
    .join(language === 'zh' ? '' : ' ');
}

type ForecastText = PushForecast['texts']['pace'];

/**
 * Returns a function that formats a sentence of a dry run in the page's language: a limit
 * (`forecasts`), or a warning about a member (`details`).
 */
export function useForecastText(section: 'forecasts' | 'details' = 'forecasts') {
  const language = useLanguage();
  return (text: ForecastText): string =>
    withBrands(withTimes(writeShown(section, text, language), text.params, formatTime));
}

/** Returns a function that formats the remedy for a cause in the page's language. */
export function useRemedyText() {
  const language = useLanguage();
  return ({ code }: FailureGroup['remedy']): string => textIn(language, 'remedies', code);
}
