import { Batcher } from '../../../shared/batcher.ts';
import { isStatementTimeout } from '../../../shared/db/limits/database-errors.ts';
import { runInLane } from '../../../shared/db/limits/timed-pool.ts';
import type { Handle } from '../../../shared/db/pool.ts';
import { type DeviceKind, haveDevices } from '../../../shared/db/tables/audience.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import type { PushOrder } from '../../../shared/domain/pushes/push.ts';
import type { Detail } from '../../../shared/domain/texts/texts.ts';
import { pointTarget } from '../../../shared/query/targets/point.ts';
import { isUnselective, Params, targetCondition } from '../../../shared/query/targets/targets.ts';
import { QueueFull } from '../../../shared/semaphore.ts';
import type { ApiDeps } from '../deps.ts';

/** Limit of a search and of its wait for a connection. After it, the push is accepted (`findUnserved`). */
const searchTimeoutMs = 200;
const searchWaitMs = 100;

/** Devices of a kind that are compared with the condition of a push. */
const comparedDevices = 1000;

/** Apps whose devices one statement looks up, and limits of those that wait for theirs. */
const batchLimits = { size: 100, concurrency: 1, maxWaiting: 1000, maxWaitMs: searchWaitMs };
/** Lane of the batches, which belong to no app: app ids have no blanks. */
const batchLane = 'device kinds';

/** Devices that no profile serves. */
export interface UnservedGroup {
  kinds: { deviceType: string; vendor: string | null }[];
  /** SQL that selects them among the installations of these kinds. */
  condition: string;
  message: Detail;
}

/** Groups of one app. */
interface Look {
  appId: string;
  groups: UnservedGroup[];
}

/**
 * Searches the recipients of a push for devices that no profile serves. Most apps have no such device, which an index
 * look-up tells; pushes that arrive together share its statement.
 */
export class UnservedDevices {
  readonly #deps: ApiDeps;
  readonly #batcher: Batcher<Look, UnservedGroup[]>;

  constructor(deps: ApiDeps) {
    this.#deps = deps;
    this.#batcher = new Batcher({
      ...batchLimits,
      fairBy: ({ appId }) => appId,
      run: (looks) => runInLane(batchLane, () => this.#existing(looks)),
    });
  }

  /**
   * Returns the first group that has a device among the recipients of the push. Compares at most a thousand devices of each
   * kind with a condition that no index serves, and ends after a fifth of a second. Where that is not enough the push is
   * accepted, and such devices are counted `failed` with the message on the record.
   */
  async find(app: App, pushOrder: PushOrder, groups: UnservedGroup[]): Promise<UnservedGroup | undefined> {
    if (groups.length === 0) return undefined;
    try {
      const existing = await this.#batcher.run({ appId: app.appId, groups });
      return existing.length === 0 ? undefined : await this.#search(app, pushOrder, existing);
    } catch (error) {
      if (isStatementTimeout(error) || error instanceof QueueFull) return undefined;
      throw error;
    }
  }

  /** Returns the groups of each look that have any device. */
  async #existing(looks: Look[]): Promise<UnservedGroup[][]> {
    const kinds = new Map<string, DeviceKind>();
    for (const { appId, groups } of looks)
      for (const kind of groups.flatMap((group) => group.kinds))
        kinds.set(keyOf(appId, kind), { appId, ...kind });
    const found = await this.#deps.admissionDb.transaction((tx) => haveDevices(tx, [...kinds.values()]), {
      statementTimeoutMs: searchTimeoutMs,
    });
    const existing = new Set([...kinds.keys()].filter((_, i) => found[i]));
    return looks.map(({ appId, groups }) =>
      groups.filter((group) => group.kinds.some((kind) => existing.has(keyOf(appId, kind)))),
    );
  }

  async #search(app: App, pushOrder: PushOrder, groups: UnservedGroup[]): Promise<UnservedGroup | undefined> {
    const { queries, clock } = this.#deps;
    const params = new Params();
    const target = targetCondition(app, pushOrder, { params, nowMs: clock.now() });
    const branches = groups.flatMap((group, i) => {
      const wanted = `${target} AND ${kindsCondition(group, params)} AND ${group.condition}`;
      return sourcesOf(app, pushOrder, { group, params }).map(
        (source) => `WHEN EXISTS (SELECT FROM ${source} WHERE ${wanted}) THEN ${i}`,
      );
    });
    const search = (tx: Handle) =>
      tx.query<{ found: number | null }>(`SELECT CASE ${branches.join(' ')} END AS found`, params.values);
    const limit = { timeoutMs: searchTimeoutMs, maxWaitMs: searchWaitMs };
    // The search counts against the app's share of client queries, also with the master key.
    const { rows } = await queries.read({ app, isMaster: false }, search, limit);
    const found = rows[0]?.found;
    return typeof found === 'number' ? groups[found] : undefined;
  }
}

/**
 * Returns the tables to search, one after the other: some devices of the group, then all where an index leads to the
 * recipients.
 */
function sourcesOf(
  app: App,
  pushOrder: PushOrder,
  { group, params }: { group: UnservedGroup; params: Params },
): string[] {
  const all = 'installation';
  if (pushOrder.target.kind === 'devices' || pointTarget(app.appId, pushOrder)) return [all];
  const some = someDevices(app, group, params);
  return isUnselective(pushOrder) ? [some] : [some, all];
}

const keyOf = (appId: string, { deviceType, vendor }: UnservedGroup['kinds'][number]): string =>
  `${appId} ${deviceType} ${vendor ?? ''}`;

const kindCondition = ({ deviceType, vendor }: UnservedGroup['kinds'][number], params: Params): string =>
  `device_type = ${params.add(deviceType)}${vendor === null ? '' : ` AND vendor = ${params.add(vendor)}`}`;

const kindsCondition = ({ kinds }: UnservedGroup, params: Params): string =>
  `(${kinds.map((kind) => kindCondition(kind, params)).join(' OR ')})`;

/** Returns a table expression of some devices of each kind. Sorted, they come from the index on the kinds. */
function someDevices({ appId }: App, { kinds }: UnservedGroup, params: Params): string {
  const parts = kinds.map(
    (kind) =>
      `(SELECT * FROM installation WHERE app_id = ${params.add(appId)} AND ${kindCondition(kind, params)}
         ORDER BY vendor LIMIT ${comparedDevices})`,
  );
  return `(${parts.join(' UNION ALL ')}) AS installation`;
}
