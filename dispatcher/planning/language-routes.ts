import type { Route, Router } from '../../connectors/routing.ts';
import { localeOfTraits } from '../../shared/db/tables/installations/traits.ts';
import type { DeviceTraits } from '../../shared/domain/installations/installation.ts';
import {
  countLanguages,
  LanguageChooser,
  type LanguageCounts,
  type Translations,
} from '../../shared/domain/pushes/languages.ts';
import type { TargetPage } from './pages.ts';

/** Route of devices that get one language. */
export interface LanguageRoute extends Route {
  /** Tag of a translation; null for `data` as it is. */
  language: string | null;
}

/** Traits that are remembered; they hold the locales, which devices choose. */
const maxRemembered = 10_000;

/**
 * Routes of a push with translations: one for each connector, profile and language, whatever the number of locales, so that
 * a batch is of one language and few batches are small.
 */
export class LanguageRoutes {
  readonly #router: Pick<Router, 'route'>;
  readonly #chooser: LanguageChooser;
  readonly #byTraits = new Map<string, LanguageRoute>();
  readonly #byParts = new Map<string, LanguageRoute>();

  constructor(router: Pick<Router, 'route'>, translations: Translations) {
    this.#router = router;
    this.#chooser = new LanguageChooser(translations);
  }

  /** Returns the route of the devices with these traits, whose text holds the locale. */
  routeOf(traits: string, read: (traits: string) => DeviceTraits): LanguageRoute {
    const known = this.#byTraits.get(traits);
    if (known) return known;
    const { language } = this.#chooser.choose(localeOfTraits(traits));
    const route = { ...this.#router.route(read(traits)), language };
    const { connector, profile, error } = route;
    const parts = JSON.stringify([connector, profile, error, language]);
    const same = this.#byParts.get(parts) ?? route;
    this.#byParts.set(parts, same);
    if (this.#byTraits.size >= maxRemembered) this.#byTraits.clear();
    this.#byTraits.set(traits, same);
    return same;
  }

  /** Counts the devices of a page by language. */
  countOf({ idsByTraits }: TargetPage): LanguageCounts {
    const groups = [...idsByTraits].map(([traits, ids]) => ({
      locale: localeOfTraits(traits),
      devices: ids.length,
    }));
    return countLanguages(this.#chooser, groups);
  }
}
