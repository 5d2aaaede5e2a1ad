import type { Route, Router } from '../../connectors/routing.ts';
import { dayMs } from '../../shared/clock.ts';
import { zoneOfTraits } from '../../shared/db/tables/installations/traits.ts';
import type { App } from '../../shared/domain/apps/app.ts';
import type { DeviceTraits } from '../../shared/domain/installations/installation.ts';
import { offsetsOf } from '../../shared/domain/pushes/local-time.ts';
import { quietHoursOf } from '../../shared/domain/pushes/push-class.ts';
import { quietRule } from '../../shared/domain/pushes/quiet-hours.ts';
import type { Push } from '../../shared/domain/pushes/record.ts';
import type { LanguageRoute, LanguageRoutes } from './language-routes.ts';

/** Route of devices whose quiet hours are at the same time. */
export interface QuietRoute extends Route, Pick<Partial<LanguageRoute>, 'language'> {
  /** Their quiet hours and zone, as one text (`quietRule`). */
  quiet: string;
}

/** Traits and zones that are remembered; devices choose the names of zones. */
const maxRemembered = 10_000;
/** Days ahead for which zones of one batch agree; a batch that waits longer may be off by a change to or from summer time. */
const maxComparedDays = 30;

/**
 * Groups zones that have the same offsets from now until a push expires, so that a batch has one time, and few batches are
 * small: devices choose among some hundred names, which have some forty offsets.
 */
class ZoneGroups {
  readonly #days: number[];
  readonly #defaultZone: string;
  readonly #byName = new Map<string, string>();
  readonly #byOffsets = new Map<string, string>();

  constructor(defaultZone: string, { fromMs, toMs }: { fromMs: number; toMs: number }) {
    const count = Math.min(maxComparedDays, Math.max(1, Math.ceil((toMs - fromMs) / dayMs)));
    this.#days = Array.from({ length: count + 1 }, (_, i) => fromMs + i * dayMs);
    this.#defaultZone = defaultZone;
  }

  /** Returns the zone that stands for the group of a zone; for no or an unknown one, that of the default zone. */
  zoneOf(name: string | null): string {
    const known = this.#byName.get(name ?? '');
    if (known !== undefined) return known;
    const zone = this.#find(name);
    if (this.#byName.size >= maxRemembered) this.#byName.clear();
    this.#byName.set(name ?? '', zone);
    return zone;
  }

  #find(name: string | null): string {
    const offsetAt = name === null ? undefined : offsetsOf(name);
    if (name === null || !offsetAt) return name === this.#defaultZone ? name : this.zoneOf(this.#defaultZone);
    const offsets = this.#days.map(offsetAt).join(' ');
    const same = this.#byOffsets.get(offsets) ?? name;
    this.#byOffsets.set(offsets, same);
    return same;
  }
}

interface Routing {
  push: Push;
  app: App;
  router: Pick<Router, 'route'>;
  languages: LanguageRoutes | undefined;
  nowMs: number;
}

/** Returns the routes of a push with quiet hours; undefined for any other push. */
export function quietRoutesOf(routing: Routing): QuietRoutes | undefined {
  const { push, app } = routing;
  const hours = quietHoursOf(push.pushOrder, app.options);
  return hours === null ? undefined : new QuietRoutes(hours, routing);
}

/** Routes of a push with quiet hours: one for each connector, profile, language and group of time zones. */
export class QuietRoutes {
  readonly #hours: string;
  readonly #groups: ZoneGroups;
  readonly #routing: Routing;
  readonly #byTraits = new Map<string, QuietRoute>();
  readonly #byParts = new Map<string, QuietRoute>();

  constructor(hours: string, routing: Routing) {
    const { push, app, nowMs } = routing;
    const defaultZone = push.pushOrder.local?.zone ?? app.options.defaultTimeZone;
    this.#hours = hours;
    this.#groups = new ZoneGroups(defaultZone, { fromMs: nowMs, toMs: push.expiresAt.getTime() });
    this.#routing = routing;
  }

  /** Returns the route of the devices with these traits, whose text holds the time zone. */
  routeOf(traits: string, read: (traits: string) => DeviceTraits): QuietRoute {
    const known = this.#byTraits.get(traits);
    if (known) return known;
    const { router, languages } = this.#routing;
    const inner: Route & Partial<LanguageRoute> = languages
      ? languages.routeOf(traits, read)
      : router.route(read(traits));
    const quiet = quietRule(this.#hours, this.#groups.zoneOf(zoneOfTraits(traits)));
    const { connector, profile, error, language } = inner;
    const parts = JSON.stringify([connector, profile, error, language, quiet]);
    const route = this.#byParts.get(parts) ?? { ...inner, quiet };
    this.#byParts.set(parts, route);
    if (this.#byTraits.size >= maxRemembered) this.#byTraits.clear();
    this.#byTraits.set(traits, route);
    return route;
  }
}
