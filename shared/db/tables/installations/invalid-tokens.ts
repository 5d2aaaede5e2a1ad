import type { ConnectorId } from '../../../domain/labels.ts';
import type { Deletable, KeptTokens, ProfileAnswers } from '../../../domain/pushes/invalid-tokens.ts';
import type { Handle } from '../../pool.ts';
import type { RecipientFailure } from '../pushes/reports/recipient-failures.ts';

/** Installations that one statement deletes. */
const pageSize = 5000;

/** A push by its internal key. */
interface PushKey {
  appId: string;
  pushId: number;
}

/**
 * Answers of one profile in a push, and the forms of tokens that had a success; `''`: any token of
 * the profile.
 */
export interface JudgedProfile extends ProfileAnswers {
  successes: ReadonlySet<string>;
}

/** Reads the answers of the profiles of which a push called tokens invalid. */
export async function readInvalidAnswers(db: Handle, { appId, pushId }: PushKey): Promise<JudgedProfile[]> {
  const { rows } = await db.query<{
    connector: ConnectorId;
    profile: string;
    invalid: number;
    proofs: number;
    refused: number;
    reason: string;
    sent: number;
    forms: Record<string, number> | null;
  }>(
    `SELECT f.connector, f.profile, f.invalid, f.proofs, f.refused, f.reason, b.sent,
            (SELECT jsonb_object_agg(key, n)
               FROM (SELECT s.key, sum(s.value::bigint) AS n FROM push_batch o, jsonb_each_text(o.sent_by) s
                      WHERE o.app_id = $1 AND o.push_id = $2 AND o.connector = f.connector AND o.profile = f.profile
                        AND o.sent_by IS NOT NULL
                      GROUP BY s.key) AS by_form) AS forms
       FROM (SELECT connector, profile, count(*) FILTER (WHERE outcome = 'invalid_token') AS invalid,
                    count(*) FILTER (WHERE is_proof) AS proofs, count(*) FILTER (WHERE status > 0) AS refused,
                    mode() WITHIN GROUP (ORDER BY reason) FILTER (WHERE outcome = 'invalid_token') AS reason
               FROM push_failure
              WHERE app_id = $1 AND push_id = $2 AND outcome <> 'sent' AND profile IS NOT NULL
              GROUP BY connector, profile) AS f
      CROSS JOIN LATERAL (
            SELECT coalesce(sum((totals ->> 'sent')::bigint), 0)::bigint AS sent FROM push_batch
             WHERE app_id = $1 AND push_id = $2 AND connector = f.connector AND profile = f.profile) AS b
      WHERE f.invalid > 0`,
    [appId, pushId],
  );
  return rows.map(({ sent, refused, forms, ...row }) => ({
    ...row,
    answers: sent + refused,
    successes: new Set([...(sent > 0 ? [''] : []), ...Object.keys(forms ?? {})]),
  }));
}

/** Which installations of a push are deleted; absent profile: those of all profiles. */
export interface InvalidSelection extends PushKey {
  profile?: Pick<ProfileAnswers, 'connector' | 'profile'>;
  /** Whether tokens with and without a proof are selected. */
  deletable: Deletable;
  /** Forms of tokens with a success, which those without a proof need; absent: they need none. */
  successes?: ReadonlySet<string>;
}

/**
 * Deletes the installations of a push whose tokens the gateway called invalid, unless they were
 * saved since. Returns their number.
 */
export async function deleteInvalid(db: Handle, selection: InvalidSelection): Promise<number> {
  let deleted = 0;
  let after: number | null = 0;
  while (after !== null) {
    const page: DeletedPage = await deleteInvalidPage(db, selection, after);
    deleted += page.deleted;
    after = page.last;
  }
  return deleted;
}

/**
 * Deleted installations of a page, and its last recipient, after which the next page begins; null
 * for the last page.
 */
export interface DeletedPage {
  last: number | null;
  deleted: number;
}

