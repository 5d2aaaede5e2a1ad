import type { Handle } from '../../../shared/db/pool.ts';
import { isFrozen } from '../../../shared/db/tables/apps.ts';
import { describeGatewayFailures, listBreakers } from '../../../shared/db/tables/gateways.ts';
import { readProgress, readTotals } from '../../../shared/db/tables/push-progress.ts';
import { readCounts } from '../../../shared/db/tables/push-reports.ts';
import {
  countPushes,
  findPushByPublicId,
  listPushes,
  listPushGroup,
} from '../../../shared/db/tables/pushes.ts';
import { readReceipts } from '../../../shared/db/tables/receipts.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { refuse } from '../../../shared/domain/errors/errors.ts';
import type { JsonObject } from '../../../shared/domain/json.ts';
import { type ConnectorId, connectorIds } from '../../../shared/domain/labels.ts';
import { addTotals, sumTotals } from '../../../shared/domain/outcome.ts';
import { type LanguageCounts, replyLanguages } from '../../../shared/domain/pushes/languages.ts';
import { addReceipts, noReceipts, type ReceiptTotals } from '../../../shared/domain/pushes/push.ts';
import {
  allTotals,
  type ConnectorTotals,
  eventsOf,
  operatorStatus,
  type Push,
  toPublicRecord,
} from '../../../shared/domain/pushes/record.ts';
import { replyVariables, type VariableCounts } from '../../../shared/domain/pushes/variables.ts';
import { compileRowCondition } from '../../../shared/query/list/list.ts';
import { pushRecordClass } from '../../../shared/query/schema.ts';
import { masterViewer } from '../../../shared/query/viewer.ts';
import type { ApiDeps } from '../deps.ts';
import { readRecalls } from './recall-records.ts';

/** Query of a list of records. */
export interface ListRequest {
  limit: number;
  skip: number;
  oldestFirst: boolean;
  isCounted: boolean;
  /** Condition, as JSON or parsed. */
  where?: unknown;
}

/** Data from other tables that records contain, by push id. */
interface RecordDetails {
  receipts: Map<number, ReceiptTotals>;
  /** Failures of the gateways that open pushes wait for. */
  gatewayFailures: Map<number, string>;
  /** Number of recipients by language (for pushes with translations) and by variable. */
  languages: Map<number, LanguageCounts>;
  variables: Map<number, VariableCounts>;
  /** Newest recall of each push. */
  recalls: Map<number, JsonObject>;
}

/**
 * Reads push records (protocol/push-records.md#record-fields and
 * protocol/push-records.md#look-up-a-record).
 */
export class PushRecordService {
  readonly #deps: ApiDeps;

  constructor(deps: ApiDeps) {
    this.#deps = deps;
  }

  /**
   * Finds a record by its objectId or its custom notification_id. Throws error 101 (status 404) if
   * the record does not exist.
   */
  async get(app: App, publicId: string): Promise<JsonObject> {
    const record = await this.#findVisible(app.appId, publicId);
    return record.objectId === publicId ? this.#toPublic(record) : this.#sumGroup(record);
  }

