import { dayMs } from '../../clock.ts';
import { type PointTarget, uniqueColumns } from '../../db/tables/point-devices.ts';
import {
  localeExpression,
  routingExpressions,
  routingKeyText,
  zoneExpression,
} from '../../db/tables/routing-keys.ts';
import { isHiddenMember, isIdentifying } from '../../domain/admin/masking.ts';
import type { App } from '../../domain/apps/app.ts';
import { storedFormsOfToken } from '../../domain/installations/identity.ts';
import { isJsonObject, type Json } from '../../domain/json.ts';
import { appleDeviceTypes } from '../../domain/labels.ts';
import {
  type ActivityTarget,
  type ActivityTokenKind,
  tokensOfTarget,
  updateTokenLifeMs,
} from '../../domain/pushes/live-activity.ts';
import type { PushOrder } from '../../domain/pushes/push.ts';
import { narrowTargets } from '../../rules/rules.ts';
import type { Condition } from '../condition.ts';
import { distanceOperators } from '../parse/geo.ts';
import { parseWhere } from '../parse/where.ts';
import { installationClass } from '../schema.ts';
import { Params } from '../sql/params.ts';
import { compileWhere } from '../sql/where.ts';
import { type MemberUse, masterViewer, type Viewer } from '../viewer.ts';
import { recallCondition } from './recall.ts';
import { failureConditions, redriveCondition } from './redrive.ts';

export { Params };

/** The part of an app that target conditions need. */
type TargetApp = Pick<App, 'appId'> & { options: Pick<App['options'], 'installationValidityDays'> };

/**
 * Checks the `where` of a push when the push is accepted. Also checks that the sender may read the
 * fields of its variables, because a dry run counts the devices that have a field. Throws as
 * `parseWhere`.
 */
export function checkTargets(pushOrder: PushOrder, viewer: Viewer): void {
  viewer.checkUses?.(
    Object.values(pushOrder.variables ?? {}).map(({ field }) => useOfField(field)),
  );
  if (pushOrder.target.kind === 'query')
    parseWhere(pushOrder.target.where, installationClass, viewer);
}

const useOfField = (field: string): MemberUse => ({
  className: installationClass.name,
  member: field.split('.', 1)[0] ?? field,
  use: 'other',
  isInner: false,
});

/**
 * Returns the SQL condition for active installations: updated within the app's validity period
 * (protocol/installations.md#idle-installations). For imported installations the period starts at
 * the import.
 */
function activeCondition(
  app: TargetApp,
  { params, nowMs }: { params: Params; nowMs: number },
): string {
  const since = params.add(activeSince(app, nowMs));
  return `(updated_at >= ${since} OR imported_at >= ${since})`;
}

/** Returns the oldest `updatedAt` that an active installation can have. */
export const activeSince = (app: TargetApp, nowMs: number): Date =>
  new Date(nowMs - app.options.installationValidityDays * dayMs);

/**
 * Returns the SQL condition over `installation` for the devices that a push targets. Targets are
 * valid and active. They match `where` and channels, are listed by id, or were not reached by the
 * push that a redrive repeats. The rules of the push narrow the targets further.
 *
 * A redrive skips failures up to the installation id `afterId`. `part` selects the devices of one
 * start, if a push at local time has several starts.
 */
export function targetCondition(
  app: TargetApp,
  pushOrder: PushOrder,
  {
    params,
    nowMs,
    afterId,
    part,
  }: { params: Params; nowMs: number; afterId?: number; part?: Part | undefined },
): string {
  const targets = [
    `app_id = ${params.add(app.appId)}`,
    'valid',
    // A device that became idle after the push may still show its message.
    ...(pushOrder.recall ? [] : [activeCondition(app, { params, nowMs })]),
    ...selectedConditions(app.appId, pushOrder, {
      params,
      ...(afterId === undefined ? {} : { afterId }),
    }),
    ...tokenClauses(app.appId, pushOrder, { params, nowMs }).map(({ condition }) => condition),
  ].join(' AND ');
  const narrowed = narrowTargets(pushOrder, () => targets).map(({ condition }) => condition);
  return [targets, ...narrowed, ...(part ? [part((value) => params.add(value))] : [])].join(
    ' AND ',
  );
}

