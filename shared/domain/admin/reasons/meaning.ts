import { chineseBrandOf, displayName, isConnectorId } from '../../labels.ts';
import { hintInChinese } from './hints-zh.ts';
import { patterns, sentences } from './patterns.ts';
import { isReasonCode, type ReasonCode, reasonTexts } from './texts.ts';

/** Meaning of a reason in both languages of the console. */
export type Meaning = {
  code: ReasonCode;
  /** Values in the reason. */
  params: Record<string, string>;
  en: string;
  zh: string;
};

type Language = 'en' | 'zh';

/** A status before a reason: `503 UNAVAILABLE`. */
const withStatus = /^(?<status>\d{3}) (?<why>.+)$/;
/** The code of a connection after a reason: `connect_failed ENOTFOUND`. */
const withCause = /^\w+ (?<why>[A-Z][A-Z0-9_]{2,59})$/;
/** A hint after a reason, as records keep it: `auth_failed: Meizu refuses the signature: check appSecret.` */
const withHint = /^(?<base>\w+): (?<hint>.+)$/;
/** The status of a mail server after a reason: `authentication_535`. */
const withReply = /^(?<base>[a-z]+)_(?<status>\d{3})$/;

/**
 * Returns what a reason of a gateway, a connection or this service means, as replies of the admin API show it beside the
 * reason itself. A reason that is not in the catalogue has the code `other`.
 */
export function meaningOf(reason: string): Meaning {
  const code = sentences[reason] ?? (isReasonCode(reason) ? reason : undefined);
  if (code) return write(code, {});
  return composedMeaning(reason) ?? patternMeaning(reason) ?? write('other', {});
}

/** Returns the meaning of a reason, or null without one. */
export const meaningOrNull = (reason: string | null): Meaning | null =>
  reason === null ? null : meaningOf(reason);

/** Adds the meaning to the problem of a device's route. */
export const shownRoute = <R extends { connector: string; problem?: string }>(
  route: R,
): R & { problemMeaning?: Meaning } =>
  route.problem === undefined ? route : { ...route, problemMeaning: meaningOf(route.problem) };

/**
 * Returns a reason for a sentence in Chinese: its meaning, with the reason itself in brackets. A text that is no reason of
 * the catalogue stays as it is.
 */
export function reasonInChinese(reason: string): string {
  const { code, zh } = meaningOf(reason);
  return code === 'other' ? reason : `${zh}（${reason}）`;
}

/** Reads a reason that has another one, or a hint, in it. */
function composedMeaning(reason: string): Meaning | undefined {
  const inner = withStatus.exec(reason)?.groups ?? withCause.exec(reason)?.groups;
  if (inner?.why) {
    const { status } = inner;
    const meaning = meaningOf(inner.why);
    return status === undefined ? meaning : { ...meaning, params: { ...meaning.params, status } };
  }
  const { base = '', hint = '' } = withHint.exec(reason)?.groups ?? {};
  if (isHinted(base)) {
    const { code, params, en, zh } = meaningOf(base);
    return { code, params: { ...params, hint }, en, zh: hintInChinese(hint) ?? zh };
  }
  const { base: mail = '', status = '' } = withReply.exec(reason)?.groups ?? {};
  return isReasonCode(mail) ? write(mail, { status }) : undefined;
}

const isHinted = (base: string): boolean => isReasonCode(base) || /^http_\d+$/.test(base);

function patternMeaning(reason: string): Meaning | undefined {
  for (const [pattern, code] of patterns) {
    const found = pattern.exec(reason);
    if (found) return write(code, { ...found.groups });
  }
  return undefined;
}

function write(code: ReasonCode, params: Record<string, string>): Meaning {
  return { code, params, en: fill(code, params, 'en'), zh: fill(code, params, 'zh') };
}

const fill = (code: ReasonCode, params: Record<string, string>, language: Language): string =>
  reasonTexts[language][code].replaceAll(/\{(\w+)\}/g, (_all, name: string) => {
    const value = params[name] ?? '';
    if (name === 'why') return meaningOf(value)[language];
    return name === 'connector' ? brandIn(value, language) : value;
  });

const brandIn = (connector: string, language: Language): string =>
  language === 'zh' && isConnectorId(connector) ? chineseBrandOf(connector) : displayName(connector);