  /**
   * Lists the records that match `where`, except cancelled pushes. Throws as `parseWhere`, and 124
   * after a timeout.
   */
  async list(app: App, request: ListRequest): Promise<JsonObject> {
    const { appId } = app;
    const filter = compileRowCondition(request.where, pushRecordClass, masterViewer(appId));
    const read = async (db: Handle) => ({
      records: request.limit === 0 ? [] : await listPushes(db, appId, { ...request, filter }),
      count: request.isCounted ? await countPushes(db, appId, filter) : undefined,
    });
    // A condition may read all records of the app, so the limits of client queries apply.
    const { records, count } = filter
      ? await this.#deps.queries.readFresh({ app, isMaster: true }, read)
      : await read(this.#deps.db);
    const details = await this.#detailsOf(app.appId, records);
    const results = await Promise.all(records.map((record) => this.#toPublic(record, details)));
    return count === undefined ? { results } : { results, count };
  }

  /**
   * Returns a record for an operator, even if it is cancelled. Throws error 101 (status 404) if it
   * does not exist.
   */
  async getForOperator(appId: string, publicId: string): Promise<JsonObject> {
    const record = await this.find(appId, publicId);
    return { ...(await this.#toPublic(record)), status: operatorStatus(record) };
  }

  /** Returns records for an operator in the given order, including cancelled records. */
  async describeForOperator(appId: string, records: readonly Push[]): Promise<JsonObject[]> {
    const details = await this.#detailsOf(appId, records);
    return Promise.all(
      records.map(async (record) => ({
        ...(await this.#toPublic(record, details)),
        status: operatorStatus(record),
      })),
    );
  }

  /**
   * Returns the progress of a push, including batches in flight (protocol/admin-api.md#progress).
   */
  async progress(appId: string, publicId: string): Promise<JsonObject> {
    return this.progressOf(await this.find(appId, publicId));
  }

  /** Returns the progress of a push that the caller has just read. */
  async progressOf(record: Push): Promise<JsonObject> {
    const { appId } = record;
    const {
      totals: connectors,
      open,
      repeats,
    } = record.totals
      ? { totals: record.totals, open: {}, repeats: record.repeats }
      : await readProgress(this.#deps.db, appId, record.id);
    const outcomes = allTotals(connectors);
    const settled = sumTotals(outcomes);
    const seconds = record.firstSentAt
      ? (this.#endOf(record) - record.firstSentAt.getTime()) / 1000
      : 0;
    const blocked = record.totals ? undefined : await this.#blockedOf(record, open);
    const perSecond = seconds > 0 && blocked !== 'all' ? Math.round(settled / seconds) : 0;
    // Planning may have added devices since the record was read.
    const remaining = Math.max(0, record.devices - settled);
    const secondsLeft =
      perSecond > 0 && blocked === undefined ? Math.ceil(remaining / perSecond) : null;
    const receipts = (await this.#receiptsOf(appId, [record])).get(record.id) ?? noReceipts;
    return {
      status: operatorStatus(record),
      devices: record.devices,
      planned: record.isPlanned,
      outcomes,
      connectors,
      open,
      repeats,
      delivered: receipts.delivered,
      clicked: receipts.clicked,
      ...(record.pushOrder.hasPushId ? { events: eventsOf(receipts) } : {}),
      acked: record.acked,
      perSecond,
      secondsLeft: record.totals ? 0 : secondsLeft,
    };
  }

  /**
   * Returns whether `all` or `some` recipients of an open push wait for an indefinite time. They
   * wait for a person (pause, freeze) or for a gateway whose breaker is not closed.
   */
  async #blockedOf(
    { appId, state }: Push,
    open: Partial<Record<ConnectorId, number>>,
  ): Promise<'all' | 'some' | undefined> {
    const { db } = this.#deps;
    if (state === 'paused' || (await isFrozen(db, appId))) return 'all';
    const breakers = await listBreakers(db, { appId });
    const stopped = new Set(
      breakers.flatMap((one) => (one.state === 'closed' ? [] : [one.connector])),
    );
    const waiting = connectorIds.filter((id) => (open[id] ?? 0) > 0);
    const blocked = waiting.filter((id) => stopped.has(id));
    if (blocked.length === 0) return undefined;
    return blocked.length === waiting.length ? 'all' : 'some';
  }

  #endOf(record: Push): number {
    return record.totals ? record.updatedAt.getTime() : this.#deps.clock.now();
  }

  /**
   * Finds any record, even a cancelled record. Throws error 101 (status 404) if it does not exist.
   */
  async find(appId: string, publicId: string): Promise<Push> {
    const record = /^[A-Za-z0-9]{1,16}$/.test(publicId)
      ? await findPushByPublicId(this.#deps.db, appId, publicId)
      : undefined;
    if (!record) throw refuse('objectNotFound');
    return record;
  }

  /**
   * Finds a record for clients. For them, a cancelled push does not exist
   * (protocol/push-records.md#status).
   */
  async #findVisible(appId: string, publicId: string): Promise<Push> {
    const record = await this.find(appId, publicId);
    if (record.state === 'cancelled') throw refuse('objectNotFound');
    return record;
  }

  /**
   * Returns the newest record of a custom id, with the sums of all pushes that share the id
   * (protocol/push-records.md#records-with-one-custom-id).
   */
  async #sumGroup(newest: Push): Promise<JsonObject> {
    const { db } = this.#deps;
    const group = await listPushGroup(db, newest.appId, newest.notificationId);
    const sums: ConnectorTotals = {};
    let repeats = 0;
    for (const record of group) {
      const counted = await this.#totalsOf(record);
      const { totals } = counted;
      repeats += counted.repeats;
      for (const connector of connectorIds) {
        const counts = totals[connector];
        if (counts) sums[connector] = addTotals(sums[connector] ?? {}, counts);
      }
    }
    const sumOf = (count: (record: Push) => number) =>
      group.reduce((sum, record) => sum + count(record), 0);
    const devices = sumOf((record) => record.devices);
    const acked = sumOf((record) => record.acked);
    const displaced = sumOf((record) => record.displaced);
    const { receipts: byPush, gatewayFailures } = await this.#detailsOf(newest.appId, group);
    const receipts = [...byPush.values()];
    return toPublicRecord({ ...newest, devices, acked, repeats, displaced }, sums, {
      receipts: receipts.reduce(addReceipts, { ...noReceipts }),
      gatewayFailure: [...gatewayFailures.values()][0] ?? '',
    });
  }

  #receiptsOf(appId: string, records: readonly Push[]): Promise<Map<number, ReceiptTotals>> {
    return readReceipts(
      this.#deps.db,
      appId,
      records.map(({ id }) => id),
    );
  }

  /** Reads the details of several records at once. */
  async #detailsOf(appId: string, records: readonly Push[]): Promise<RecordDetails> {
    const open = records.filter(({ totals }) => totals === null).map(({ id }) => id);
    const receipts = await this.#receiptsOf(appId, records);
    const gatewayFailures = await describeGatewayFailures(this.#deps.db, appId, open);
    const languages = await this.#countsOf(appId, 'languages', records);
    return {
      receipts,
      gatewayFailures,
      languages,
      variables: await this.#countsOf(appId, 'variables', records),
      recalls: await readRecalls(this.#deps.db, appId, records),
    };
  }

  async #countsOf(appId: string, column: 'languages' | 'variables', records: readonly Push[]) {
    const ids = records.filter(({ pushOrder }) => pushOrder[column]).map(({ id }) => id);
    return ids.length === 0 ? new Map() : readCounts(this.#deps.db, appId, { column, ids });
  }

  async #toPublic(record: Push, details?: RecordDetails): Promise<JsonObject> {
    const { totals, repeats } = await this.#totalsOf(record);
    const { receipts, gatewayFailures, languages, variables, recalls } =
      details ?? (await this.#detailsOf(record.appId, [record]));
    const document = toPublicRecord({ ...record, repeats }, totals, {
      receipts: receipts.get(record.id) ?? noReceipts,
      gatewayFailure: gatewayFailures.get(record.id) ?? '',
    });
    const { pushOrder } = record;
    const recall = recalls.get(record.id);
    return {
      ...document,
      ...(recall ? { recall } : {}),
      ...(pushOrder.languages ? { languages: replyLanguages(languages.get(record.id) ?? {}) } : {}),
      ...(pushOrder.variables ? { variables: replyVariables(variables.get(record.id) ?? {}) } : {}),
    };
  }

  /** Returns the stored counts of a closed record. Counts those of an open record. */
  async #totalsOf(record: Push): Promise<{ totals: ConnectorTotals; repeats: number }> {
    const { totals, repeats } = record;
    return totals ? { totals, repeats } : await readTotals(this.#deps.db, record);
  }
}
