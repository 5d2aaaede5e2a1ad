import { reasonTextSql } from '../../db/query.ts';
import type { PushOrder, Redrive } from '../../domain/pushes/push.ts';
import type { Params } from '../sql/params.ts';

/**
 * Target of a redrive. Its recipients are failures, so the target itself selects no device.
 * Dispatchers of the previous version then find no device.
 */
export const noDevices: PushOrder['target'] = {
  kind: 'devices',
  deviceType: 'ios',
  deviceIds: [],
  vendor: null,
  deviceProfile: null,
};

/**
 * Returns the condition over `push_failure` that a request without an answer may have reached the
 * recipient, at any attempt. Rows of the previous version have no `is_unsure`, so the batches are
 * searched for them. A stored reason begins with its text (`shared/domain/reasons.ts`).
 */
const isUnsure = (appId: string, pushId: string): string =>
  `(status = 0 AND (reason = 'unknown' OR starts_with(reason, 'retries exhausted:'))
    OR is_unsure IS TRUE
    OR (is_unsure IS NULL AND installation IN (
          SELECT unnest(b.recipients) FROM push_batch b
           WHERE b.app_id = ${appId} AND b.push_id = ${pushId} AND b.unanswered > 0)))`;

/** Conditions over `push_failure`. */
export interface FailureConditions {
  /** Failures that the redrive selects. */
  selected: string;
  /** Selected failures that another push has taken over. */
  redriven: string;
  /** Failures whose recipient may have received the message. */
  unsure: string;
}

/**
 * Returns the conditions for the failures of a redrive. Columns are unqualified, so a statement
 * must not read other tables in the same query.
 */
export function failureConditions(
  appId: string,
  redrive: Omit<Redrive, 'objectId' | 'target'>,
  params: Params,
): FailureConditions {
  const { pushId, outcomes, connector, reason, from, to } = redrive;
  const [app, push] = [params.add(appId), params.add(pushId)];
  const selected = [
    `app_id = ${app} AND push_id = ${push}::bigint AND outcome = ANY(${params.add([...outcomes])}::text[])`,
    ...(connector === null ? [] : [`connector = ${params.add(connector)}`]),
    ...(reason === null ? [] : [`${reasonTextSql()} = ${params.add(reason)}`]),
    ...(from === null ? [] : [`created_at >= ${params.add(from)}::timestamptz`]),
    ...(to === null ? [] : [`created_at < ${params.add(to)}::timestamptz`]),
  ].join(' AND ');
  return {
    selected,
    redriven: 'redriven_by IS NOT NULL',
    unsure: isUnsure(app, `${push}::bigint`),
  };
}

/**
 * Returns the condition for the failures that a redrive takes. By default, these are failures whose
 * recipients certainly did not get the push. `includeUnsure` adds the others.
 */
export function redrivable(appId: string, redrive: Redrive, params: Params): string {
  const { selected, redriven, unsure } = failureConditions(appId, redrive, params);
  return `${selected} AND NOT (${redriven})${redrive.includeUnsure ? '' : ` AND NOT ${unsure}`}`;
}

/** Returns the condition over `installation` for the recipients of a redrive above an id. */
export function redriveCondition(
  appId: string,
  redrive: Redrive,
  { params, afterId = 0 }: { params: Params; afterId?: number },
): string {
  return `id IN (SELECT installation FROM push_failure
                  WHERE ${redrivable(appId, redrive, params)}
                    AND installation > ${params.add(afterId)}::bigint)`;
}
