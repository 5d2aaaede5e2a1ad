import type { Handle } from '../../pool.ts';

/** Key of a code: a number has one per purpose, or one per purpose and account if only that account may use it. */
export interface CodeKey {
  appId: string;
  purpose: string;
  /** In international form. */
  number: string;
  /** The only account that may use the code; empty: any caller with the code. */
  subject: string;
}

/** Code to write. */
export interface NewCode extends CodeKey {
  id: string;
  digest: string;
  expiresAt: Date;
  /** Digest of the network address that requested the code. */
  askedFrom: string;
}

/** Writes a code, which replaces an older one of the same key. */
export async function putCode(tx: Handle, code: NewCode): Promise<void> {
  await tx.query(
    `INSERT INTO verification_code (app_id, purpose, number, subject, id, digest, expires_at, asked_from)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
     ON CONFLICT (app_id, purpose, number, subject) DO UPDATE
        SET id = excluded.id, digest = excluded.digest, expires_at = excluded.expires_at, attempts = 0,
            asked_from = excluded.asked_from`,
    [
      code.appId,
      code.purpose,
      code.number,
      code.subject,
      code.id,
      code.digest,
      code.expiresAt,
      code.askedFrom,
    ],
  );
}

/**
 * Counts one try and returns the digest to compare with. Counting before the comparison prevents concurrent guesses from
 * exceeding the limit. Returns undefined without a code, or when it has expired or has no tries left.
 */
export async function countAttempt(
  db: Handle,
  key: CodeKey,
  { maxAttempts, now }: { maxAttempts: number; now: Date },
): Promise<{ id: string; digest: string } | undefined> {
  const { rows } = await db.query<{ id: string; digest: string }>(
    `UPDATE verification_code SET attempts = attempts + 1
      WHERE app_id = $1 AND purpose = $2 AND number = $3 AND subject = $4
        AND expires_at > $5 AND attempts < $6
     RETURNING id, digest`,
    [key.appId, key.purpose, key.number, key.subject, now, maxAttempts],
  );
  return rows[0];
}

/** Spends the code that was compared, by deleting it: of concurrent calls one succeeds. */
export async function spendCode(tx: Handle, key: CodeKey, id: string): Promise<boolean> {
  const { rowCount } = await tx.query(
    `DELETE FROM verification_code
      WHERE app_id = $1 AND purpose = $2 AND number = $3 AND subject = $4 AND id = $5`,
    [key.appId, key.purpose, key.number, key.subject, id],
  );
  return (rowCount ?? 0) > 0;
}

/** Deletes the codes that only this account may use. */
export async function deleteCodesOfSubject(tx: Handle, appId: string, subject: string): Promise<void> {
  if (subject === '') throw new Error('a subject is required');
  await tx.query(`DELETE FROM verification_code WHERE app_id = $1 AND subject = $2 AND subject <> ''`, [
    appId,
    subject,
  ]);
}

export async function deleteExpiredCodes(db: Handle, now: Date, limit: number): Promise<number> {
  const { rowCount } = await db.query(
    `WITH old AS MATERIALIZED (
       SELECT app_id, purpose, number, subject FROM verification_code
        WHERE expires_at < $1 ORDER BY expires_at LIMIT $2)
     DELETE FROM verification_code c USING old
      WHERE c.app_id = old.app_id AND c.purpose = old.purpose AND c.number = old.number
        AND c.subject = old.subject AND c.expires_at < $1`,
    [now, limit],
  );
  return rowCount ?? 0;
}

/** Selects the newest codes for a purpose that one network address requested and that any caller may use. */
export async function selectCodesRequestedFrom(
  db: Handle,
  { appId, purpose, askedFrom }: Pick<NewCode, 'appId' | 'purpose' | 'askedFrom'>,
  { now, limit }: { now: Date; limit: number },
): Promise<{ number: string; id: string; digest: string }[]> {
  const { rows } = await db.query<{ number: string; id: string; digest: string }>(
    `SELECT number, id, digest FROM verification_code
      WHERE app_id = $1 AND purpose = $2 AND asked_from = $3 AND subject = '' AND expires_at > $4
      ORDER BY expires_at DESC LIMIT $5`,
    [appId, purpose, askedFrom, now, limit],
  );
  return rows;
}

/** Finds the account that last requested a code for this number. */
export async function findCodeSubject(
  db: Handle,
  { appId, purpose, number }: Omit<CodeKey, 'subject'>,
): Promise<string | undefined> {
  const { rows } = await db.query<{ subject: string }>(
    `SELECT subject FROM verification_code WHERE app_id = $1 AND purpose = $2 AND number = $3
      ORDER BY expires_at DESC LIMIT 1`,
    [appId, purpose, number],
  );
  return rows[0]?.subject;
}
