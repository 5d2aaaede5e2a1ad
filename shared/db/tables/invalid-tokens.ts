import {
  type Deletable,
  type KeptTokens,
  minInvalidTokens,
  type ProfileAnswers,
} from '../../domain/pushes/invalid-tokens.ts';
import { tokensOfTarget } from '../../domain/pushes/live-activity.ts';
import type { Database, Handle } from '../pool.ts';
import { listsOf, query, sweepOf } from '../query.ts';
import { readLiveActivity } from './live-activities.ts';
import type { ReceiptSource } from './receipts.ts';

/** Maximum installations that one statement deletes. */
const pageSize = 5000;

type PushKey = { appId: string; pushId: number };

/**
 * Answers of one profile, and the token forms that had a success. `''` means any token of the
 * profile.
 */
interface JudgedProfile extends ProfileAnswers {
  successes: string[];
}

/** Reads the answers of the profiles for which a push found invalid tokens. */
export const readInvalidAnswers = (db: Handle, { appId, pushId }: PushKey) =>
  query(db).rows<JudgedProfile>(
    `SELECT f.connector, f.profile, f.invalid, f.proofs, f.reason, b.sent + f.refused AS answers,
            CASE WHEN b.sent > 0 THEN ARRAY[''] ELSE '{}' END
              || ARRAY(SELECT DISTINCT s.form FROM push_batch o, jsonb_object_keys(o.sent_by) AS s (form)
                        WHERE o.app_id = $1 AND o.push_id = $2 AND o.connector = f.connector
                          AND o.profile = f.profile AND o.sent_by IS NOT NULL) AS successes
       FROM (SELECT connector, profile, count(*)
         FILTER (WHERE outcome = 'invalid_token') AS invalid,
                    count(*) FILTER (WHERE is_proof) AS proofs, count(*)
                    FILTER (WHERE status > 0) AS refused,
                    mode() WITHIN GROUP (ORDER BY reason)
                    FILTER (WHERE outcome = 'invalid_token') AS reason
               FROM push_failure
              WHERE app_id = $1 AND push_id = $2 AND outcome <> 'sent' AND profile IS NOT NULL
              GROUP BY connector, profile) AS f
      CROSS JOIN LATERAL (
            SELECT coalesce(sum((totals ->> 'sent')::bigint), 0)::bigint AS sent FROM push_batch
             WHERE app_id = $1 AND push_id = $2 AND connector = f.connector
               AND profile = f.profile) AS b
      WHERE f.invalid > 0`,
    [appId, pushId],
  );

/**
 * Which installations of a push are deleted. If `profile` is absent, the installations of all
 * profiles.
 */
interface InvalidSelection extends PushKey {
  profile?: Pick<ProfileAnswers, 'connector' | 'profile'>;
  /** Whether tokens with, and tokens without, a proof are selected. */
  deletable: Deletable;
  /**
   * Token forms that had a success. Tokens without a proof are only deleted if their form is in the
   * list. Absent: no condition.
   */
  successes?: readonly string[];
}

/**
 * Deletes the installations with invalid tokens, unless they were saved since. `onDeleted` runs in
 * the transaction of each page.
 */
export async function deleteInvalid(
  db: Pick<Database, 'transaction'>,
  selection: InvalidSelection,
  onDeleted: (tx: Handle, devices: DeletedDevices) => Promise<void>,
): Promise<void> {
  // The recipient of a broadcast has the id 0.
  let after: number | null = -1;
  while (after !== null) {
    const from: number = after;
    after = await db.transaction(async (tx): Promise<number | null> => {
      const { devices, last } = await deleteInvalidPage(tx, selection, from);
      await onDeleted(tx, devices);
      return last;
    });
  }
}

/** Public ids of deleted installations, by connector. */
export type DeletedDevices = Readonly<Record<string, string[]>>;

/**
 * Deleted installations of a page, and the recipient at which the next page starts; null after the
 * last page.
 */
export interface DeletedPage {
  last: number | null;
  deleted: number;
  devices: DeletedDevices;
}

/** Like `deleteInvalid`, for one page of recipients whose internal ids are above `after`. */
export async function deleteInvalidPage(
  db: Handle,
  { appId, pushId, profile, deletable, successes }: InvalidSelection,
  after: number,
): Promise<DeletedPage> {
  const tokens = await deletedTokens(db, { appId, pushId });
  const { last, size, deleted, devices } = await query(db).one<DeletedPage & { size: number }>(
    `WITH page AS MATERIALIZED (
       SELECT installation, dead_as_of, connector FROM push_failure
        WHERE app_id = $1 AND push_id = $2 AND installation > $3 AND dead_as_of IS NOT NULL
          AND ($4::text IS NULL OR connector = $4) AND ($5::text IS NULL OR profile = $5)
          AND CASE WHEN is_proof THEN $6::boolean
                   ELSE $7::boolean AND ($8::text[] IS NULL
                     OR CASE WHEN form IS NULL THEN '' = ANY ($8)
                                                                    ELSE string_to_array(form,
                                        '+') <@ $8 END) END
        ORDER BY installation LIMIT ${pageSize}),
     gone AS (
       ${tokens.text})
     SELECT (SELECT max(installation) FROM page) AS last, (SELECT count(*) FROM page) AS size,
            (SELECT count(*) FROM gone) AS deleted,
            (SELECT coalesce(jsonb_object_agg(connector, ids), '{}')
               FROM (SELECT connector, jsonb_agg(object_id) AS ids FROM gone
                      WHERE object_id IS NOT NULL GROUP BY connector) AS g) AS devices`,
    [
      appId,
      pushId,
      after,
      profile?.connector,
      profile?.profile,
      deletable.proven,
      deletable.called,
      successes,
      ...tokens.values,
    ],
  );
  return { last: size < pageSize ? null : last, deleted, devices };
}

