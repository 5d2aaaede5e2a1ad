import en from './en.json' with { type: 'json' };
import zh from './zh.json' with { type: 'json' };

/** Language of texts for people. */
export type Language = 'en' | 'zh';

type Catalogue = typeof en;

/** Section of the catalogue, such as `reasons`. */
export type Section = keyof Catalogue;

/** Code of a text in a section. */
export type Code<S extends Section> = keyof Catalogue[S] & string;

// The type requires a Chinese text for each code.
const catalogue: Readonly<Record<Language, Catalogue>> = { en, zh };

/** Returns all codes of a section. */
export const codesOf = (section: Section): readonly string[] => Object.keys(en[section]);

/** True if a section contains a code. */
export const isCode = <S extends Section>(section: S, code: string): code is Code<S> =>
  Object.hasOwn(en[section], code);

/** Returns the value of a placeholder; null if it is unknown. */
export type ValueOf = (name: string) => string | null;

/**
 * Returns the text of a code in a language. `{name}` is replaced by a value. A part in brackets,
 * such as `[ at {at}]`, is left out if its value is unknown. If a value is a sentence at the end of
 * another sentence, its full stop is removed.
 */
export function textIn<S extends Section>(
  language: Language,
  section: S,
  code: Code<S>,
  value: ValueOf = () => null,
): string {
  const texts: Readonly<Record<string, string>> = catalogue[language][section];
  const unknown: Readonly<Record<string, string>> = catalogue[language].unknown;
  const kept = (texts[code] ?? '').replaceAll(
    /\[([^[\]{}]*\{(\w+)\}[^[\]{}]*)\]/g,
    (_part: string, inner: string, name: string) => (value(name) === null ? '' : inner),
  );
  return kept.replaceAll(/\{(\w+)\}([).）。]?)/g, (_all: string, name: string, end: string) => {
    const written = value(name) ?? unknown[name] ?? '';
    return `${end === '' ? written : written.replace(/[.。]$/, '')}${end}`;
  });
}
