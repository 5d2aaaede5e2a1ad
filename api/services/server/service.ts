import { runForApp } from '../../../shared/db/limits/client-pool.ts';
import { refuse } from '../../../shared/domain/errors/errors.ts';
import { channelPath, routeTtlSeconds } from '../../../shared/domain/installations/installation.ts';
import type { JsonObject } from '../../../shared/domain/json.ts';
import { detail } from '../../../shared/domain/texts/texts.ts';
import { mayReadMetrics, metricsRefusal, type Scrape } from '../../../shared/metrics.ts';
import { reportDatabases, reportQueues, waitForPart } from '../../../shared/queue/report.ts';
import type { ApiDeps } from '../deps.ts';
import type { PumpingGuard } from '../sms/budgets.ts';

/** Reports readiness and metrics of this process. */
export class HealthService {
  readonly #deps: ApiDeps;
  readonly #pumping: PumpingGuard;
  #isStopping = false;
  #pendingCheck: Promise<string> | undefined;

  constructor(deps: ApiDeps, pumping: PumpingGuard) {
    this.#deps = deps;
    this.#pumping = pumping;
  }

  /**
   * Returns `ready` if the process is not stopping and the database is reachable, migrated and
   * matches CARILLON_SECRET. Otherwise returns `stopping`, `database unreachable` or a hint for the
   * operator.
   */
  async readiness(): Promise<string> {
    return this.#isStopping ? 'stopping' : this.#databaseReadiness();
  }

  /** Runs one check for all concurrent callers, because the endpoint needs no key. */
  #databaseReadiness(): Promise<string> {
    const { admissionDb, readiness } = this.#deps;
    this.#pendingCheck ??= runForApp('health', async () =>
      (await admissionDb.isReachable())
        ? ((await readiness.hint()) ?? 'ready')
        : 'database unreachable',
    )
      .catch(() => 'database unreachable')
      .finally(() => {
        this.#pendingCheck = undefined;
      });
    return this.#pendingCheck;
  }

  /**
   * Makes `readiness` return `stopping`. The load balancer then sends new calls elsewhere while
   * current calls finish.
   */
  markStopping(): void {
    this.#isStopping = true;
  }

  /**
   * Returns the metrics in the text format of Prometheus. Gauges of shared state are updated at
   * each scrape. Throws error 401 if the caller may not read them (`mayReadMetrics`).
   */
  async metrics(scrape: Scrape): Promise<{ text: string; type: string }> {
    const { metrics, queue, config, clock, readiness, db, savesDb, admissionDb, queries } =
      this.#deps;
    if (!mayReadMetrics(scrape, config.metricsToken))
      throw refuse('unauthorized', metricsRefusal(config.metricsToken));
    await reportQueues(admissionDb, queue, metrics);
    await reportDatabases(
      { databases: [db, savesDb, admissionDb, ...queries.databases], readiness },
      metrics,
    );
    await waitForPart(this.#pumping.updateGauge());
    metrics.lastScrape.scrapedAtMs = clock.now();
    return { text: await metrics.registry.metrics(), type: metrics.registry.contentType };
  }
}

/** Returns the server's time in the format of clients (protocol/clients.md#server-time). */
export class DateService {
  readonly #deps: Pick<ApiDeps, 'clock'>;

  constructor(deps: Pick<ApiDeps, 'clock'>) {
    this.#deps = deps;
  }

  /** Returns the time in epoch milliseconds. */
  nowMs(): number {
    return this.#deps.clock.now();
  }

  now(): JsonObject {
    return { __type: 'Date', iso: new Date(this.#deps.clock.now()).toISOString() };
  }
}

/**
 * Returns the addresses of the service for clients of the device channel
 * (protocol/clients.md#app-router, protocol/channel.md#router).
 */
export class AppRouterService {
  readonly #deps: ApiDeps;

  constructor(deps: ApiDeps) {
    this.#deps = deps;
  }

  /**
   * Returns the WebSocket URL of the device channel. All processes share one address, so
   * `secondary` equals `server`. Throws error 404 if the app does not exist.
   */
  async socketRoute(appId: string) {
    await this.#requireApp(appId);
    const base = this.#deps.config.publicUrl;
    const server = `${base.replace(/^http/, 'ws')}${channelPath}`;
    return { groupId: 'g0', groupUrl: base, server, secondary: server, ttl: routeTtlSeconds };
  }

  /**
   * Returns the host name of Carillon for every service that clients expect. Throws error 404 if
   * the app does not exist.
   */
  async hosts(appId: string) {
    await this.#requireApp(appId);
    const { host } = new URL(this.#deps.config.publicUrl);
    return {
      ttl: routeTtlSeconds,
      api_server: host,
      push_server: host,
      engine_server: host,
      stats_server: host,
      rtm_router_server: host,
    };
  }

  async #requireApp(appId: string): Promise<void> {
    if (!(await this.#deps.appCache.app(appId))) throw refuse('notFound', detail('noApp'));
  }
}
