import { dayMs } from '../../clock.ts';
import {
  localeExpression,
  localizedTraitsText,
  traitExpressions,
  traitsText,
  zonedLocalizedTraitsText,
  zonedTraitsText,
  zoneExpression,
} from '../../db/tables/audience.ts';
import type { App } from '../../domain/apps/app.ts';
import { namesOfToken } from '../../domain/installations/identity.ts';
import type { PushOrder } from '../../domain/pushes/push.ts';
import { narrowTargets } from '../../rules/rules.ts';
import { parseWhere } from '../parse/where.ts';
import { installationClass } from '../schema/classes.ts';
import { Params } from '../sql/params.ts';
import { compileWhere } from '../sql/where.ts';
import { type MemberUse, masterViewer, type Viewer } from '../viewer.ts';
import { redriveCondition } from './redrive.ts';

export { Params };

/** What the conditions read of an app. */
export type TargetApp = Pick<App, 'appId'> & { options: Pick<App['options'], 'installationValidityDays'> };

/**
 * Checks the `where` of a push, and the sender's right to ask it and to name the fields of its
 * variables, when the push is accepted: a dry run counts the devices that have a field. Throws as
 * `parseWhere`.
 */
export function checkTargets(pushOrder: PushOrder, viewer: Viewer): void {
  viewer.permit?.(Object.values(pushOrder.variables ?? {}).map(({ field }) => useOfField(field)));
  if (pushOrder.target.kind === 'query') parseWhere(pushOrder.target.where, installationClass, viewer);
}

const useOfField = (field: string): MemberUse => ({
  className: installationClass.name,
  member: field.split('.', 1)[0] ?? field,
  use: 'other',
  isInner: false,
});

/**
 * Returns the SQL condition for active installations: updated within the app's validity period
 * (protocol/installations.md#idle-installations). For imported ones the period starts at the import.
 */
export function activeCondition(
  app: TargetApp,
  { params, nowMs }: { params: Params; nowMs: number },
): string {
  const since = params.add(activeSince(app, nowMs));
  return `(updated_at >= ${since} OR imported_at >= ${since})`;
}

/** Returns since when an installation must have been updated to be active. */
export const activeSince = (app: TargetApp, nowMs: number): Date =>
  new Date(nowMs - app.options.installationValidityDays * dayMs);

/**
 * Returns the SQL condition over `installation` for the devices that a push targets: valid, active
 * (`activeCondition`), and matching `where` and channels, listed by id, or not reached by the push
 * of a redrive, as its rules narrow them. `afterId` may leave out failures up to an id; `part`
 * selects the devices of one start.
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
    activeCondition(app, { params, nowMs }),
    ...selectedConditions(app.appId, pushOrder, { params, ...(afterId === undefined ? {} : { afterId }) }),
  ].join(' AND ');
  const narrowed = narrowTargets(pushOrder, () => targets).map(({ condition }) => condition);
  return [targets, ...narrowed, ...(part ? [part((value) => params.add(value))] : [])].join(' AND ');
}

/** Returns a condition over `installation`; `add` appends a value and returns its placeholder. */
export type Part = (add: (value: unknown) => string) => string;

function selectedConditions(
  appId: string,
  { target, redrive }: PushOrder,
  from: { params: Params; afterId?: number },
): string[] {
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
  // Any of the channels (protocol/push.md#push-call); the index on channels serves it.
  const channels =
    target.channels && target.channels.length > 0
      ? [`channels && ${params.add(target.channels)}::text[]`]
      : [];
  return [`(${where})`, ...channels];
}

/**
 * Returns conditions for listed ids: device tokens for iOS; registration ids for one vendor's devices; else
 * installation ids (protocol/push.md#push-to-devices).
 */
export function deviceConditions(
  target: Extract<PushOrder['target'], { kind: 'devices' }>,
  params: Params,
): string[] {
  if (target.deviceType === 'ios')
    return [`device_token = ANY(${params.add(target.deviceIds.flatMap(namesOfToken))}::text[])`];
  const ids = `${params.add(target.deviceIds)}::text[]`;
  const type = `device_type = ${params.add(target.deviceType)}`;
  if (target.vendor !== null) return [type, `registration_id = ANY(${ids})`];
  return [type, `(installation_id = ANY(${ids}) OR registration_id = ANY(${ids}))`];
}

/** An installation as planning reads it. */
export interface TargetRow {
  id: number;
  /** Its traits as one text, which `parseTraits` reads; with its locale for a push with translations, and its time zone for one with quiet hours. */
  traits: string;
}

/** What a page reads. */
interface PageTerms {
  /** Only these targets. */
  part?: Part | undefined;
  /** With the time zone of each device. */
  hasZones?: boolean;
}

export interface TargetQuery {
  text: string;
  values: unknown[];
}

/**
 * Returns the planner's statement: the routing columns of the targets above an id, sorted by id; the first `limit` of them, if
 * there is one (develop/decisions.md#why-pages-of-one-statement).
 */
export function targetQuery(
  app: TargetApp,
  pushOrder: PushOrder,
  from: { afterId: number; nowMs: number; limit?: number } & PageTerms,
): TargetQuery {
  const params = new Params();
  const condition = targetCondition(app, pushOrder, { params, ...from });
  return {
    text: `SELECT id, ${traitsTextOf(pushOrder, from)} AS traits
             FROM installation
            WHERE ${condition} AND id > ${params.add(from.afterId)}
            ORDER BY id${from.limit === undefined ? '' : ` LIMIT ${params.add(from.limit)}`}`,
    values: params.values,
  };
}

function traitsTextOf({ languages }: PushOrder, { hasZones = false }: PageTerms): string {
  if (hasZones) return languages ? zonedLocalizedTraitsText : zonedTraitsText;
  return languages ? localizedTraitsText : traitsText;
}

/** Installations of a page with the same traits, as planning reads them. */
export interface TargetGroupRow {
  traits: string;
  /** Their ids, separated by commas. */
  ids: string;
}

/**
 * Returns the statement for one page of targets above an id, grouped by traits: one row per group costs the planner a
 * tenth of one per installation. For conditions that no index serves (`isUnselective`): the page then reads on where
 * the last one ended.
 */
export function targetPageQuery(
  app: TargetApp,
  pushOrder: PushOrder,
  from: { afterId: number; nowMs: number; size: number } & PageTerms,
): TargetQuery {
  const params = new Params();
  const { nowMs, part } = from;
  const condition = targetCondition(app, pushOrder, { params, nowMs, part });
  return {
    text: `SELECT ${traitsTextOf(pushOrder, from)} AS traits, string_agg(id::text, ',') AS ids
             FROM (SELECT * FROM installation
                    WHERE ${condition} AND id > ${params.add(from.afterId)}
                    ORDER BY id LIMIT ${params.add(from.size)}) AS page
            GROUP BY ${[traitExpressions, ...(pushOrder.languages ? [localeExpression] : []), ...(from.hasZones ? [zoneExpression] : [])].join(', ')}`,
    values: params.values,
  };
}