/** Returns `targetCondition` and the values of its parameters, after those that `params` has. */
export function targetsOf(
  app: TargetApp,
  pushOrder: PushOrder,
  nowMs: number,
  params = new Params(),
): { text: string; values: unknown[] } {
  return { text: targetCondition(app, pushOrder, { params, nowMs }), values: params.values };
}

/**
 * Returns the condition for the Apple devices that match a Live Activity push and have no token for
 * it.
 */
export function appleCondition(
  app: TargetApp,
  pushOrder: PushOrder,
  { params, nowMs }: { params: Params; nowMs: number },
): string {
  const { liveActivity: _, ...anyDevice } = pushOrder;
  return [
    targetCondition(app, anyDevice, { params, nowMs }),
    `device_type = ANY(${params.add(appleDeviceTypes)}::text[])`,
    ...tokenClauses(app.appId, pushOrder, { params, nowMs }).map(
      ({ condition }) => `NOT (${condition})`,
    ),
  ].join(' AND ');
}

/**
 * Builds a condition over `installation` that selects a part of the targets. `add` appends a value
 * to the parameters and returns its placeholder.
 */
export type Part = (add: (value: unknown) => string) => string;

function selectedConditions(
  appId: string,
  { target, redrive, recall }: PushOrder,
  from: { params: Params; afterId?: number },
): string[] {
  if (recall) return [recallCondition(appId, recall, from)];
  if (redrive) return [redriveCondition(appId, redrive, from)];
  return target.kind === 'query'
    ? queryConditions(appId, target, from.params)
    : deviceConditions(target, from.params);
}

function queryConditions(
  appId: string,
  target: Extract<PushOrder['target'], { kind: 'query' }>,
  params: Params,
): string[] {
  // `checkTargets` checked the sender's rights when the push was accepted.
  const parsed = parseWhere(target.where, installationClass, masterViewer(appId));
  const where = compileWhere(parsed, installationClass, params);
  // A device matches if it has any of the channels (protocol/push.md#push-call). The index on
  // channels serves this test.
  const channels =
    target.channels && target.channels.length > 0
      ? [`channels && ${params.add(target.channels)}::text[]`]
      : [];
  return [`(${where})`, ...channels];
}

/**
 * Returns the condition for listed ids. The ids are device tokens for iOS, registration ids if the
 * push names a vendor, and installation or registration ids otherwise
 * (protocol/push.md#push-to-devices).
 */
function deviceConditions(
  target: Extract<PushOrder['target'], { kind: 'devices' }>,
  params: Params,
): string[] {
  if (target.deviceType === 'ios')
    return [
      `device_token = ANY(${params.add(target.deviceIds.flatMap(storedFormsOfToken))}::text[])`,
    ];
  const ids = `${params.add(target.deviceIds)}::text[]`;
  const type = `device_type = ${params.add(target.deviceType)}`;
  if (target.vendor !== null) return [type, `registration_id = ANY(${ids})`];
  return [type, `(installation_id = ANY(${ids}) OR registration_id = ANY(${ids}))`];
}

/** An installation as planning reads it. */
export interface TargetRow {
  id: number;
  /**
   * Routing columns of the device as one text, which `parseRoutingKey` parses. Contains the locale
   * if the push has translations, and the time zone if the push has quiet hours.
   */
  routingKey: string;
}

/** Options of a statement for targets. */
interface TargetOptions {
  /** Selects only these targets. */
  part?: Part | undefined;
  /** Adds the time zone of each device. */
  hasZones?: boolean;
}

interface TargetQuery {
  text: string;
  values: unknown[];
}

/**
 * Returns the planner's statement for the targets above an id: their routing columns, sorted by id.
 * `limit` limits the number of targets (develop/decisions.md#why-pages-of-one-statement).
 */
