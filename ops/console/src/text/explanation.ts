import i18next from 'i18next';
import { useTranslation } from 'react-i18next';
import {
  chineseBrandOf,
  displayName,
  isConnectorId,
  vendorConnector,
} from '../../../../shared/domain/labels.ts';
import { isCode, type Language, textIn } from '../../../../shared/domain/texts/catalogue.ts';
import { writeReplyText } from '../../../../shared/domain/texts/texts.ts';
import type { DeviceExplanation, FailureGroup, PushForecast } from '../../../client/operations.ts';
import type { ApiError } from '../api/client.ts';
import { hasCatalogue } from './catalogue-texts.ts';
import { formatTime } from './format.ts';
import { withNames, withTimes } from './sentences.ts';

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
    .map((text) => withTimes(writeReplyText('trace', text, language), text.params, formatTime))
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
    withBrands(withTimes(writeReplyText(section, text, language), text.params, formatTime));
}

/** Returns a function that formats the remedy for a cause in the page's language. */
export function useRemedyText() {
  const language = useLanguage();
  return ({ code }: FailureGroup['remedy']): string => textIn(language, 'remedies', code);
}

/**
 * Returns the name of a connector in the page's language. Returns the id of an unknown connector.
 */
export function connectorName(id: string): string {
  if (!isConnectorId(id)) return id;
  return i18next.language === 'zh' ? chineseBrandOf(id) : displayName(id);
}

/** Replaces connector ids in a sentence of the server with brands. */
export const withBrands = (sentence: string): string => withNames(sentence, connectorName);

/**
 * Returns the brand for a vendor name as used in messages, such as `mz`. Returns undefined for
 * other names.
 */
export function vendorName(wireName: string): string | undefined {
  const id = vendorConnector(wireName);
  return id === undefined ? undefined : connectorName(id);
}

/** Members of `data` for one kind of device. */
export const deviceKinds = ['ios', 'android', 'hms', 'honor', 'mi', 'oppo', 'vivo', 'mz', 'fcm'];

/** Names of the kinds that are not brands of devices. */
const otherKinds: Readonly<Record<string, string>> = { ios: 'iOS', android: 'Android', fcm: 'FCM' };

/** Returns the name of a kind of device. */
export const deviceKindName = (kind: string): string =>
  otherKinds[kind] ?? vendorName(kind) ?? kind;

interface RefusalText {
  text: string;
  /** English text of the server, shown in addition to a Chinese text. */
  original?: string;
}

/**
 * Returns the message of a refusal in the page's language. Undefined means a failure of the page
 * itself.
 */
export function useRefusalText(refusal: ApiError | undefined): RefusalText {
  const { t, i18n } = useTranslation();
  if (!refusal) return { text: t('state.broken') };
  if (refusal.status === 0) return { text: t('state.unreachable') };
  const original = refusal.message || t('state.broken');
  const text = i18n.language === 'zh' ? chineseOf(refusal) : undefined;
  return text === undefined ? { text: original } : { text, original };
}

function chineseOf({ kind, detail }: ApiError): string | undefined {
  if (!hasCatalogue()) return;
  if (detail && isCode('details', detail.code)) return writeReplyText('details', detail, 'zh');
  return kind !== null && isCode('errors', kind) ? textIn('zh', 'errors', kind) : undefined;
}
