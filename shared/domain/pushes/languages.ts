import { refuse } from '../errors/errors.ts';
import { isJsonObject, type JsonObject } from '../json.ts';
import { dataKeyOwners } from '../labels.ts';
import { detail } from '../texts/texts.ts';
import { checkRichContent } from './rich-content.ts';

/**
 * A language tag or the locale of a device. Tags are compared as in BCP 47 (RFC 4647, 3.4). CLDR
 * provides missing scripts.
 */
interface KnownLocale {
  /** The tag in canonical spelling. */
  canonical: string;
  /** The tag with likely script and region added, for comparison. */
  full: string;
  language: string;
  script: string | undefined;
  /** Region that the tag contains. */
  region: string | undefined;
}

/** Longer locales are ignored. */
export const maxLocaleLength = 35;

/**
 * Parses a language tag or the locale of a device, such as `zh-Hans-CN`, `zh_CN`, `zh_CN_#Hans` or
 * `en_GB.UTF-8`. Only language, script and region are used. Returns undefined if the text contains
 * no language.
 */
function readLocale(text: string): KnownLocale | undefined {
  if (text.length > maxLocaleLength) return undefined;
  const [, base = ''] = /^([A-Za-z0-9_#-]+)([.@].*)?$/.exec(text) ?? [];
  const [language = '', ...rest] = base.replaceAll('#', '').split(/[_-]/);
  if (!/^[a-z]{2,3}$/i.test(language)) return undefined;
  // A single letter starts an extension. The parts behind it are not regions.
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
 * Returns the language that fits a locale best: first the same tag, then the same language and
 * script without a region, then with any region. Returns undefined if no language has this language
 * and script.
 */
function bestLanguage<L extends { locale: KnownLocale }>(
  languages: readonly L[],
  requested: KnownLocale,
): L | undefined {
  const close = languages.filter(
    ({ locale }) => locale.language === requested.language && locale.script === requested.script,
  );
  return (
    close.find(({ locale }) => locale.canonical === requested.canonical) ??
    close.find(({ locale }) => locale.full === requested.full && locale.region !== undefined) ??
    close.find(({ locale }) => locale.full === requested.full) ??
    close.find(({ locale }) => locale.region === undefined) ??
    close[0]
  );
}

/**
 * Members of `data` in other languages, by language tag as the caller sent it
 * (protocol/push.md#languages).
 */
export type Translations = Readonly<Record<string, JsonObject>>;

/** Maximum number of translations of a push. */
export const maxLanguages = 50;

/**
 * Checks the member `languages` of a push body. Returns undefined if there is no translation.
 * Throws error 1 or 111 with a text that names the member.
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
    translations[tag] = checkMembers(members, tag);
  }
  return all.length === 0 ? undefined : translations;
}

function checkMembers(members: unknown, tag: string): JsonObject {
  if (!isJsonObject(members)) throw refuse('incorrectType', detail('translationExpected'));
  const { alert, title } = members;
  if (alert !== undefined && typeof alert !== 'string' && !isJsonObject(alert))
    throw refuse('incorrectType', detail('translationAlert'));
  if (title !== undefined && title !== null && typeof title !== 'string')
    throw refuse('incorrectType', detail('translationTitle'));
  checkRichContent(members, `languages.${tag}.`);
  return members;
}

/**
 * Returns the content with the members of a translation. A translated member replaces the original.
 * In the objects for one type of device and in `aps`, this applies to each member of the object.
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

/** The part of a push order that can be translated. */
interface Translated {
  data: JsonObject;
  languages?: Translations;
}

/** Returns an order with its content in one language. Null means `data` without a translation. */
export function orderIn<T extends Translated>(order: T, language: string | null): T {
  const members = language === null ? undefined : order.languages?.[language];
  return members ? { ...order, data: translated(order.data, members) } : order;
}

/** Language that a recipient gets. */
interface LanguageChoice {
  /**
   * Tag of a translation. Null if no translation fits; the recipient then gets `data` without a
   * translation.
   */
  language: string | null;
  /** True if no translation fits, or if the translation is only similar to the locale. */
  isFallback: boolean;
}

/** Maximum number of cached locales. Devices may send any text as locale. */
const maxCachedLocales = 5000;

/** Chooses the language of each recipient from the translations of a push. */
export class LanguageChooser {
  readonly #languages: { tag: string; locale: NonNullable<ReturnType<typeof readLocale>> }[];
  readonly #choices = new Map<string, LanguageChoice>();

  constructor(translations: Translations) {
    this.#languages = Object.keys(translations).flatMap((tag) => {
      const locale = readLocale(tag);
      return locale ? [{ tag, locale }] : [];
    });
  }

  /** Chooses by the `locale` of an installation; null if it has none. */
  choose(locale: string | null): LanguageChoice {
    const name = locale ?? '';
    const cached = this.#choices.get(name);
    if (cached) return cached;
    if (this.#choices.size >= maxCachedLocales) this.#choices.clear();
    const choice = this.#find(name);
    this.#choices.set(name, choice);
    return choice;
  }

  #find(name: string): LanguageChoice {
    const requested = readLocale(name);
    const found = requested && bestLanguage(this.#languages, requested);
    if (!requested || !found) return { language: null, isFallback: true };
    return { language: found.tag, isFallback: found.locale.full !== requested.full };
  }
}

/** Number of recipients with one language. */
interface LanguageCount {
  devices: number;
  /**
   * Number of these recipients whose locale is only similar to the language. If no translation is
   * used, all recipients.
   */
  fallback: number;
}

/**
 * Numbers of recipients by language tag. The empty string is the key for recipients without a
 * translation.
 */
export type LanguageCounts = Readonly<Record<string, LanguageCount>>;

/** Counts recipients by language from their locales. */
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

/** Returns the counts for a reply, most frequent language first. */
export const replyLanguages = (counts: LanguageCounts): JsonObject[] =>
  Object.entries(counts)
    .sort(([, one], [, other]) => other.devices - one.devices)
    .map(([name, count]) => ({ language: name === '' ? null : name, ...count }));
