/** Connector with its limits, as the server describes it. */
interface Limited {
  id: string;
  limits: Readonly<Record<string, number>>;
}

/** Strictest limit of a text, and the connector that has it. */
interface Strictest {
  id: string;
  most: number;
}

/** Returns the strictest limit among some connectors. Undefined if none of them has a limit. */
export function strictestOf(
  connectors: readonly Limited[],
  reached: readonly string[],
  limit: string,
): Strictest | undefined {
  const found = connectors.flatMap(({ id, limits }): Strictest[] => {
    const most = limits[limit];
    return most !== undefined && reached.includes(id) ? [{ id, most }] : [];
  });
  return found.toSorted((a, b) => a.most - b.most)[0];
}

/** Frequent value of a field, and its share of the devices. */
interface SampledValue {
  value: string | number | boolean;
  share: number;
}

/** Language of devices, and its share of the devices. */
interface DeviceLanguage {
  tag: string;
  share: number;
}

/**
 * Returns the languages in the locales of devices, most frequent first. Only Chinese has a script,
 * because its two scripts need two translations. Invalid locales are left out.
 */
export function deviceLanguages(locales: readonly SampledValue[]): DeviceLanguage[] {
  const shares = new Map<string, number>();
  for (const { value, share } of locales) {
    const tag = languageOf(String(value));
    if (tag !== undefined) shares.set(tag, (shares.get(tag) ?? 0) + share);
  }
  return [...shares].map(([tag, share]) => ({ tag, share })).toSorted((a, b) => b.share - a.share);
}

function languageOf(locale: string): string | undefined {
  try {
    const { language, script } = new Intl.Locale(locale.replaceAll('_', '-')).maximize();
    return language === 'zh' ? `zh-${script}` : language;
  } catch {
    return undefined;
  }
}

/** Names of the column with the ids. A first line with one of these names is a heading. */
const idColumns = [
  'deviceids',
  'deviceid',
  'devicetoken',
  'token',
  'objectid',
  'installationid',
  'id',
];

/**
 * Returns the ids in a CSV file, each once: the column with a known heading, otherwise the first
 * column. Quotation marks around a value are removed.
 */
export function idsInCsv(text: string): string[] {
  const rows = text
    .replace(/^\uFEFF/, '')
    .split(/\r?\n/)
    .map((line) => line.split(/[,;\t]/).map((cell) => cell.trim().replace(/^"(.*)"$/, '$1')));
  const headings = (rows[0] ?? []).map((cell) => cell.toLowerCase().replaceAll(/[\s_-]/g, ''));
  const found = headings.findIndex((heading) => idColumns.includes(heading));
  const ids = rows.slice(found < 0 ? 0 : 1).map((cells) => cells[Math.max(0, found)] ?? '');
  return [...new Set(ids.filter((id) => id !== ''))];
}
