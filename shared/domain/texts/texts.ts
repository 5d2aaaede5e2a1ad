import { reasonInChinese } from '../admin/reasons/meaning.ts';
import { chineseBrandOf, displayName, isConnectorId } from '../labels.ts';
import {
  isShownText,
  readReason,
  reasonAs,
  reasonText,
  type ShownText,
  shownValues,
  storedReason,
} from '../reasons.ts';
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
export const trace = (code: TraceText['code'], params: TextParams = {}): TraceText => ({
  code,
  params,
});

/** Returns a sentence of a dry run with its values. */
export const forecast = (code: ForecastText['code'], params: TextParams = {}): ForecastText => ({
  code,
  params,
});

/** Text of a reply, whose code may be of another version. */
interface TextOfReply {
  code: string;
  params: Readonly<Record<string, unknown>>;
}

/**
 * Writes a text of a reply in a language. A code that this version does not know is shown as it is.
 */
export const writeShown = (
  section: Section,
  { code, params }: TextOfReply,
  language: Language,
): string => (isCode(section, code) ? writeText(section, { code, params }, language) : code);

/**
 * Writes a text in a language. Some values have words of their own in it: `why` is a stored reason,
 * `connector` is a brand in an explanation, and states, verbs and roles are in the catalogue.
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
    if (isShownText(value)) return writeShown('trace', value, language);
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

/** Returns a detail as a stored reason, for the value `why` of another text. */
export const storedDetail = (text: Detail): string =>
  reasonAs(writeText('details', text, 'en'), text.code, valuesOf(text));

/** Returns a text as replies show it. A reason or a sentence among its values is an object. */
export const shownText = ({ code, params }: { code: string; params: TextParams }): ShownText => ({
  code,
  params: shownValues(params),
});

/** Returns a detail as replies show it. */
export const shownDetail = (text: Detail) => shownText({ code: text.code, params: valuesOf(text) });

/** Returns the member `warnings` of a reply; nothing without a warning. */
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
 * Writes the present state and the action to take of a finding of the doctor; the action is empty
 * without one.
 */
export const writeFinding = (finding: TextOfReply, language: Language) => ({
  detail: writeShown('doctor', finding, language),
  advice: isCode('advice', finding.code) ? writeShown('advice', finding, language) : '',
});

/** Returns what a finding is about, in a language. */
export const subjectIn = (language: Language, name: string): string =>
  isCode('subjects', name) ? textIn(language, 'subjects', name) : name;

/** Writes what became of a push at a device: sentences without spaces between them in Chinese. */
export const writeTrace = (texts: readonly TextOfReply[], language: Language): string =>
  texts.map((text) => writeShown('trace', text, language)).join(language === 'zh' ? '' : ' ');

/** Writes a step of a move; numbers have separators of thousands. */
export function writeStep({ code, params }: TextOfReply, language: Language): string {
  const values = Object.entries(params).map(([name, value]) => [
    name,
    typeof value === 'number' ? value.toLocaleString('en') : value,
  ]);
  return writeShown('moveIn', { code, params: Object.fromEntries(values) }, language);
}
