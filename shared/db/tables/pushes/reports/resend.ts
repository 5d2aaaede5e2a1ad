import type { Handle } from '../../../pool.ts';

interface PushKey {
  appId: string;
  id: number;
}

/**
 * Lists the public ids of installations that a push certainly did not reach, by outcome. Leaves out those whose gateway
 * did not answer a request, at any try: they may have the message.
 */
export async function listUnreached(
  db: Handle,
  { appId, id }: PushKey,
  { outcomes, limit }: { outcomes: readonly string[]; limit: number },
): Promise<string[]> {
  const { rows } = await db.query<{ object_id: string }>(
    `SELECT object_id FROM push_failure
      WHERE app_id = $1 AND push_id = $2 AND outcome = ANY($3) AND object_id IS NOT NULL
        AND NOT (status = 0 AND (reason = 'unknown' OR starts_with(reason, 'retries exhausted:')))
        AND installation NOT IN (
          SELECT unnest(recipients) FROM push_batch WHERE app_id = $1 AND push_id = $2 AND unanswered > 0)
      ORDER BY installation LIMIT $4`,
    [appId, id, outcomes, limit],
  );
  return rows.map((row) => row.object_id);
}

/** Notes the push that was sent again for another one. Returns false when there is one already. */
export async function markResent(tx: Handle, { appId, id }: PushKey, objectId: string): Promise<boolean> {
  const { rowCount } = await tx.query(
    'UPDATE notification SET resent_as = $3 WHERE app_id = $1 AND id = $2 AND resent_as IS NULL',
    [appId, id, objectId],
  );
  return (rowCount ?? 0) > 0;
}
