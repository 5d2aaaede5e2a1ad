import { refuse } from '../errors/errors.ts';
import { isJsonObject, type JsonObject } from '../json.ts';
import { dataKeyOwners } from '../labels.ts';
import { detail } from '../texts/texts.ts';

/**
 * Language tags, and the locales that devices save, compared as BCP 47 has it (RFC 4647, 3.4), with
 * scripts as CLDR infers them.
 */
interface KnownLocale {
  /** Tag in its canonical spelling. */
  canonical: string;
  /** Tag with the likely script and region, for comparison. */
  full: string;
  language: string;
  script: string | undefined;
  /** Region that the tag itself names. */
  region: string | undefined;
}

/** Longest locale that is read. */
export const maxLocaleLength = 35;

/**
 * Reads a language tag or a locale of a device: `zh-Hans-CN`, `zh_CN`, `zh_CN_#Hans`,
 * `en_GB.UTF-8`. Reads language, script and region; undefined for a text that has no language.
 */
function readLocale(text: string): KnownLocale | undefined {
  if (text.length > maxLocaleLength) return undefined;
  const [, base = ''] = /^([A-Za-z0-9_#-]+)([.@].*)?$/.exec(text) ?? [];
  const [language = '', ...rest] = base.replaceAll('#', '').split(/[_-]/);
  if (!/^[a-z]{2,3}$/i.test(language)) return undefined;
  // A single letter begins extensions; what follows is no region.
  const end = rest.findIndex((part) => part.length === 1);
  const parts = end < 0 ? rest : rest.slice(0, end);
  const script = parts.find((part) => /^[a-z]{4}$/i.test(part));
  const region = parts.find((part) => /^([a-z]{2}|\d{3})$/i.test(part));
  const locale = new Intl.Locale(
    [language, script, region].filter((part) => part !== undefined).join('-'),
  );
  const full = locale.maximize();
  return {
    canonical: locale.baseName,
    full: full.baseName,
    language: full.language,
    script: full.script,
    region: locale.region,
  };
}

/**
 * Returns the language that fits a locale best: the same one, then that of the language and script
 * without a region, then the first of any region. Undefined if none has the language in this
 * script.
 */
function bestLanguage<L extends { locale: KnownLocale }>(
  languages: readonly L[],
  wanted: KnownLocale,
): L | undefined {
  const close = languages.filter(
    ({ locale }) => locale.language === wanted.language && locale.script === wanted.script,
  );
  return (
    close.find(({ locale }) => locale.canonical === wanted.canonical) ??
    close.find(({ locale }) => locale.full === wanted.full && locale.region !== undefined) ??
    close.find(({ locale }) => locale.full === wanted.full) ??
    close.find(({ locale }) => locale.region === undefined) ??
    close[0]
  );
}

/**
 * Members of `data` in other languages, by language tag as the caller wrote it
 * (protocol/push.md#languages).
 */
export type Translations = Readonly<Record<string, JsonObject>>;

/** Most translations of a push. */
export const maxLanguages = 50;

/**
 * Checks the member `languages` of a push body; undefined without a translation. Throws 1 or 111
 * with a text that names it.
 */
export function translationsOf(value: unknown): Translations | undefined {
  if (value === undefined || value === null) return undefined;
  if (!isJsonObject(value)) throw refuse('incorrectType', detail('languagesExpected'));
  const all = Object.entries(value);
  if (all.length > maxLanguages)
    throw refuse('invalidParameter', detail('languagesMost', { most: maxLanguages }));
  const known = new Set<string>();
  const translations: Record<string, JsonObject> = {};
  for (const [tag, members] of all) {
    const canonical = /^[A-Za-z0-9_-]+$/.test(tag) ? readLocale(tag)?.canonical : undefined;
    if (canonical === undefined) throw refuse('invalidParameter', detail('languageTags'));
    if (known.has(canonical)) throw refuse('invalidParameter', detail('languagesTwice'));
    known.add(canonical);
    translations[tag] = checkMembers(members);
  }
  return all.length === 0 ? undefined : translations;
}

function checkMembers(members: unknown): JsonObject {
  if (!isJsonObject(members)) throw refuse('incorrectType', detail('translationExpected'));
  const { alert, title } = members;
  if (alert !== undefined && typeof alert !== 'string' && !isJsonObject(alert))
    throw refuse('incorrectType', detail('translationAlert'));
  if (title !== undefined && title !== null && typeof title !== 'string')
    throw refuse('incorrectType', detail('translationTitle'));
  return members;
}

/**
 * Returns the content with the members of a translation in place of its own; those of the objects
 * for one kind of device, and of `aps`, one by one.
 */
export function translated(data: JsonObject, members: JsonObject): JsonObject {
  const result: JsonObject = { ...data };
  for (const [name, value] of Object.entries(members)) {
    const own = result[name];
    const isPart = name === 'aps' || dataKeyOwners.has(name);
    result[name] =
      isPart && isJsonObject(own) && isJsonObject(value) ? { ...own, ...value } : value;
  }
  return result;
}

/** Part of a push order that is translated. */
interface Translated {
  data: JsonObject;
  languages?: Translations;
}

/** Returns an order with the content of one of its languages; null is `data` itself. */
export function orderIn<T extends Translated>(order: T, language: string | null): T {
  const members = language === null ? undefined : order.languages?.[language];
  return members ? { ...order, data: translated(order.data, members) } : order;
}

/** Language that a recipient gets. */
interface LanguageChoice {
  /** Tag of a translation; null: none fits, and the recipient gets `data` as it is. */
  language: string | null;
  /**
   * Whether the translation is not that of the locale itself, but of one that is close to it, or
   * none fits.
   */
  isFallback: boolean;
}

/** Locales that a chooser remembers; devices write what they like. */
const maxRemembered = 5000;

/** Chooses the language of each recipient among those of one push. */
export class LanguageChooser {
  readonly #languages: { tag: string; locale: NonNullable<ReturnType<typeof readLocale>> }[];
  readonly #known = new Map<string, LanguageChoice>();

  constructor(translations: Translations) {
    this.#languages = Object.keys(translations).flatMap((tag) => {
      const locale = readLocale(tag);
      return locale ? [{ tag, locale }] : [];
    });
  }

  /** Chooses by the `locale` of an installation; null where it has none. */
  choose(locale: string | null): LanguageChoice {
    const name = locale ?? '';
    const known = this.#known.get(name);
    if (known) return known;
    if (this.#known.size >= maxRemembered) this.#known.clear();
    const choice = this.#find(name);
    this.#known.set(name, choice);
    return choice;
  }

  #find(name: string): LanguageChoice {
    const wanted = readLocale(name);
    const found = wanted && bestLanguage(this.#languages, wanted);
    if (!wanted || !found) return { language: null, isFallback: true };
    return { language: found.tag, isFallback: found.locale.full !== wanted.full };
  }
}

/** Recipients of one language. */
interface LanguageCount {
  devices: number;
  /**
   * Those who get it for a locale that is only close to it; all of those who get `data` as it is.
   */
  fallback: number;
}

/** Recipients by language; the key of `data` as it is, is empty. */
export type LanguageCounts = Readonly<Record<string, LanguageCount>>;

/** Adds up recipients by language, from their locales. */
export function countLanguages(
  chooser: LanguageChooser,
  groups: Iterable<{ locale: string | null; devices: number }>,
): LanguageCounts {
  const counts: Record<string, LanguageCount> = {};
  for (const { locale, devices } of groups) {
    const { language, isFallback } = chooser.choose(locale);
    const name = language ?? '';
    const count = counts[name] ?? { devices: 0, fallback: 0 };
    counts[name] = count;
    count.devices += devices;
    if (isFallback) count.fallback += devices;
  }
  return counts;
}

/** Returns counts as replies show them, the most frequent language first. */
export const shownLanguages = (counts: LanguageCounts): JsonObject[] =>
  Object.entries(counts)
    .sort(([, one], [, other]) => other.devices - one.devices)
    .map(([name, count]) => ({ language: name === '' ? null : name, ...count }));
