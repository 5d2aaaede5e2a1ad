/** Language tags, and the locales that devices save, compared as BCP 47 has it (RFC 4647, 3.4), with scripts as CLDR infers them. */
export interface KnownLocale {
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
 * Reads a language tag or a locale of a device: `zh-Hans-CN`, `zh_CN`, `zh_CN_#Hans`, `en_GB.UTF-8`. Reads language, script and
 * region; undefined for a text that has no language.
 */
export function readLocale(text: string): KnownLocale | undefined {
  if (text.length > maxLocaleLength) return undefined;
  const [, base = ''] = /^([A-Za-z0-9_#-]+)([.@].*)?$/.exec(text) ?? [];
  const [language = '', ...rest] = base.replaceAll('#', '').split(/[_-]/);
  if (!/^[a-z]{2,3}$/i.test(language)) return undefined;
  // A single letter begins extensions; what follows is no region.
  const end = rest.findIndex((part) => part.length === 1);
  const parts = end < 0 ? rest : rest.slice(0, end);
  const script = parts.find((part) => /^[a-z]{4}$/i.test(part));
  const region = parts.find((part) => /^([a-z]{2}|\d{3})$/i.test(part));
  const locale = new Intl.Locale([language, script, region].filter((part) => part !== undefined).join('-'));
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
 * Returns the language that fits a locale best: the same one, then that of the language and script without a region, then
 * the first of any region. Undefined if none has the language in this script.
 */
export function bestLanguage<L extends { locale: KnownLocale }>(
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
