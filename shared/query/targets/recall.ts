import { sentRecipientsSql } from '../../db/tables/recalls.ts';
import type { Recall } from '../../domain/pushes/push.ts';
import type { Params } from '../sql/params.ts';

/**
 * Returns the condition over `installation` for the recipients that an earlier push was sent to,
 * above an id.
 */
export const recallCondition = (
  appId: string,
  { pushId }: Pick<Recall, 'pushId'>,
  { params, afterId = 0 }: { params: Params; afterId?: number },
): string =>
  `id IN (SELECT installation FROM (${sentRecipientsSql(params.add(appId), `${params.add(pushId)}::bigint`)}) AS sent
           WHERE installation > ${params.add(afterId)}::bigint)`;
