import { chineseBrandOf, displayName, isConnectorId } from '../../labels.ts';
import { hintText, type ReasonCode, readHint, readReason, reasonText } from '../../reasons.ts';
import { isCode, type Language, textIn } from '../../texts/catalogue.ts';

/** Meaning of a reason in both languages of the console. */
export type Meaning = {
  code: ReasonCode;
  /** Values in the reason. */
  params: Record<string, string>;
  en: string;
  zh: string;
};

/**
 * Returns what a stored reason of a gateway, a connection or this service means, as replies of the
 * admin API show it beside the text of the reason. A reason that is not in the catalogue has the
 * code `other`.
 */
export function meaningOf(reason: string): Meaning {
  const { code: known, params } = readReason(reason);
  const code = isCode('reasons', known) ? known : 'other';
  const hint = params.hint === undefined ? undefined : readHint(params.hint);
  return {
    code,
    params: {
      ...params,
      ...(params.why === undefined ? {} : { why: reasonText(params.why) }),
      ...(hint === undefined ? {} : { hint: hintText(hint) }),
    },
    en: fill(code, params, 'en'),
    zh: hint === undefined ? fill(code, params, 'zh') : hintText(hint, 'zh'),
  };
}

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
  const { code, zh } = meaningOf(reason);
  const text = reasonText(reason);
  return code === 'other' ? text : `${zh}（${text}）`;
}

const fill = (code: ReasonCode, params: Record<string, string>, language: Language): string =>
  textIn(language, 'reasons', code, (name) => {
    const value = params[name] ?? '';
    if (name === 'why') return meaningOf(value)[language];
    return name === 'connector' ? brandIn(value, language) : value;
  });

const brandIn = (connector: string, language: Language): string =>
  language === 'zh' && isConnectorId(connector) ? chineseBrandOf(connector) : displayName(connector);
