import { reasonInChinese } from '../admin/reasons/meaning.ts';
import { chineseBrandOf, displayName, isConnectorId } from '../labels.ts';
import { readReason, reasonAs, reasonText } from '../reasons.ts';
import { type Code, isCode, type Language, type Section, textIn } from './catalogue.ts';

/** Values of a text by name; in the explanation of a push a value may be a sentence itself. */
export type TextParams = { [name: string]: string | number | null | TraceText };

/** Text of a section of the catalogue, as a code with parameters. */
export type Text<S extends Section> = { code: Code<S>; params: TextParams };

/** Text of a refusal or a warning that names members or values. */
export type Detail = Text<'details'>;
/** Sentence about what became of a push at a device. */
export type TraceText = Text<'trace'>;
/** Sentence of a dry run: a limit, the pace, or a warning. */
export type ForecastText = Text<'forecasts'>;

/** Returns the text of a refusal or a warning with its values. */
export const detail = (code: Detail['code'], params: TextParams = {}): Detail => ({ code, params });

/** Returns a sentence about a push at a device with its values. */
export const trace = (code: TraceText['code'], params: TextParams = {}): TraceText => ({ code, params });

/** Returns a sentence of a dry run with its values. */
export const forecast = (code: ForecastText['code'], params: TextParams = {}): ForecastText => ({
  code,
  params,
});

/**
 * Writes a text in a language. Some values have words of their own in it: `why` is a stored reason,
 * `connector` is a brand in an explanation, and states, verbs and roles are in the catalogue.
 */
export function writeText<S extends Section>(section: S, text: Text<S>, language: Language): string {
  const { code, params } = text;
  const written = textIn(language, section, code, (name) => {
    const value = params[name] ?? null;
    if (value === null) return null;
    if (typeof value === 'object') return writeText('trace', value, language);
    if (section === 'trace' && name === 'connector') return nameOf(String(value), language);
    return wordOf(name, String(value), language);
  });
  const isOwnChannel = section === 'trace' && params.connector === 'channel';
  return isOwnChannel ? written.replace(/^the /, 'The ') : written;
}

/** Sections of the words of values. */
const wordSections: Readonly<Record<string, 'states' | 'verbs' | 'roles'>> = {
  state: 'states',
  verb: 'verbs',
  role: 'roles',
  needed: 'roles',
};

function wordOf(name: string, value: string, language: Language): string {
  if (name === 'why') return language === 'en' ? reasonText(value) : causeInChinese(value);
  const section = wordSections[name];
  return section && isCode(section, value) ? textIn(language, section, value) : value;
}

function causeInChinese(stored: string): string {
  const { code, params } = readReason(stored);
  return isCode('details', code) ? writeText('details', { code, params }, 'zh') : reasonInChinese(stored);
}

function nameOf(connector: string, language: Language): string {
  if (language === 'zh' && isConnectorId(connector)) return chineseBrandOf(connector);
  return connector === 'channel' ? `the ${displayName(connector)}` : displayName(connector);
}

/** Returns a detail as a stored reason, for the value `why` of another text. */
export const storedDetail = (text: Detail): string =>
  reasonAs(writeText('details', text, 'en'), text.code, valuesOf(text));

/** Returns parameters as replies show them: `why` as the text of its reason. */
export const shownParams = <P extends TextParams>(params: P): P =>
  typeof params.why === 'string' ? { ...params, why: reasonText(params.why) } : params;

/** Returns a detail as replies show it. */
export const shownDetail = (text: Detail) => ({
  code: text.code,
  params: shownParams(valuesOf(text)),
  zh: writeText('details', text, 'zh'),
});

/** Returns the member `warnings` of a reply; nothing without a warning. */
export const warningsIn = (language: Language, warnings: readonly Detail[]) =>
  warnings.length === 0 ? {} : { warnings: warnings.map((one) => writeText('details', one, language)) };

const valuesOf = ({ params }: Detail): Record<string, string> =>
  Object.fromEntries(
    Object.entries(params).flatMap(([name, value]) => (value === null ? [] : [[name, String(value)]])),
  );

/** Returns a sentence of a dry run as replies show it. */
export const shownForecast = ({ code, params }: ForecastText) => ({
  code,
  params: shownParams(params),
  text: writeText('forecasts', { code, params }, 'en'),
  zh: writeText('forecasts', { code, params }, 'zh'),
});
