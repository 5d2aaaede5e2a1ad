import type { Environment } from '../../shared/config/config.ts';
import { type Code, type Language, textIn } from '../../shared/domain/texts/catalogue.ts';

let chosen: Language = 'en';

/** Returns the language of the texts that the running command prints. */
export const language = (): Language => chosen;

/** Chooses the language of the texts that the running command prints. */
export function chooseLanguage(next: Language): void {
  chosen = next;
}

/** Returns the language of a terminal: Chinese if the locale of its messages is. */
export function languageOf({ LC_ALL, LC_MESSAGES, LANG }: Environment): Language {
  const locale = LC_ALL || LC_MESSAGES || LANG || '';
  return locale.startsWith('zh') ? 'zh' : 'en';
}

/** Sentence of a reply in both languages, as a dry run has it. */
interface Sentence {
  text: string;
  zh: string;
}

/** Returns a sentence of a reply in the language of the command. */
export const sentenceIn = ({ text, zh }: Sentence): string => (chosen === 'zh' ? zh : text);

/** Returns a reason of a reply; in Chinese its meaning, with the reason itself to search for. */
export function reasonIn(reason: string, meaning: { code: string; zh: string } | null | undefined): string {
  return chosen === 'en' || !meaning || meaning.code === 'other' ? reason : `${meaning.zh}（${reason}）`;
}

/** Returns a text of the command line itself. */
export const ownText = (code: Code<'commands'>, values: Record<string, string | number> = {}): string =>
  textIn(chosen, 'commands', code, (name) => String(values[name] ?? ''));

/** Returns lines below their title; nothing without lines. */
export const section = (title: Code<'commands'>, lines: string[]): string[] =>
  lines.length === 0 ? [] : ['', ownText(title), ...lines.map((line) => `  ${line}`)];
