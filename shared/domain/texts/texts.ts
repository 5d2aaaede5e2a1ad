import { reasonInChinese } from '../admin/reasons/meaning.ts';
import { chineseBrandOf, displayName, inChinese, isConnectorId } from '../labels.ts';
import {
  isReplyText,
  type ReplyText,
  readReason,
  reasonAs,
  reasonText,
  replyValues,
  storedReason,
} from '../reasons.ts';
import { type Code, isCode, type Language, type Section, textIn } from './catalogue.ts';

/** Values of a text by name. In the explanation of a push, a value may itself be a sentence. */
export type TextParams = { [name: string]: string | number | null | TraceText };

/** A text of the catalogue: its code and its values. */
export type Text<S extends Section> = { code: Code<S>; params: TextParams };

/** Text of a refusal or warning that names members or values. */
export type Detail = Text<'details'>;
/** Sentence about what happened to a push at a device. */
export type TraceText = Text<'trace'>;
/** Sentence of a dry run: a limit, the duration, or a warning. */
export type ForecastText = Text<'forecasts'>;

/** Creates the text of a refusal or warning. */
export const detail = (code: Detail['code'], params: TextParams = {}): Detail => ({ code, params });

/** Creates a sentence about a push at a device. */
export const trace = (code: TraceText['code'], params: TextParams = {}): TraceText => ({
  code,
  params,
});

/** Creates a sentence of a dry run. */
export const forecast = (code: ForecastText['code'], params: TextParams = {}): ForecastText => ({
  code,
  params,
});

/** Text in a reply. Its code may come from another version. */
interface TextOfReply {
  code: string;
  params: Readonly<Record<string, unknown>>;
}

/** Writes a text of a reply in a language. An unknown code is returned unchanged. */
export const writeReplyText = (
  section: Section,
  { code, params }: TextOfReply,
  language: Language,
): string => (isCode(section, code) ? writeText(section, { code, params }, language) : code);

/**
 * Writes a text in a language. Some values are translated: `why` is a stored reason, `connector` is
 * a brand in an explanation, `gateway` is a brand; states, verbs and roles are in the catalogue.
 */
export function writeText<S extends Section>(
  section: S,
  { code, params }: { code: Code<S>; params: Readonly<Record<string, unknown>> },
  language: Language,
): string {
  const written = textIn(language, section, code, (name) => {
    const value = params[name] ?? null;
    if (value === null) return null;
    if (name === 'why') return whyIn(storedReason(value), language);
    if (isReplyText(value)) return writeReplyText('trace', value, language);
    if (section === 'trace' && name === 'connector') return nameOf(String(value), language);
    return wordOf(name, String(value), language);
  });
  const isOwnChannel = section === 'trace' && params.connector === 'channel';
  return isOwnChannel ? written.replace(/^the /, 'The ') : written;
}

/** Sections of the catalogue for values that are translated, by the name of the value. */
const wordSections: Readonly<Record<string, 'states' | 'verbs' | 'roles'>> = {
  state: 'states',
  verb: 'verbs',
  role: 'roles',
  needed: 'roles',
};

function wordOf(name: string, value: string, language: Language): string {
  if (name === 'gateway') return language === 'zh' ? inChinese(value) : value;
  const section = wordSections[name];
  return section && isCode(section, value) ? textIn(language, section, value) : value;
}

function whyIn(stored: string, language: Language): string {
  if (language === 'en') return reasonText(stored);
  const { code, params } = readReason(stored);
  return isCode('details', code)
    ? writeText('details', { code, params }, 'zh')
    : reasonInChinese(stored);
}

function nameOf(connector: string, language: Language): string {
  if (language === 'zh' && isConnectorId(connector)) return chineseBrandOf(connector);
  return connector === 'channel' ? `the ${displayName(connector)}` : displayName(connector);
}

/** Returns a detail as a stored reason, to be used as value `why` of another text. */
export const storedDetail = (text: Detail): string =>
  reasonAs(writeText('details', text, 'en'), text.code, valuesOf(text));

/**
 * Returns a text in the form of replies. A reason or sentence among its values becomes an object.
 */
export const replyText = ({ code, params }: { code: string; params: TextParams }): ReplyText => ({
  code,
  params: replyValues(params),
});

/** Returns a detail in the form of replies. */
export const replyDetail = (text: Detail) => replyText({ code: text.code, params: valuesOf(text) });

/** Returns the member `warnings` of a reply; an empty object without warnings. */
export const warningsIn = (language: Language, warnings: readonly Detail[]) =>
  warnings.length === 0
    ? {}
    : { warnings: warnings.map((one) => writeText('details', one, language)) };

const valuesOf = ({ params }: Detail): Record<string, string> =>
  Object.fromEntries(
    Object.entries(params).flatMap(([name, value]) =>
      value === null ? [] : [[name, String(value)]],
    ),
  );

/**
 * Writes a finding of the doctor: its state, and the action to take. The action is empty if
 * no action is needed.
 */
export const writeFinding = (finding: TextOfReply, language: Language) => ({
  detail: writeReplyText('doctor', finding, language),
  advice: isCode('advice', finding.code) ? writeReplyText('advice', finding, language) : '',
});

/** Returns the subject of a finding in a language. */
export const subjectIn = (language: Language, name: string): string =>
  isCode('subjects', name) ? textIn(language, 'subjects', name) : name;

/** Writes what happened to a push at a device. Chinese sentences are joined without spaces. */
export const writeTrace = (texts: readonly TextOfReply[], language: Language): string =>
  texts.map((text) => writeReplyText('trace', text, language)).join(language === 'zh' ? '' : ' ');

/** Writes a step of a move. Numbers get thousands separators. */
export function writeStep({ code, params }: TextOfReply, language: Language): string {
  const values = Object.entries(params).map(([name, value]) => [
    name,
    typeof value === 'number' ? value.toLocaleString('en') : value,
  ]);
  return writeReplyText('moveIn', { code, params: Object.fromEntries(values) }, language);
}
