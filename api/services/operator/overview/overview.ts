import { dayMs, utcDay } from '../../../../shared/clock.ts';
import { listAppIds } from '../../../../shared/db/tables/apps.ts';
import {
  type Hit,
  searchApps,
  searchInstallations,
  searchPushes,
  searchUsers,
} from '../../../../shared/db/tables/console.ts';
import { listBreakers } from '../../../../shared/db/tables/gateways.ts';
import { readProgress } from '../../../../shared/db/tables/push-progress.ts';
import {
  countScheduledOf,
  listRunning,
  listWaitingForApproval,
  type RecentPush,
  readRecentPushes,
  readSetup,
  readUsageOf,
} from '../../../../shared/db/tables/push-reports.ts';
import { listTroubled } from '../../../../shared/db/tables/webhooks.ts';
import { hasRole, mayUseApp, type Operator } from '../../../../shared/domain/admin/operator.ts';
import { meaningOf } from '../../../../shared/domain/admin/reasons/meaning.ts';
import { refuse } from '../../../../shared/domain/errors/errors.ts';
import type { JsonObject } from '../../../../shared/domain/json.ts';
import { type ConnectorId, isConnectorId } from '../../../../shared/domain/labels.ts';
import { addTotals, type OutcomeTotals } from '../../../../shared/domain/outcome.ts';
import {
  allTotals,
  type ConnectorTotals,
  type Push,
} from '../../../../shared/domain/pushes/record.ts';
import { reasonText } from '../../../../shared/domain/reasons.ts';
import { detail } from '../../../../shared/domain/texts/texts.ts';
import { queueNames } from '../../../../shared/queue/jobs.ts';
import {
  type JobFilter,
  listWaitingJobs,
  type QueueState,
  type WaitingJob,
} from '../../../../shared/queue/queue-sql.ts';
import type { ApiDeps } from '../../deps.ts';
import { requireApp } from '../apps.ts';
import { toBreakerReply } from '../breakers.ts';
import { inspectProfile } from '../gateways/profile-detail.ts';
import type { PushListService } from '../pushes/push-list.ts';

const maxRunning = 20;
const maxWebhooks = 20;
/** Maximum number of pushes whose outcomes are added. */
const maxAddedUp = 10_000;
/** Maximum number of open and cancelled pushes among them, because each needs a statement. */
const maxOpenAddedUp = 50;
/** Maximum number of apps whose credentials are checked, because their profiles are decrypted. */
const maxInspected = 50;
const expirySoonMs = 30 * dayMs;

/** State of the service, or of one app, on one page (protocol/admin-api.md#overview). */
export class OverviewService {
  readonly #deps: ApiDeps;
  readonly #pushes: PushListService;

  constructor(deps: ApiDeps, pushes: PushListService) {
    this.#deps = deps;
    this.#pushes = pushes;
  }

  /**
   * Returns the overview. Throws error 403 if the operator may not see the app, error 404 if the
   * app does not exist.
   */
  async read(operator: Operator, appId: string | undefined) {
    if (appId !== undefined && !mayUseApp(operator, appId))
      throw refuse('forbidden', detail('otherApps'));
    const app = appId === undefined ? undefined : await requireApp(this.#deps, appId);
    const apps = appId === undefined ? operator.apps : [appId];
    const { db, clock, queue } = this.#deps;
    const day = utcDay(clock.now());
    const breakers = await listBreakers(db);
    const since = new Date(clock.now() - dayMs);
    const recent = await readRecentPushes(db, apps, { since, limit: maxAddedUp });
    const profiles = await this.#inspect(apps, recent);
    const soonMs = clock.now() + expirySoonMs;
    return {
      running: await this.#describe(operator, await listRunning(db, apps, maxRunning)),
      waitingApproval: await this.#describe(
        operator,
        await listWaitingForApproval(db, apps, maxRunning),
      ),
      scheduled: await countScheduledOf(db, apps),
      today: {
        day,
        ...(await readUsageOf(db, apps, day)),
        cap: app?.options.dailyRecipientCap ?? null,
      },
      ...(await this.#outcomes(recent)),
      breakersOpen: breakers
        .filter((one) => one.state !== 'closed' && (apps === null || apps.includes(one.appId)))
        .map(toBreakerReply),
      queues: await queue.states(),
      profilesExpiring: profiles.filter(
        ({ expiresAt }) => expiresAt !== null && Date.parse(expiresAt) <= soonMs,
      ),
      webhooks: (await listTroubled(db, apps, maxWebhooks)).map(({ at, ...webhook }) => ({
        ...webhook,
        at: at.toISOString(),
      })),
      findings: profiles.filter(({ problems }) => problems.length > 0),
      setup: appId === undefined ? null : await readSetup(db, appId),
    };
  }

  async #describe(operator: Operator, pushes: readonly Push[]): Promise<JsonObject[]> {
    const described = await Promise.all(
      pushes.map((push) => this.#pushes.describe(operator, push.appId, [push])),
    );
    return described.flat();
  }

  async #outcomes(rows: readonly RecentPush[]) {
    const { db } = this.#deps;
    const open = rows.filter(({ totals }) => totals === null);
    const outcomes24h: OutcomeTotals = {};
    let unacknowledged24h = 0;
    const add = (totals: ConnectorTotals, acked: number) => {
      addTotals(outcomes24h, allTotals(totals));
      unacknowledged24h += Math.max(0, (totals.channel?.sent ?? 0) - acked);
    };
    for (const { totals, acked } of rows) if (totals) add(totals, acked);
    // The totals of open and cancelled pushes are in their batches. They include messages in
    // flight.
    for (const { appId, id, acked } of open.slice(0, maxOpenAddedUp))
      add((await readProgress(db, appId, id)).totals, acked);
    const outcomesAreLeast = rows.length >= maxAddedUp || open.length > maxOpenAddedUp;
    return { outcomes24h, unacknowledged24h, outcomesAreLeast };
  }

