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
import type { Push } from '../domain/pushes/record.ts';
import type { ForecastText, TraceText } from '../domain/texts/texts.ts';

/** A push as far as its rules depend on it: also one that is explained and not sent. */
export interface RuledPush {
  app: App;
  push: Pick<Push, 'pushOrder' | 'createdAt' | 'expiresAt'>;
  router: Routing;
  nowMs: number;
}

/** What rules ask of the router of a push (`connectors/routing.ts`). */
export interface Routing {
  /** Returns the profiles of the app that serve a limited number of devices per push. */
  massLimits(): ProfileLimit[];
  /** Returns the route of devices with these traits. */
  routeOf(
    traits: string,
    read: (traits: string) => RoutingKey,
  ): { connector: ConnectorId; profile: string };
}

/**
 * Profile that serves a limited number of devices per push; `error` is the status of a larger one.
 */
export interface ProfileLimit {
  connector: ConnectorId;
  profile: string;
  devices: number;
  error: string;
}

/** An entry of the list of rules. */
export interface PushRule {
  /** Returns what the rule does to a push; undefined for a push that does not use the rule. */
  of(push: RuledPush): Rule | undefined;
  /**
   * Returns a further condition over `installation` for the targets of a push, with the text of the
   * caller that asked for it; undefined for a push that does not use the rule. `targets` writes the
   * condition without the rule.
   */
  narrow?(
    pushOrder: PushOrder,
    targets: () => string,
  ): { text: string; condition: string } | undefined;
}

/**
 * What one rule does to one push. Planning calls the members in the order of this interface, the
 * dry run calls `forecast`, and the explanation of one device calls `explain`. All are optional. An
 * object belongs to one job of planning.
 */
export interface Rule {
  /** The rule does nothing to a push to this many devices or fewer; 0 by default. */
  aboveDevices?: number;

  /** Decides before the first page whether the push is sent; undefined lets it pass. */
  admit?(scope: AdmissionScope): Promise<Stop | undefined>;
  /** Opens the start that is planned next, of a push that has several. At most one rule has it. */
  start?(scope: StartScope): Promise<PlannedStart>;

  /** Reads the time zone of each device with its traits. */
  readsZones?: boolean;
  /** Returns what devices with these traits have in common in a batch, besides their route. */
  group?(traits: string): BatchGroup;
  /** Leaves out targets of a page, in the transaction that writes it. */
  claim?(tx: Handle, push: PushKey, page: TargetPage): Promise<TargetPage>;
  /** Adds the targets of a page to counts on the record, in the same transaction. */
  count?(tx: Handle, push: PushKey, page: TargetPage): Promise<void>;
  /** Changes the batches of a page, in the same transaction. */
  batches?(tx: Handle, push: PushKey, page: PageOfBatches): PageOfBatches | Promise<PageOfBatches>;
  /** Adds the batches of a page, as all rules left them, to counts on the record. */
  record?(tx: Handle, push: PushKey, page: PageOfBatches): Promise<void>;
  /** Returns what a page that was written adds to the metrics; `size` is its number of targets. */
  tally?(page: PageOfBatches, size: number): Tally[];

  /** Says what the rule would do, and writes nothing. */
  forecast?(scope: ForecastScope): Promise<RuleForecast> | RuleForecast;
  /** Says what the rule did, or would do, to a device that the push has or would have. */
  explain?(trace: RuleTrace): Promise<RuleExplanation> | RuleExplanation;
}

export interface PushKey {
  appId: string;
  id: number;
}

export interface AdmissionScope {
  db: Database;
  push: Push;
  /** False for the later starts of a push that has several. */
  isFirstStart: boolean;
  /** Reads the targets again, from the first one. */
  pages(): AsyncIterable<TargetPage>;
}

/** How a push ends, or waits, instead of being sent. */
export interface Stop {
  /** Writes the new state; false if the push is not in the state to get it, and is sent. */
  write(tx: Handle): Promise<boolean>;
  /** Recipients that it counts as `failed`. */
  failed?: ReadonlyMap<ConnectorId, number>;
}

export interface StartScope {
  db: Database;
  /** Database that scans read. */
  scanDb: Database;
  push: Push;
  /** Condition over `installation` for all targets of the push. */
  targets: SqlCondition;
}

/** One start of a push: some of its targets, which are planned from the first page to the last. */
export interface PlannedStart {
  /** The start is not the first one. */
  isLater: boolean;
  /** Its time has not come; the other members mean nothing then. */
  waitsUntil?: Date;
  /** Its targets among those of the push, as a condition; null for no targets. */
  part: ((add: (value: unknown) => string) => string) | null;
  /** Time of the next start; null for the last one. */
  next: Date | null;
  /** Writes how far the start is planned; false if another dispatcher plans the push. */
  advance(tx: Handle, push: PushKey, step: StartStep): Promise<boolean>;
}

export interface StartStep {
  /** Cursors: the highest id of an installation that was planned before this page, and with it. */
  from: number;
  through: number;
  devices: number;
  isLast: boolean;
}

/** Targets of one page. */
export interface TargetPage {
  size: number;
  /** The highest id of an installation; 0 without any. */
  lastId: number;
  /** Ids of installations in their order, by their traits as one text (`parseTraits`). */
  idsByTraits: Map<string, number[]>;
}

/** Returns the ids of all targets of a page in their order. */
export const idsOf = ({ idsByTraits }: TargetPage): number[] =>
  [...idsByTraits.values()].flat().sort((one, other) => one - other);

/** Returns a page without the targets that a test does not hold for. */
export function keepTargets(page: TargetPage, isKept: (id: number) => boolean): TargetPage {
  const idsByTraits = new Map<string, number[]>();
  let size = 0;
  for (const [traits, ids] of page.idsByTraits) {
    const kept = ids.filter(isKept);
    size += kept.length;
    if (kept.length > 0) idsByTraits.set(traits, kept);
  }
  return { ...page, size, idsByTraits };
}

/** What the recipients of a batch have in common besides their route. */
export type BatchGroup = Partial<Pick<NewBatch, 'language' | 'quiet'>>;

/** Batches of one page of targets. */
export interface PageOfBatches {
  /** Batches to send. */
  batches: NewBatch[];
  /** Batches whose recipients have an outcome when they are written. */
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
  const failures = recipients.map((installation) => ({
    installation,
    outcome,
    status: 0,
    reason,
    invalidAsOfMs: null,
  }));
  return {
    batch: { ...batch, settled: { codes, totals: { [outcome]: recipients.length } } },
    outcome,
    failures,
  };
}

/** Counts the recipients of batches that a test holds for. */
export const recipientsOf = (
  batches: readonly NewBatch[],
  test = (_batch: NewBatch) => true,
): number => batches.reduce((sum, batch) => sum + (test(batch) ? batch.recipients.length : 0), 0);

/** Recipients that a metric of rules counts; its label `app` is added. */
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
  /** Devices by `connector/profile`. */
  byProfile: ReadonlyMap<string, number>;
  /** Null: the push is sent at once. */
  pushTime: Date | null;
}

export interface RuleForecast {
  /** What the rule would refuse, shorten or delay. */
  limits?: ForecastText[];
  /** Members of the reply to a dry run. */
  members?: JsonObject;
}

export interface RuleTrace {
  db: Database;
  push: Push;
  /** Undefined for a device that was deleted. */
  device: TracedDevice | undefined;
  batch: TracedBatch | undefined;
  outcome: Outcome | null;
  /** The device is a target that is not planned yet. */
  isAhead: boolean;
}

export interface RuleExplanation {
  texts: TraceText[];
  /** Members of the reply. */
  members?: JsonObject;
}