export function targetQuery(
  app: TargetApp,
  pushOrder: PushOrder,
  from: { afterId: number; nowMs: number; limit?: number } & TargetOptions,
): TargetQuery {
  const params = new Params();
  const condition = targetCondition(app, pushOrder, { params, ...from });
  return {
    text: `SELECT id, ${routingKeySql(pushOrder, from)} AS "routingKey"
             FROM installation
            WHERE ${condition} AND id > ${params.add(from.afterId)}
            ORDER BY id${from.limit === undefined ? '' : ` LIMIT ${params.add(from.limit)}`}`,
    values: params.values,
  };
}

const routingKeySql = ({ languages }: PushOrder, { hasZones = false }: TargetOptions): string =>
  routingKeyText({ hasLocale: Boolean(languages), hasZone: hasZones });

/** Installations of a page that have equal routing columns. */
export interface TargetGroupRow {
  routingKey: string;
  /** Ids of the installations, separated by commas. */
  ids: string;
}

/**
 * Returns the statement for one page of targets above an id, grouped by routing columns. Groups
 * mean far fewer rows for the planner than one row per installation. Used if no index serves the
 * condition (`isUnselective`): each page then continues where the previous page ended.
 */
export function targetPageQuery(
  app: TargetApp,
  pushOrder: PushOrder,
  from: { afterId: number; nowMs: number; size: number } & TargetOptions,
): TargetQuery {
  const params = new Params();
  const { nowMs, part } = from;
  const condition = targetCondition(app, pushOrder, { params, nowMs, part });
  return {
    text: `SELECT ${routingKeySql(pushOrder, from)} AS "routingKey",
      string_agg(id::text, ',') AS ids
             FROM (SELECT * FROM installation
                    WHERE ${condition} AND id > ${params.add(from.afterId)}
                    ORDER BY id LIMIT ${params.add(from.size)}) AS page
            GROUP BY ${[routingExpressions, ...(pushOrder.languages ? [localeExpression] : []), ...(from.hasZones ? [zoneExpression] : [])].join(', ')}`,
    values: params.values,
  };
}

/** Clauses of a Live Activity push. */
type ActivityClauseKind = 'startToken' | 'updateToken' | 'freshToken' | 'broadcast';

/** Returns the oldest report of an update token that has not ended. */
export const updateTokenSince = (nowMs: number): Date => new Date(nowMs - updateTokenLifeMs);

/**
 * Returns the clauses that limit a Live Activity push to devices with a token. A broadcast has no
 * target among the devices, because APNs does not tell who subscribes to a channel.
 */
function tokenClauses(
  appId: string,
  { liveActivity }: PushOrder,
  { params, nowMs }: { params: Params; nowMs: number },
): Clause[] {
  if (!liveActivity) return [];
  const { target } = liveActivity;
  const tokens = tokensOfTarget(target);
  if (tokens === null) return [{ kind: 'broadcast', text: target.name, condition: 'false' }];
  const hasToken = (more: string) =>
    `id IN (SELECT t.installation FROM live_activity_token t WHERE t.app_id = ${params.add(appId)}
      AND t.kind = ${params.add(tokens.kind)} AND t.name = ${params.add(tokens.name)}${more})`;
  const clause = {
    kind: clauseOfTokens[tokens.kind],
    text: textOfTarget(target),
    condition: hasToken(''),
  };
  if (tokens.kind === 'start') return [clause];
  const isFresh = ` AND t.reported_at > ${params.add(updateTokenSince(nowMs))}`;
  return [clause, { ...clause, kind: 'freshToken', condition: hasToken(isFresh) }];
}

const clauseOfTokens = { start: 'startToken', update: 'updateToken' } as const satisfies Record<
  ActivityTokenKind,
  ActivityClauseKind
>;

const textOfTarget = ({ kind, name }: ActivityTarget): string =>
  kind === 'type' ? `attributesType ${name}` : `activity ${name}`;

/** One part of a push's target condition, with the caller's text and its SQL. */
export interface Clause {
  kind: 'where' | 'channels' | 'devices' | 'valid' | 'fresh' | 'rule' | ActivityClauseKind;
  /**
   * The caller's text, without device ids and without values that identify a user. The clauses
   * `valid` and `fresh` have the name of the member that they test.
   */
  text: string;
  /** Condition over `installation`. It may be NULL instead of false. */
  condition: string;
}

