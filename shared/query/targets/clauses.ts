import { isHiddenMember } from '../../domain/admin/shortened.ts';
import type { App } from '../../domain/apps/app.ts';
import { isJsonObject, type Json } from '../../domain/json.ts';
import type { PushOrder } from '../../domain/pushes/push.ts';
import { narrowTargets } from '../../rules/rules.ts';
import { distanceOperators } from '../parse/geo.ts';
import { parseWhere } from '../parse/where.ts';
import { installationClass } from '../schema/classes.ts';
import type { Params } from '../sql/params.ts';
import { compileWhere } from '../sql/where.ts';
import { masterViewer } from '../viewer.ts';
import { failureConditions } from './redrive.ts';
import { activeCondition, deviceConditions } from './targets.ts';

/** One part of a push's target condition, with the caller's text and its SQL. */
export interface Clause {
  kind: 'where' | 'channels' | 'devices' | 'valid' | 'fresh' | 'rule';
  /** Text of the caller without device ids and what names a user; the two built-in clauses are named by the member they test. */
  text: string;
  /** Condition over `installation`; may be NULL where it does not hold. */
  condition: string;
}

/**
 * Splits `targetCondition` into clauses: all of them hold exactly for the devices that the push targets.
 */
export function targetClauses(
  app: App,
  pushOrder: PushOrder,
  { params, nowMs }: { params: Params; nowMs: number },
): Clause[] {
  const clauses: Clause[] = [
    ...selectedClauses(app.appId, pushOrder, params),
    { kind: 'valid', text: 'valid', condition: 'valid' },
    { kind: 'fresh', text: 'updatedAt', condition: activeCondition(app, { params, nowMs }) },
  ];
  const targets = () =>
    [`app_id = ${params.add(app.appId)}`, ...clauses.map(({ condition }) => `(${condition})`)].join(' AND ');
  const narrowed = narrowTargets(pushOrder, targets).map((one) => ({ kind: 'rule' as const, ...one }));
  return [...clauses, ...narrowed];
}

function selectedClauses(appId: string, { target, redrive }: PushOrder, params: Params): Clause[] {
  if (!redrive)
    return target.kind === 'query' ? queryClauses(appId, target, params) : listClauses(target, params);
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
      text: JSON.stringify(withoutAddresses(part, false)),
      condition: compileWhere(parseWhere(part, installationClass, viewer), installationClass, params),
    }),
  );
  const { channels } = target;
  if (!channels || channels.length === 0) return parts;
  const condition = `channels && ${params.add(channels)}::text[]`;
  return [...parts, { kind: 'channels', text: JSON.stringify({ channels }), condition }];
}

function listClauses(target: Extract<PushOrder['target'], { kind: 'devices' }>, params: Params): Clause[] {
  const vendor = target.vendor === null ? '' : ` of ${target.vendor}`;
  const text = `device_ids (${target.deviceType}${vendor})`;
  return [{ kind: 'devices', text, condition: deviceConditions(target, params).join(' AND ') }];
}

/** Splits explicit and implicit ANDs down to one test of one member. */
function partsOf(where: Json): Json[] {
  if (Array.isArray(where)) return where.flatMap(partsOf);
  if (!isJsonObject(where)) return [];
  return Object.entries(where).flatMap(([name, test]): Json[] =>
    name === '$and' && Array.isArray(test)
      ? test.flatMap(partsOf)
      : testsOf(test).map((one) => ({ [name]: one })),
  );
}

/** Modifiers of other operators. */
const companions = new Map([
  ['$regex', ['$options']],
  ['$nearSphere', [...distanceOperators]],
]);
const isCompanion = (name: string): boolean => [...companions.values()].flat().includes(name);

/** Splits the operators of one member, each with its modifiers. */
function testsOf(test: Json): Json[] {
  if (!isJsonObject(test) || !Object.keys(test).some((name) => name.startsWith('$'))) return [test];
  const entries = Object.entries(test).filter(([name]) => name.startsWith('$'));
  const value = Object.entries(test).filter(([name]) => !name.startsWith('$'));
  const tests = entries
    .filter(([name]) => !isCompanion(name))
    .map(([name, operand]) => {
      const more = entries.filter(([other]) => companions.get(name)?.includes(other));
      return Object.fromEntries([[name, operand], ...more]);
    });
  // A typed value with operators in it is a test of its own (parse/where.ts).
  return value.length === 0 ? tests : [Object.fromEntries(value), ...tests];
}

/** Leaves out values that replies and logs never quote. */
function withoutAddresses(value: Json, isAddress: boolean): Json {
  if (typeof value === 'string') return isAddress ? '…' : value;
  if (Array.isArray(value)) return value.map((item) => withoutAddresses(item, isAddress));
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [
      name,
      withoutAddresses(inner, isAddress || isHiddenMember(name)),
    ]),
  );
}
