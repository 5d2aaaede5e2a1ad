import { chineseBrandOf, displayName, isConnectorId } from '../../labels.ts';
import {
  hintText,
  type ReasonCode,
  readHint,
  readReason,
  reasonText,
  type ShownValues,
  shownValues,
  storedReason,
} from '../../reasons.ts';
import { isCode, type Language, textIn } from '../../texts/catalogue.ts';

/** What a reason means, as replies show it. */
export type Meaning = {
  code: ReasonCode;
  /** Values in the reason. A reason or a hint among them is an object. */
  params: ShownValues;
};

/**
 * Returns what a stored reason of a gateway, a connection or this service means, as replies of the
 * admin API show it beside the text of the reason. A reason that is not in the catalogue has the
 * code `other`.
 */
export function meaningOf(reason: string): Meaning {
  const { code, params } = readReason(reason);
  return { code: isCode('reasons', code) ? code : 'other', params: shownValues(params) };
}

/**
 * Writes a meaning of a reply in a language. In Chinese a hint for the operator stands for it. A
 * code that this version does not know is written as `other`.
 */
export function writeMeaning({ code, params }: MeaningOfReply, language: Language): string {
  const hint = params.hint === undefined ? undefined : readHint(storedReason(params.hint));
  if (hint !== undefined && language === 'zh') return hintText(hint, 'zh');
  return textIn(language, 'reasons', isCode('reasons', code) ? code : 'other', (name) => {
    if (name === 'why') return writeMeaning(meaningOf(storedReason(params.why)), language);
    const value = String(params[name] ?? '');
    return name === 'connector' ? brandIn(value, language) : value;
  });
}

/** As `Meaning`, of a service that may have another version. */
type MeaningOfReply = { code: string; params: Readonly<Record<string, unknown>> };

/** Returns the meaning of a reason, or null without one. */
export const meaningOrNull = (reason: string | null): Meaning | null =>
  reason === null ? null : meaningOf(reason);

/** Returns a device's route as replies show it: the problem as text, with its meaning. */
export const shownRoute = <R extends { connector: string; problem?: string }>(
  route: R,
): R & { problemMeaning?: Meaning } =>
  route.problem === undefined
    ? route
    : { ...route, problem: reasonText(route.problem), problemMeaning: meaningOf(route.problem) };

/**
 * Returns a stored reason for a sentence in Chinese: its meaning, with the text of the reason in
 * brackets. A text that is no reason of the catalogue stays as it is.
 */
export function reasonInChinese(reason: string): string {
  const meaning = meaningOf(reason);
  const text = reasonText(reason);
  return meaning.code === 'other' ? text : `${writeMeaning(meaning, 'zh')}（${text}）`;
}

const brandIn = (connector: string, language: Language): string =>
  language === 'zh' && isConnectorId(connector)
    ? chineseBrandOf(connector)
    : displayName(connector);