/**
 * Splits `targetCondition` into clauses. A device is a target of the push exactly if all clauses
 * hold.
 */
export function targetClauses(
  app: App,
  pushOrder: PushOrder,
  { params, nowMs }: { params: Params; nowMs: number },
): Clause[] {
  const clauses: Clause[] = [
    ...selectedClauses(app.appId, pushOrder, params),
    ...tokenClauses(app.appId, pushOrder, { params, nowMs }),
    { kind: 'valid', text: 'valid', condition: 'valid' },
    ...(pushOrder.recall
      ? []
      : [
          {
            kind: 'fresh' as const,
            text: 'updatedAt',
            condition: activeCondition(app, { params, nowMs }),
          },
        ]),
  ];
  const targets = () =>
    [`app_id = ${params.add(app.appId)}`, ...clauses.map(({ condition }) => `(${condition})`)].join(
      ' AND ',
    );
  const narrowed = narrowTargets(pushOrder, targets).map((one) => ({
    kind: 'rule' as const,
    ...one,
  }));
  return [...clauses, ...narrowed];
}

function selectedClauses(
  appId: string,
  { target, redrive, recall }: PushOrder,
  params: Params,
): Clause[] {
  if (recall) {
    const sent = recallCondition(appId, recall, { params });
    return [{ kind: 'devices', text: `recall of ${recall.objectId}`, condition: sent }];
  }
  if (!redrive)
    return target.kind === 'query'
      ? queryClauses(appId, target, params)
      : listClauses(target, params);
  const { selected } = failureConditions(appId, redrive, params);
  const condition = `id IN (SELECT installation FROM push_failure WHERE ${selected})`;
  return [{ kind: 'devices', text: `redrive of ${redrive.objectId}`, condition }];
}

function queryClauses(
  appId: string,
  target: Extract<PushOrder['target'], { kind: 'query' }>,
  params: Params,
): Clause[] {
  const viewer = masterViewer(appId);
  const parts = partsOf(target.where).map(
    (part): Clause => ({
      kind: 'where',
      text: JSON.stringify(withoutHiddenValues(part, false)),
      condition: compileWhere(
        parseWhere(part, installationClass, viewer),
        installationClass,
        params,
      ),
    }),
  );
  const { channels } = target;
  if (!channels || channels.length === 0) return parts;
  const condition = `channels && ${params.add(channels)}::text[]`;
  return [...parts, { kind: 'channels', text: JSON.stringify({ channels }), condition }];
}

function listClauses(
  target: Extract<PushOrder['target'], { kind: 'devices' }>,
  params: Params,
): Clause[] {
  const vendor = target.vendor === null ? '' : ` of ${target.vendor}`;
  const text = `device_ids (${target.deviceType}${vendor})`;
  return [{ kind: 'devices', text, condition: deviceConditions(target, params).join(' AND ') }];
}

/** Splits explicit and implicit ANDs into single tests of single members. */
function partsOf(where: Json): Json[] {
  if (Array.isArray(where)) return where.flatMap(partsOf);
  if (!isJsonObject(where)) return [];
  return Object.entries(where).flatMap(([name, test]): Json[] =>
    name === '$and' && Array.isArray(test)
      ? test.flatMap(partsOf)
      : testsOf(test).map((one) => ({ [name]: one })),
  );
}

/** Modifiers by the operator that they change. */
const modifiers = new Map([
  ['$regex', ['$options']],
  ['$nearSphere', [...distanceOperators]],
]);
const isModifier = (name: string): boolean => [...modifiers.values()].flat().includes(name);

