import type { Rate } from '../../../../connectors/contract/connector.ts';
import { connectors } from '../../../../connectors/registry.ts';
import { readCredentials } from '../../../../connectors/routing.ts';
import { chinaDay, dayMs, utcDay } from '../../../../shared/clock.ts';
import { listProfileUse, type ProfileUse } from '../../../../shared/db/tables/gateway-limits.ts';
import type { StoredProfile } from '../../../../shared/db/tables/profiles.ts';
import { listUsage, readUsage } from '../../../../shared/db/tables/usage.ts';
import { type Meaning, meaningOrNull } from '../../../../shared/domain/admin/reasons/meaning.ts';
import type { App } from '../../../../shared/domain/apps/app.ts';
import { type Fees, feesOf, type Usage } from '../../../../shared/domain/apps/usage.ts';
import { refuse } from '../../../../shared/domain/errors/errors.ts';
import { isConnectorId } from '../../../../shared/domain/labels.ts';
import { reasonText } from '../../../../shared/domain/reasons.ts';
import { detail } from '../../../../shared/domain/texts/texts.ts';
import { profileKey } from '../../../../shared/rules/admission.ts';
import type { ApiDeps } from '../../deps.ts';
import { forecastScheduled, type ScheduledForecast } from '../../push/explain/forecast.ts';
import { requireApp } from '../apps.ts';

/** Maximum number of rows of a day. A profile has a handful of message classes. */
const maxRows = 1000;

/** Use of a gateway, with its limits (protocol/admin-api.md#quotas). */
interface QuotaRow {
  connector: string;
  profile: string;
  class: string;
  used: number;
  requests: number;
  /** Always null: gateways do not report their limit, but refuse when it is used up. */
  limit: number | null;
  closedReason: string | null;
  closedMeaning: Meaning | null;
  rate: { perSecond: number; counts: Rate['counts'] } | null;
  forecast: number | null;
}

/**
 * Reports how much an app used of its gateways' daily quotas, and how much its scheduled pushes
 * will use.
 */
export class QuotaService {
  readonly #deps: ApiDeps;

  constructor(deps: ApiDeps) {
    this.#deps = deps;
  }

  /**
   * Returns the use on a day. `day` is `YYYY-MM-DD` in China, today if absent. Only today has a
   * forecast. Throws error 404 if the app does not exist.
   */
  async read(appId: string, day: string | undefined) {
    const { appCache, clock, db } = this.#deps;
    const app = await requireApp(this.#deps, appId);
    const today = chinaDay(clock.now());
    const requestedDay = day ?? today;
    const forecast =
      requestedDay === today
        ? await forecastScheduled(
            this.#deps,
            app,
            new Date(Date.parse(`${requestedDay}T00:00:00+08:00`) + dayMs),
          )
        : null;
    const used = await listProfileUse(db, appId, { day: requestedDay, limit: maxRows });
    const profiles = await appCache.profiles(appId);
    return {
      day: requestedDay,
      zone: 'Asia/Shanghai',
      results: rowsOf(used, { profiles, forecast }),
      app: await this.#ofApp(app, forecast),
      scheduled: forecast && { pushes: forecast.pushes, counted: forecast.counted },
    };
  }

  /** Returns the use of the app's daily cap. The cap counts by days in UTC. */
  async #ofApp(app: App, forecast: ScheduledForecast | null) {
    const day = utcDay(this.#deps.clock.now());
    const { recipients: used } = await readUsage(this.#deps.db, app.appId, day);
    const limit = app.options.dailyRecipientCap;
    return { day, zone: 'UTC', used, limit, forecast: forecast?.devices ?? null };
  }
}

interface RowInputs {
  profiles: StoredProfile[];
  forecast: ScheduledForecast | null;
}

/** Returns a row for each profile, used or unused, and for each message class that is closed. */
function rowsOf(used: ProfileUse[], { profiles, forecast }: RowInputs): QuotaRow[] {
  const usedKeys = new Set(used.filter((row) => row.class === '').map(keyOf));
  const unused = profiles
    .map(({ connector, name }) => ({ connector, profile: name }))
    .filter((profile) => !usedKeys.has(keyOf(profile)))
    .map((profile) => ({ ...profile, class: '', requests: 0, recipients: 0, closedReason: null }));
  return [...used, ...unused]
    .map((row) => ({
      connector: row.connector,
      profile: row.profile,
      class: row.class,
      used: row.recipients,
      requests: row.requests,
      limit: null,
      closedReason: row.closedReason && reasonText(row.closedReason),
      closedMeaning: meaningOrNull(row.closedReason),
      rate: rateOf(
        profiles.find(({ connector, name }) => profileKey(connector, name) === keyOf(row)),
      ),
      forecast: forecast && row.class === '' ? (forecast.byProfile.get(keyOf(row)) ?? 0) : null,
    }))
    .toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
}

const keyOf = ({ connector, profile }: { connector: string; profile: string }): string =>
  profileKey(connector, profile);

/** Returns the rate of a profile. Returns null if it has no limit. */
function rateOf(profile: StoredProfile | undefined): QuotaRow['rate'] {
  const read = profile && readCredentials(profile);
  const connector =
    profile && isConnectorId(profile.connector) ? connectors.get(profile.connector) : undefined;
  const rate = read ? connector?.rate?.(read.credentials) : undefined;
  return rate ? { perSecond: rate.perSecond, counts: rate.counts } : null;
}

/** Usage and fees of an app on one day (protocol/admin-api.md#usage). */
interface DayReport extends Usage {
  day: string;
  fees: Fees;
}

/** Maximum number of days in a report. Older days are deleted. */
const maxDays = 400;

/** Reports the usage of apps (protocol/admin-api.md#usage, protocol/push.md#fees). */
export class UsageService {
  readonly #deps: ApiDeps;

  constructor(deps: ApiDeps) {
    this.#deps = deps;
  }

  /**
   * Returns the usage of a day. `day` is `YYYY-MM-DD` in UTC, today if absent. Throws error 404 if
   * the app does not exist.
   */
  async report(appId: string, day: string | undefined): Promise<DayReport> {
    const app = await requireApp(this.#deps, appId);
    const requestedDay = day ?? utcDay(this.#deps.clock.now());
    const { calls, peakCallsPerMinute, recipients } = await readUsage(
      this.#deps.db,
      appId,
      requestedDay,
    );
    const usage = { calls, peakCallsPerMinute, recipients };
    return { day: requestedDay, ...usage, fees: feesOf(app, usage) };
  }

  /**
   * Returns the usage of the days `from` to `to` in UTC, both inclusive, oldest first. Throws error
   * 404 if the app does not exist, error 400 for more than 400 days.
   */
  async range(appId: string, { from, to }: { from: string; to: string }): Promise<DayReport[]> {
    const app = await requireApp(this.#deps, appId);
    const days = (Date.parse(to) - Date.parse(from)) / dayMs + 1;
    if (days < 1 || days > maxDays)
      throw refuse('invalidParameter', detail('dayRange', { n: maxDays }));
    const rows = await listUsage(this.#deps.db, appId, { from, to });
    const byDay = new Map(rows.map((row) => [row.day, row]));
    return Array.from({ length: days }, (_, i) => {
      const day = utcDay(Date.parse(from) + i * dayMs);
      const { calls = 0, peakCallsPerMinute = 0, recipients = 0 } = byDay.get(day) ?? {};
      const usage = { calls, peakCallsPerMinute, recipients };
      return { day, ...usage, fees: feesOf(app, usage) };
    });
  }
}