/**
 * Returns the statement that deletes what the invalid tokens of a page belong to: installations. A
 * token of a Live Activity is deleted itself, and its installation stays. A channel that APNs does
 * not know is marked.
 */
async function deletedTokens(
  db: Handle,
  { appId, pushId }: PushKey,
): Promise<{ text: string; values: unknown[] }> {
  const found = await readLiveActivity(db, appId, pushId);
  if (!found)
    return {
      text: `DELETE FROM installation i USING page p
        WHERE i.app_id = $1 AND i.id = p.installation AND i.updated_at = p.dead_as_of
          RETURNING i.object_id, p.connector`,
      values: [],
    };
  const { target } = found.activity;
  const tokens = tokensOfTarget(target);
  return tokens === null
    ? {
        text: `UPDATE live_activity_channel c SET gone_at = now()
          WHERE c.app_id = $1 AND c.prod = $9 AND c.channel = $10 AND c.gone_at IS NULL
            AND EXISTS (SELECT FROM page) RETURNING NULL AS object_id, NULL AS connector`,
        values: [found.prod, target.name],
      }
    : {
        text: `DELETE FROM live_activity_token t USING page p
          WHERE t.app_id = $1 AND t.kind = $9 AND t.name = $10 AND t.installation = p.installation
            AND t.reported_at = p.dead_as_of RETURNING NULL AS object_id, NULL AS connector`,
        values: [tokens.kind, tokens.name],
      };
}

/** Records on a push which profiles kept their invalid tokens. An empty list removes the record. */
export const saveKeptTokens = (
  db: Handle,
  { appId, pushId }: PushKey,
  kept: readonly KeptTokens[],
) =>
  query(db).run(
    'UPDATE notification SET kept_tokens = $3, updated_at = now() WHERE app_id = $1 AND id = $2',
    [appId, pushId, kept.length === 0 ? null : JSON.stringify(kept)],
  );

/** Lists the invalid tokens that pushes of the last day kept, newest push first. */
export async function listKeptTokens(
  db: Handle,
  limit: number,
): Promise<(KeptTokens & { appId: string; objectId: string })[]> {
  const pushes = await query(db).rows<{ appId: string; objectId: string; kept: KeptTokens[] }>(
    `SELECT app_id AS "appId", object_id AS "objectId", kept_tokens AS kept FROM notification
      WHERE kept_tokens IS NOT NULL AND finished_at > now() - interval '1 day' ORDER BY id DESC
        LIMIT $1`,
    [limit],
  );
  return pushes.flatMap(({ kept, ...push }) => kept.map((one) => ({ ...push, ...one })));
}

/** Counts the invalid tokens that were kept, by profile. */
export async function countKeptTokens(
  db: Handle,
  limit: number,
): Promise<{ appId: string; connector: string; profile: string; tokens: number }[]> {
  const counts = new Map<
    string,
    { appId: string; connector: string; profile: string; tokens: number }
  >();
  for (const { appId, connector, profile, kept } of await listKeptTokens(db, limit)) {
    const key = JSON.stringify([appId, connector, profile]);
    const existing = counts.get(key) ?? { appId, connector, profile, tokens: 0 };
    existing.tokens = Math.max(existing.tokens, kept);
    counts.set(key, existing);
  }
  return [...counts.values()].slice(0, limit);
}

/** Report of an invalid device token in a gateway's receipt. */
interface InvalidTokenNotice {
  pushId: number;
  registrationId: string;
  /** The report does not apply to an installation that was updated after this time. */
  asOf: Date;
  /**
   * False if the gateway only suspects that the token is invalid. A second push must confirm it.
   */
  isSure: boolean;
}

/**
 * Records invalid tokens from receipts for installations that were not updated since. A suspicion
 * becomes certain if another push reports the same token, and the installation was not updated in
 * between.
 */
