import type { Database, Handle } from '../db/pool.ts';
import type { SqlCondition } from '../db/tables/audience.ts';
import type { NewBatch } from '../db/tables/batches.ts';
import type { RecipientFailure } from '../db/tables/push-failures.ts';
import type { TracedBatch, TracedDevice } from '../db/tables/push-reports.ts';
import type { App } from '../domain/apps/app.ts';
import type { RoutingKey } from '../domain/installations/installation.ts';
import type { JsonObject } from '../domain/json.ts';
import type { ConnectorId } from '../domain/labels.ts';
import { type Outcome, outcomeCode } from '../domain/outcome.ts';
import type { PushOrder } from '../domain/pushes/push.ts';
import type { OpenPush } from '../domain/pushes/record.ts';
import type { ForecastText, TraceText } from '../domain/texts/texts.ts';
import type { EventData } from '../domain/webhooks/event-types.ts';

/**
 * The parts of a push that its rules depend on. The push may also be a dry run or an explanation
 * that is never sent.
 */
export interface RuledPush {
  app: App;
  push: Pick<OpenPush, 'pushOrder' | 'createdAt' | 'expiresAt'>;
  router: Routing;
  nowMs: number;
}

/** Functions of a push's router that rules need (`connectors/routing.ts`). */
export interface Routing {
  /** Returns the profiles of the app that serve a limited number of devices per push. */
  massLimits(): ProfileLimit[];
  /** Returns the route of devices with this routing key. */
  routeOf(
    routingKey: string,
    read: (routingKey: string) => RoutingKey,
  ): { connector: ConnectorId; profile: string };
}

/**
 * Profile that serves a limited number of devices per push. `error` becomes the status of a larger
 * push.
 */
export interface ProfileLimit {
  connector: ConnectorId;
  profile: string;
  devices: number;
  error: string;
}

/** A kind of rule, in the list of all rules. */
export interface PushRule {
  /** Returns the rule of a push. Returns undefined if the push does not use it. */
  of(push: RuledPush): Rule | undefined;
  /**
   * Returns an additional condition over `installation` for the targets of a push, with the option
   * of the push that requires it. Returns undefined if the push does not use the rule. `targets`
   * returns the condition without the rule.
   */
  narrow?(
    pushOrder: PushOrder,
    targets: () => string,
  ): { text: string; condition: string } | undefined;
}

/**
 * One rule of one push. Planning calls the members in the order of this interface, the dry run
 * calls `forecast`, and the explanation of one device calls `explain`. All members are optional. An
 * object belongs to one planning job.
 */
export interface Rule {
  /** The rule has no effect on a push to this many devices or fewer. 0 by default. */
  aboveDevices?: number;

  /** Decides before the first page whether the push is sent. Returns undefined to allow it. */
  admit?(scope: AdmissionScope): Promise<Stop | undefined>;
  /** Opens the next start of a push with several starts. At most one rule has this member. */
  start?(scope: StartScope): Promise<PlannedStart>;

  /** True if the time zone of each device is read with its routing key. */
  readsZones?: boolean;
  /** Returns values that all devices of a batch share, in addition to their route. */
  group?(routingKey: string): BatchGroup;
  /** Removes targets from a page, in the transaction that writes it. */
  claim?(tx: Handle, push: PushKey, page: TargetPage): Promise<TargetPage>;
  /** Adds the targets of a page to counts in the record, in the same transaction. */
  count?(tx: Handle, push: PushKey, page: TargetPage): Promise<void>;
  /** Changes the batches of a page, in the same transaction. */
  batches?(tx: Handle, push: PushKey, page: PageOfBatches): PageOfBatches | Promise<PageOfBatches>;
  /** Adds the final batches of a page, after all rules, to counts in the record. */
  record?(tx: Handle, push: PushKey, page: PageOfBatches): Promise<void>;
  /**
   * Returns the values that a written page adds to the metrics. `size` is its number of targets.
   */
  tally?(page: PageOfBatches, size: number): Tally[];

  /** Returns what the rule would do. Writes nothing. */
  forecast?(scope: ForecastScope): Promise<RuleForecast> | RuleForecast;
  /** Explains what the rule did, or would do, to a target device. */
  explain?(trace: RuleTrace): Promise<RuleExplanation> | RuleExplanation;
}

export interface PushKey {
  appId: string;
  id: number;
}

export interface AdmissionScope {
  db: Database;
  push: OpenPush;
  /** False for later starts of a push with several starts. */
  isFirstStart: boolean;
  /** Reads the targets again, from the first page. */
  pages(): AsyncIterable<TargetPage>;
}

/** How a push ends or waits instead of being sent. */
export interface Stop {
  /**
   * Writes the new state. Returns false if the push's state does not allow it. The push is then
   * sent.
   */
  write(tx: Handle): Promise<boolean>;
  /** Recipients that are counted as `failed`. */
  failed?: ReadonlyMap<ConnectorId, number>;
  /** The event that reports it. */
  event:
    | { type: 'push.failed'; data: EventData<'push.failed'> }
    | { type: 'push.waiting_approval'; data: EventData<'push.waiting_approval'> };
}