/** Splits the operators of one member. Each operator keeps its modifiers. */
function testsOf(test: Json): Json[] {
  if (!isJsonObject(test) || !Object.keys(test).some((name) => name.startsWith('$'))) return [test];
  const entries = Object.entries(test).filter(([name]) => name.startsWith('$'));
  const value = Object.entries(test).filter(([name]) => !name.startsWith('$'));
  const tests = entries
    .filter(([name]) => !isModifier(name))
    .map(([name, operand]) => {
      const more = entries.filter(([other]) => modifiers.get(name)?.includes(other));
      return Object.fromEntries([[name, operand], ...more]);
    });
  // A typed value that also contains operators is an equality test (parse/where.ts).
  return value.length === 0 ? tests : [Object.fromEntries(value), ...tests];
}

/** Replaces the values of hidden members by `…`, because replies and logs must not quote them. */
function withoutHiddenValues(value: Json, isHidden: boolean): Json {
  if (isIdentifying(value)) return isHidden ? '…' : value;
  if (Array.isArray(value)) return value.map((item) => withoutHiddenValues(item, isHidden));
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [
      name,
      withoutHiddenValues(inner, isHidden || isHiddenMember(name)),
    ]),
  );
}

/** Tests for which PostgreSQL can use an index (README.md "SQL"). */
const indexedTests = new Set(['equal', 'in', 'all']);

/** Returns whether no index can serve any part of a push's condition. */
export function needsTableScan(pushOrder: PushOrder): boolean {
  const condition = conditionOf(pushOrder);
  return condition !== undefined && needsScan(condition);
}

/** Returns whether a push has no condition: its targets are all devices of the app. */
export function isToAll(pushOrder: PushOrder): boolean {
  const condition = conditionOf(pushOrder);
  return condition !== undefined && isEmpty(condition);
}

/** Returns whether a push has no condition, or a condition that needs a table scan. */
export function isUnselective(pushOrder: PushOrder): boolean {
  const condition = conditionOf(pushOrder);
  return condition !== undefined && (isEmpty(condition) || needsScan(condition));
}

/**
 * Returns the `where` of a push that selects devices by `where` only. Returns undefined if the push
 * names channels, lists devices or needs tokens of Live Activities.
 */
function conditionOf({ target, liveActivity }: PushOrder): Condition | undefined {
  return !liveActivity && hasOnlyWhere(target)
    ? parseWhere(target.where, installationClass, masterViewer(''))
    : undefined;
}

const isEmpty = (condition: Condition): boolean =>
  condition.kind === 'and' && condition.all.length === 0;

type Target = PushOrder['target'];

const hasOnlyWhere = (target: Target): target is Extract<Target, { kind: 'query' }> =>
  target.kind === 'query' && (target.channels === null || target.channels.length === 0);

function needsScan(condition: Condition): boolean {
  switch (condition.kind) {
    case 'and':
      return condition.all.length > 0 && condition.all.every(needsScan);
    case 'or':
      return condition.any.some(needsScan);
    case 'related':
    case 'members':
      return false;
    case 'field':
      return !indexedTests.has(condition.test.op);
  }
}

/**
 * Returns the column and its value if a push targets one device by a unique column. Returns
 * undefined for other conditions, which need a scan.
 */
export function pointTarget(
  appId: string,
  { target, liveActivity }: PushOrder,
): PointTarget | undefined {
  if (liveActivity) return undefined;
  if (target.kind === 'devices') {
    const [value, ...others] = target.deviceIds;
    const isPoint = target.deviceType === 'ios' && value !== undefined && others.length === 0;
    return isPoint ? { column: 'device_token', storedForms: storedFormsOfToken(value) } : undefined;
  }
  if (target.channels && target.channels.length > 0) return undefined;
  return pointOf(parseWhere(target.where, installationClass, masterViewer(appId)));
}

function pointOf(condition: Condition): PointTarget | undefined {
  if (condition.kind === 'and') {
    const [only, ...others] = condition.all;
    return only && others.length === 0 ? pointOf(only) : undefined;
  }
  if (condition.kind !== 'field' || condition.test.op !== 'equal' || !('column' in condition.field))
    return undefined;
  const { sql } = condition.field.column;
  const column = uniqueColumns.find((name) => name === sql);
  const { value } = condition.test;
  if (!column || typeof value !== 'string') return undefined;
  return { column, storedForms: column === 'device_token' ? storedFormsOfToken(value) : [value] };
}