/** As `deleteInvalid`, for one page of recipients whose internal ids are above `after`. */
export async function deleteInvalidPage(
  db: Handle,
  { appId, pushId, profile, deletable, successes }: InvalidSelection,
  after: number,
): Promise<DeletedPage> {
  const { rows } = await db.query<{ last: number | null; size: number; deleted: number }>(
    `WITH page AS MATERIALIZED (
       SELECT installation, dead_as_of FROM push_failure
        WHERE app_id = $1 AND push_id = $2 AND installation > $3 AND dead_as_of IS NOT NULL
          AND ($4::text IS NULL OR connector = $4) AND ($5::text IS NULL OR profile = $5)
          AND CASE WHEN is_proof THEN $6::boolean
                   ELSE $7::boolean AND ($8::text[] IS NULL OR CASE WHEN form IS NULL THEN '' = ANY ($8)
                                                                    ELSE string_to_array(form, '+') <@ $8 END) END
        ORDER BY installation LIMIT ${pageSize}),
     gone AS (
       DELETE FROM installation i USING page p
        WHERE i.app_id = $1 AND i.id = p.installation AND i.updated_at = p.dead_as_of RETURNING i.id)
     SELECT (SELECT max(installation) FROM page) AS last, (SELECT count(*) FROM page) AS size,
            (SELECT count(*) FROM gone) AS deleted`,
    [
      appId,
      pushId,
      after,
      profile?.connector ?? null,
      profile?.profile ?? null,
      deletable.proven,
      deletable.called,
      successes ? [...successes] : null,
    ],
  );
  const { last = null, size = 0, deleted = 0 } = rows[0] ?? {};
  return { last: size < pageSize ? null : last, deleted };
}

/**
 * Deletes the installation of a push to one device if the answer proves the end of its token,
 * unless it was saved since: such a push has no other answers to compare.
 */
export async function deleteProven(db: Handle, appId: string, failure: RecipientFailure): Promise<void> {
  if (!failure.isProof || failure.invalidAsOfMs === null) return;
  await db.query(
    `DELETE FROM installation WHERE app_id = $1 AND id = $2
        AND updated_at = to_timestamp($3::float8 / 1000.0)::timestamptz(3)`,
    [appId, failure.installation, failure.invalidAsOfMs],
  );
}

/**
 * Notes on the record of a push which profiles kept their invalid tokens; an empty list clears the
 * note.
 */
export async function noteKeptTokens(
  db: Handle,
  { appId, pushId }: PushKey,
  kept: readonly KeptTokens[],
): Promise<void> {
  await db.query(
    'UPDATE notification SET kept_tokens = $3, updated_at = now() WHERE app_id = $1 AND id = $2',
    [appId, pushId, kept.length === 0 ? null : JSON.stringify(kept)],
  );
}

/** Invalid tokens that a push kept, of one profile. */
export interface PushWithKeptTokens extends KeptTokens {
  appId: string;
  objectId: string;
}

/** Pushes of the last day that wait for an operator, the newest ones. */
const waitingPushes = `SELECT app_id, object_id, kept_tokens FROM notification
   WHERE kept_tokens IS NOT NULL AND finished_at > now() - interval '1 day' ORDER BY id DESC LIMIT $1`;

/**
 * Lists the invalid tokens that pushes of the last day kept, by push and profile, the newest pushes
 * first.
 */
export async function listKeptTokens(db: Handle, limit: number): Promise<PushWithKeptTokens[]> {
  const { rows } = await db.query<{ app_id: string; object_id: string; kept_tokens: KeptTokens[] }>(
    waitingPushes,
    [limit],
  );
  return rows.flatMap(({ app_id: appId, object_id: objectId, kept_tokens: kept }) =>
    kept.map((one) => ({ appId, objectId, ...one })),
  );
}

/** Counts these tokens by profile. */
export async function countKeptTokens(
  db: Handle,
  limit: number,
): Promise<{ appId: string; connector: string; profile: string; tokens: number }[]> {
  const counts = new Map<string, { appId: string; connector: string; profile: string; tokens: number }>();
  for (const { appId, connector, profile, kept } of await listKeptTokens(db, limit)) {
    const key = JSON.stringify([appId, connector, profile]);
    const known = counts.get(key) ?? { appId, connector, profile, tokens: 0 };
    known.tokens = Math.max(known.tokens, kept);
    counts.set(key, known);
  }
  return [...counts.values()].slice(0, limit);
}
