import type { Environment } from '../../shared/config/config.ts';
import { writeMeaning } from '../../shared/domain/admin/reasons/meaning.ts';
import { chineseBrandOf, displayName, isConnectorId } from '../../shared/domain/labels.ts';
import type { Language } from '../../shared/domain/texts/catalogue.ts';
import { writeReplyText } from '../../shared/domain/texts/texts.ts';
import chinese from './zh.json' with { type: 'json' };

/**
 * English text that the command line prints. A text without a translation in `zh.json` is a type
 * error.
 */
export type English = keyof typeof chinese;

/** Names of the placeholders in a text. `Push {id} is paused.` has the placeholder `id`. */
type Names<T extends string> = T extends `${string}{${infer N}}${infer Rest}`
  ? N | Names<Rest>
  : never;
type Value = string | number | null | undefined;
type Values<T extends string> = [Names<T>] extends [never]
  ? []
  : [values: Readonly<Record<Names<T>, Value>>];

let chosen: Language = 'en';

/** Returns the output language of the running command. */
export const language = (): Language => chosen;

/** Sets the output language of the running command. */
export function chooseLanguage(next: Language): void {
  chosen = next;
}

/** Returns the language for a terminal: Chinese if its message locale is Chinese. */
export function languageOf({ LC_ALL, LC_MESSAGES, LANG }: Environment): Language {
  const locale = LC_ALL || LC_MESSAGES || LANG || '';
  return locale.startsWith('zh') ? 'zh' : 'en';
}

/** Text of a reply: a code and values. */
interface CodedText {
  code: string;
  params: Record<string, unknown>;
}

/** Returns a sentence of a dry run in the output language. */
export const sentenceIn = (sentence: CodedText): string =>
  writeReplyText('forecasts', sentence, chosen);

/** Returns a warning of a dry run in the output language. */
export const warningIn = (warning: CodedText): string => writeReplyText('details', warning, chosen);

/**
 * Returns a reason of a reply. In Chinese, returns its meaning, followed by the original reason,
 * which a user can search for.
 */
export function reasonIn(reason: string, meaning: CodedText | null | undefined): string {
  return chosen === 'en' || !meaning || meaning.code === 'other'
    ? reason
    : `${writeMeaning(meaning, chosen)}（${reason}）`;
}

/** Returns a text in the output language and replaces each `{name}` with its value. */
export function say<T extends English>(text: T, ...values: Values<T>): string {
  const [given = {}]: Readonly<Record<string, Value>>[] = values;
  return translated(text).replaceAll(/\{(\w+)\}/g, (whole, name) =>
    Object.hasOwn(given, name) ? String(given[name]) : whole,
  );
}

/** Returns several texts in the output language, such as the headings of a table. */
export const words = (...texts: English[]): string[] => texts.map(translated);

/** Returns a text in the output language. A text without a translation stays unchanged. */
export const translated = (text: string): string =>
  chosen === 'zh' && isEnglish(text) ? chinese[text] : text;

const isEnglish = (text: string): text is English => Object.hasOwn(chinese, text);

/** Joins sentences. Chinese has no space between sentences. */
export const sentences = (...texts: string[]): string => texts.join(chosen === 'zh' ? '' : ' ');

/** Returns the name of a gateway in the output language. An unknown id stays unchanged. */
export const gatewayName = (connector: string): string =>
  chosen === 'zh' && isConnectorId(connector) ? chineseBrandOf(connector) : displayName(connector);

/** Returns indented lines under a title. Returns nothing if there are no lines. */
export const section = (title: English, lines: string[]): string[] =>
  lines.length === 0 ? [] : ['', translated(title), ...lines.map((line) => `  ${line}`)];

/**
 * Patterns of sentences from modules that are not translated: commander, the client of the admin
 * API, schemas, migrations and the credential guides. The first match counts.
 */
const foreignTexts: readonly English[] = [
  "error: missing required argument '{name}'",
  "error: option '{flags}' argument missing",
  "error: required option '{flags}' not specified",
  "error: option '{flags}' argument '{value}' is invalid. Allowed choices are {choices}.",
  "error: command-argument value '{value}' is invalid for argument '{name}'. Allowed choices are {choices}.",
  "error: too many arguments for '{command}'. Expected {most} but got {given}: {details}.",
  "error: unknown option '{flag}'",
  "error: unknown command '{name}'",
  '{text} is neither an id nor a name',
  '(Did you mean one of {names}?)',
  '(Did you mean {name}?)',
  'must be a string',
  'must be 8 to 64 letters, digits, - and _, and begin with a letter or digit',
  'must be 16 to 64 letters, digits, - and _',
  'another process migrates the database',
  'a table is in use (attempt {attempt} of {attempts})',
  'this is {file}; the service account file is needed',
  'this is {file}; a file of AppGallery Connect is needed',
];

/** Translates a sentence of an untranslated module to the output language. */
export function recognised(line: string): string {
  for (const text of foreignTexts) {
    const pattern = RegExp.escape(text).replaceAll(/\\\{(\w+)\\\}/g, '(?<$1>.+)');
    const found = new RegExp(`^${pattern}$`).exec(line);
    if (found)
      return translated(text).replaceAll(/\{(\w+)\}/g, (_all, name: string) =>
        name === 'file' ? translated(found.groups?.[name] ?? '') : (found.groups?.[name] ?? ''),
      );
  }
  return line;
}