export async function recordInvalidTokens(
  tx: Handle,
  { appId, connector }: ReceiptSource,
  notices: readonly InvalidTokenNotice[],
): Promise<void> {
  if (notices.length === 0) return;
  await tx.query(
    `INSERT INTO dead_notice AS n (app_id, installation, push_id, connector, saved_at, is_sure)
     SELECT $1, i.id, max(t.push_id), $2, i.updated_at,
            bool_or(t.is_sure) OR count(DISTINCT t.push_id) > 1
       FROM unnest($3::bigint[], $4::text[], $5::timestamptz[], $6::boolean[]) AS t (push_id,
         registration_id, as_of, is_sure)
       JOIN installation i ON i.app_id = $1 AND i.registration_id = t.registration_id
         AND i.vendor = $2
                          AND i.updated_at <= t.as_of
      GROUP BY i.id, i.updated_at ORDER BY i.id
     ON CONFLICT (app_id, installation) DO UPDATE
        SET is_sure = excluded.is_sure
                   OR (n.saved_at = excluded.saved_at AND n.connector = excluded.connector
                       AND (n.is_sure OR n.push_id <> excluded.push_id)),
            push_id = excluded.push_id, connector = excluded.connector,
            saved_at = excluded.saved_at, noted_at = excluded.noted_at`,
    [appId, connector, ...listsOf(notices, 'pushId', 'registrationId', 'asOf', 'isSure')],
  );
}

/** Deletes the reports of devices that a message has reached since. */
export async function clearInvalidTokens(
  tx: Handle,
  appId: string,
  ids: readonly number[],
): Promise<void> {
  if (ids.length === 0) return;
  await tx.query(
    'DELETE FROM dead_notice WHERE app_id = $1 AND installation = ANY ($2::bigint[])',
    [appId, ids],
  );
}

/**
 * Deletes the installations with certain reports of these pushes. They must not have been updated
 * since, and the push must have reached a device of the connector (protocol/delivery.md#promise-7).
 * A push to many must have reached at least as many devices as are reported. Receipts arrive one by
 * one and may never arrive for some devices, so the share is unknown. The failures of the push keep
 * the public ids. Returns the deleted installations by push.
 */
export async function deleteReportedInvalid(
  tx: Handle,
  { appId, connector }: ReceiptSource,
  pushIds: readonly number[],
): Promise<Map<number, DeletedDevices>> {
  const devicesOf = new Map<number, DeletedDevices>();
  if (pushIds.length === 0) return devicesOf;
  // Each row of a push has a part of its receipts. Its oldest rows have counted all its deletions.
  const reached = await query(tx).column<number>(
    `SELECT t.push_id FROM push_receipt_total t JOIN notification p ON p.app_id = $1
      AND p.id = t.push_id
      WHERE t.app_id = $1 AND t.connector = $2 AND t.push_id = ANY ($3::bigint[])
      GROUP BY t.push_id, p.devices
     HAVING sum(t.delivered) > 0
        AND (p.devices < ${minInvalidTokens} OR sum(t.delivered) >= max(t.deleted) +
               (SELECT count(*) FROM dead_notice n
                 WHERE n.app_id = $1 AND n.push_id = t.push_id AND n.connector = $2
                   AND n.is_sure))
      ORDER BY t.push_id`,
    [appId, connector, pushIds],
  );
  for (const pushId of reached) {
    const { deleted, devices } = await deleteReported(tx, { appId, connector, pushId });
    devicesOf.set(pushId, devices);
    await tx.query(
      `UPDATE push_receipt_total SET deleted = deleted + $4
        WHERE $4 > 0 AND app_id = $1 AND push_id = $2 AND connector = $3`,
      [appId, pushId, connector, deleted],
    );
  }
  return devicesOf;
}

/**
 * Deletes the installations with certain reports, of one connector or of all. Returns them.
 */
export const deleteReported = (
  tx: Handle,
  {
    appId,
    connector,
    pushId,
  }: { appId: string; connector?: ReceiptSource['connector']; pushId: number },
) =>
  query(tx).one<Omit<DeletedPage, 'last'>>(
    `WITH due AS (
       DELETE FROM dead_notice
        WHERE app_id = $1 AND push_id = $2 AND is_sure AND ($3::text IS NULL OR connector = $3)
       RETURNING installation, saved_at, connector),
     gone AS (
       DELETE FROM installation i USING due
        WHERE i.app_id = $1 AND i.id = due.installation AND i.updated_at = due.saved_at
       RETURNING i.id, i.object_id, due.connector),
     kept AS (
       INSERT INTO push_failure (app_id, push_id, installation, object_id, connector, outcome,
         status, reason)
       SELECT $1, $2, id, object_id, connector, 'sent', 0, 'dead_by_receipt' FROM gone ON CONFLICT
         DO NOTHING)
     SELECT (SELECT count(*) FROM gone) AS deleted,
            (SELECT coalesce(jsonb_object_agg(connector, ids), '{}')
               FROM (SELECT connector, jsonb_agg(object_id) AS ids FROM gone
                      GROUP BY connector) AS g) AS devices`,
    [appId, pushId, connector ?? null],
  );

export const deleteOldInvalidTokenNotices = sweepOf({
  table: 'dead_notice',
  key: ['app_id', 'installation'],
  column: 'noted_at',
});