  /** Inspects the credentials of apps, and what gateways said to their recent pushes. */
  async #inspect(apps: readonly string[] | null, recent: readonly RecentPush[]) {
    const { db, appCache, clock } = this.#deps;
    const inspected = (apps ?? (await listAppIds(db))).slice(0, maxInspected);
    const pushesByApp = Map.groupBy(recent, (push) => push.appId);
    const found = await Promise.all(
      inspected.map(async (appId) => {
        const app = await appCache.app(appId);
        if (!app) return [];
        const profiles = await appCache.profiles(appId);
        return profiles.flatMap(({ connector, name, credentials, updatedAt }) => {
          if (!isConnectorId(connector)) return [];
          const profile = { connector, credentials };
          const { expiresAtMs, problems } = inspectProfile(profile, app.options, clock.now());
          const pushes = pushesByApp.get(appId) ?? [];
          const all = [...problems, ...refusalsOf(pushes, { connector, name, updatedAt })];
          const expiresAt = expiresAtMs === null ? null : new Date(expiresAtMs).toISOString();
          return [
            {
              appId,
              connector,
              profile: name,
              expiresAt,
              problems: all.map(reasonText),
              meanings: all.map(meaningOf),
            },
          ];
        });
      }),
    );
    return found.flat();
  }
}

/**
 * Returns why the newest push that used a profile stopped using it, such as refused credentials.
 * Returns an empty list if that push was sent, or if the profile was saved after it. `pushes` are
 * the newest first. Their totals name connectors only, so a push that another profile of the
 * connector sent counts too.
 */
function refusalsOf(
  pushes: readonly RecentPush[],
  { connector, name, updatedAt }: { connector: ConnectorId; name: string; updatedAt: Date },
): string[] {
  for (const { createdAt, profileErrors, totals } of pushes) {
    if (createdAt <= updatedAt) return [];
    const refusal = profileErrors[`${connector}/${name}`];
    if (refusal !== undefined) return [refusal];
    if ((totals?.[connector]?.sent ?? 0) > 0) return [];
  }
  return [];
}

/** Reads the queues of all dispatchers (protocol/admin-api.md#queues). */
export class QueueService {
  readonly #deps: ApiDeps;

  constructor(deps: ApiDeps) {
    this.#deps = deps;
  }

  list(): Promise<QueueState[]> {
    return this.#deps.queue.states();
  }

  /**
   * Lists unfinished jobs of a queue, oldest first. Throws error 404 if the queue does not exist,
   * error 124 after a timeout.
   */
  async jobs(queue: string, filter: JobFilter) {
    if (!queueNames.includes(queue)) throw refuse('notFound', detail('noQueue'));
    const results = await listWaitingJobs(this.#deps.db, queue, filter);
    return results.map((job) => ({ ...job, ...textIds(job) }));
  }
}

/** Returns the ids of a job as texts, so that large ids stay exact in JSON. */
function textIds({ pushId, batchId, messageId }: WaitingJob) {
  const text = (id: number | null) => (id === null ? null : String(id));
  return { pushId: text(pushId), batchId: text(batchId), messageId: text(messageId) };
}

/** Maximum number of apps to search, because each needs searches in several indexes. */
const maxApps = 1000;

/** Finds apps, pushes, installations and users by their ids (protocol/admin-api.md#search). */
export class SearchService {
  readonly #deps: ApiDeps;

  constructor(deps: ApiDeps) {
    this.#deps = deps;
  }

  /**
   * Searches one app, or the first 1,000 apps of the operator. Only the role operator and above
   * find users. Throws error 403 if the operator may not use the app.
   */
  async search(operator: Operator, q: string, app: string | undefined): Promise<Hit[]> {
    if (app !== undefined && !mayUseApp(operator, app))
      throw refuse('forbidden', detail('otherApps'));
    // PostgreSQL refuses NUL, so no object has such an id.
    if (q.includes('\0')) return [];
    const { db } = this.#deps;
    const all = app === undefined ? (operator.apps ?? (await listAppIds(db))) : [app];
    const apps = all.slice(0, maxApps);
    const found = await Promise.all([
      app === undefined ? searchApps(db, operator.apps, q) : [],
      searchPushes(db, apps, q),
      searchInstallations(db, apps, q),
      hasRole(operator.role, 'operator') ? searchUsers(db, apps, q) : [],
    ]);
    return found.flat();
  }
}