export interface StartScope {
  db: Database;
  /** Database for scans. */
  scanDb: Database;
  push: OpenPush;
  /** Condition over `installation` for all targets of the push. */
  targets: SqlCondition;
}

/** One start of a push: some of its targets, planned from the first page to the last. */
export interface PlannedStart {
  /** True if the start is not the first. */
  isLater: boolean;
  /** Set if the time of the start has not come. The other members are then meaningless. */
  waitsUntil?: Date;
  /**
   * Condition that selects the start's targets among the targets of the push. Null for no targets.
   */
  part: ((add: (value: unknown) => string) => string) | null;
  /** Time of the next start. Null for the last start. */
  next: Date | null;
  /** Writes the progress of the start. Returns false if another dispatcher plans the push. */
  advance(tx: Handle, push: PushKey, step: StartStep): Promise<boolean>;
}

export interface StartStep {
  /** Cursors: the highest id that was planned before this page, and the highest id including it. */
  from: number;
  through: number;
  devices: number;
  isLast: boolean;
}

/** Targets of one page. */
export interface TargetPage {
  size: number;
  /** The highest id of an installation. 0 for an empty page. */
  lastId: number;
  /** Ids of installations in ascending order, by routing key (`parseRoutingKey`). */
  idsByRoutingKey: Map<string, number[]>;
}

/** Returns the ids of all targets of a page in ascending order. */
export const idsOf = ({ idsByRoutingKey }: TargetPage): number[] =>
  [...idsByRoutingKey.values()].flat().sort((one, other) => one - other);

/** Returns a page with only the targets for which `isKept` returns true. */
export function keepTargets(page: TargetPage, isKept: (id: number) => boolean): TargetPage {
  const idsByRoutingKey = new Map<string, number[]>();
  let size = 0;
  for (const [routingKey, ids] of page.idsByRoutingKey) {
    const kept = ids.filter(isKept);
    size += kept.length;
    if (kept.length > 0) idsByRoutingKey.set(routingKey, kept);
  }
  return { ...page, size, idsByRoutingKey };
}

/** Values that the recipients of a batch share, in addition to their route. */
export type BatchGroup = Partial<Pick<NewBatch, 'language' | 'quiet'>>;

/** Batches of one page of targets. */
export interface PageOfBatches {
  /** Batches to send. */
  batches: NewBatch[];
  /** Batches whose recipients already have an outcome when they are written. */
  unsent: UnsentBatch[];
}

/** Batch that ends when it is written, with one outcome for all its recipients. */
export interface UnsentBatch {
  batch: NewBatch;
  outcome: Outcome;
  failures: RecipientFailure[];
}

/** Ends all recipients of a new batch with one outcome and reason. */
export function endUnsent(batch: NewBatch, outcome: Outcome, reason: string): UnsentBatch {
  const { recipients } = batch;
  const codes = new Uint8Array(recipients.length).fill(outcomeCode(outcome));
  const failures = recipients.map((installation) => ({ installation, outcome, status: 0, reason }));
  return {
    batch: { ...batch, settled: { codes, totals: { [outcome]: recipients.length } } },
    outcome,
    failures,
  };
}

/** Counts the recipients of the batches for which `test` returns true. */
export const recipientsOf = (
  batches: readonly NewBatch[],
  test = (_batch: NewBatch) => true,
): number => batches.reduce((sum, batch) => sum + (test(batch) ? batch.recipients.length : 0), 0);

/** Recipients that a metric of rules counts. The label `app` is added. */
export interface Tally {
  metric: 'redrivenRecipients' | 'localRecipients' | 'quietRecipients' | 'deviceCapped';
  labels: Record<string, string>;
  recipients: number;
}

export interface ForecastScope {
  tx: Handle;
  /** Condition over `installation` for the targets. */
  targets: SqlCondition;
  devices: number;
  /** Number of devices by `connector/profile`. */
  byProfile: ReadonlyMap<string, number>;
  /** Null if the push is sent at once. */
  pushTime: Date | null;
}

export interface RuleForecast {
  /** Texts about what the rule would refuse, shorten or delay. */
  limits?: ForecastText[];
  /** Members of the reply to a dry run. */
  members?: JsonObject;
}

export interface RuleTrace {
  db: Database;
  push: OpenPush;
  /** Undefined if the device was deleted. */
  device: TracedDevice | undefined;
  batch: TracedBatch | undefined;
  outcome: Outcome | null;
  /** True if the device is a target that is not planned yet. */
  isAhead: boolean;
}

export interface RuleExplanation {
  texts: TraceText[];
  /** Members of the reply. */
  members?: JsonObject;
}
