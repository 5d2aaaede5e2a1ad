import { chineseBrandOf, displayName, isConnectorId } from '../../labels.ts';
import {
  hintText,
  type ReasonCode,
  type ReplyValues,
  readHint,
  readReason,
  reasonText,
  replyValues,
  storedReason,
} from '../../reasons.ts';
import { isCode, type Language, textIn } from '../../texts/catalogue.ts';

/** Meaning of a reason, in the form of replies. */
export type Meaning = {
  code: ReasonCode;
  /** Values of the reason. A value that is a reason or a hint is an object. */
  params: ReplyValues;
};

/**
 * Returns the meaning of a stored reason, which replies of the admin API contain in addition to its
 * text. The code is `other` if the reason is not in the catalogue.
 */
export function meaningOf(reason: string): Meaning {
  const { code, params } = readReason(reason);
  return { code: isCode('reasons', code) ? code : 'other', params: replyValues(params) };
}

/**
 * Writes the meaning from a reply as a sentence. In Chinese, a hint for the operator replaces the
 * sentence. An unknown code is written as `other`.
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

/** `Meaning` from a service that may run another version. */
type MeaningOfReply = { code: string; params: Readonly<Record<string, unknown>> };

/** Returns the meaning of a reason; null if there is no reason. */
export const meaningOrNull = (reason: string | null): Meaning | null =>
  reason === null ? null : meaningOf(reason);

/** Converts a device's route to the form of replies: the problem as text, and its meaning. */
export const replyRoute = <R extends { connector: string; problem?: string }>(
  route: R,
): R & { problemMeaning?: Meaning } =>
  route.problem === undefined
    ? route
    : { ...route, problem: reasonText(route.problem), problemMeaning: meaningOf(route.problem) };

/**
 * Returns a stored reason for a Chinese sentence: its meaning, followed by its text in brackets. A
 * reason that is not in the catalogue stays a text.
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
