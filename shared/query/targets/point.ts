import { type PointTarget, uniqueColumns } from '../../db/tables/audience.ts';
import { namesOfToken } from '../../domain/installations/identity.ts';
import type { PushOrder } from '../../domain/pushes/push.ts';
import type { Condition } from '../condition.ts';
import { parseWhere } from '../parse/where.ts';
import { installationClass } from '../schema.ts';
import { masterViewer } from '../viewer.ts';

/** Returns the point target of a push; undefined for any other condition, which needs a scan. */
export function pointTarget(appId: string, { target }: PushOrder): PointTarget | undefined {
  if (target.kind === 'devices') {
    const [value, ...others] = target.deviceIds;
    const isPoint = target.deviceType === 'ios' && value !== undefined && others.length === 0;
    return isPoint ? { column: 'device_token', names: namesOfToken(value) } : undefined;
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
  return { column, names: column === 'device_token' ? namesOfToken(value) : [value] };
}
