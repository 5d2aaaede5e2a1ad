import type { Handle } from '../../../../shared/db/pool.ts';
import type { SqlCondition } from '../../../../shared/db/tables/installations/audience.ts';
import { countLocales } from '../../../../shared/db/tables/pushes/reports/languages.ts';
import type { TracedBatch, TracedDevice } from '../../../../shared/db/tables/pushes/reports/traces.ts';
import type { Text } from '../../../../shared/domain/admin/trace-texts.ts';
import {
  countLanguages,
  LanguageChooser,
  type LanguageCounts,
} from '../../../../shared/domain/pushes/languages.ts';
import type { PushOrder } from '../../../../shared/domain/pushes/push.ts';

/** Counts the devices that meet a condition by the language that they would get; undefined for a push without translations. */
export async function forecastLanguages(
  tx: Handle,
  condition: SqlCondition,
  { languages }: PushOrder,
): Promise<LanguageCounts | undefined> {
  if (!languages) return undefined;
  return countLanguages(new LanguageChooser(languages), await countLocales(tx, condition));
}

/** Language of one device. */
export interface DeviceLanguage {
  /** Tag of a translation; null for `data` as it is. */
  language: string | null;
  /** As it is now; null without one, and for a device that was deleted. */
  locale: string | null;
}

/**
 * Returns the language that a device was planned with, or would get now; undefined for a push without translations, and for a
 * device that is neither planned nor known.
 */
export function languageOf(
  { languages }: PushOrder,
  { device, batch }: { device: TracedDevice | undefined; batch: TracedBatch | undefined },
): DeviceLanguage | undefined {
  if (!languages || (!device && !batch)) return undefined;
  const locale = device?.locale ?? null;
  return {
    locale,
    language: batch ? batch.language : new LanguageChooser(languages).choose(locale).language,
  };
}

/** Tells which translation a device gets, and by which locale. */
export function languageTexts(chosen: DeviceLanguage | undefined): Text[] {
  if (!chosen) return [];
  const code = chosen.language === null ? 'languageOfData' : 'languageChosen';
  return [{ code, params: { ...chosen } }];
}
