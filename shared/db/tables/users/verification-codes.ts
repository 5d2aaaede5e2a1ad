import type { Handle } from '../../pool.ts';

/** Whose code: a number may have one per purpose, and per account where only that account may use it. */
export interface CodeKey {
  appId: string;
  purpose: string;
  /** In international form. */
  number: string;
  /** Account that asked; empty when whoever holds the phone may use the code. */
  subject: string;
}

export interface NewCode extends CodeKey {
  id: string;
  digest: string;
  expiresAt: Date;
  /** Digest of the network address that asked. */
  askedFrom: string;
}

/** Takes the place of an older code of the same owner. */
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
 * Counts one try and gives what to compare with: before the comparison, so that parallel guesses cannot outrun
 * the limit. Undefined when there is no code, or it has expired, or its tries are used up.
 */
export async function countAttempt(
  db: Handle,
  owner: CodeKey,
  { maxAttempts, now }: { maxAttempts: number; now: Date },
): Promise<{ id: string; digest: string } | undefined> {
  const { rows } = await db.query<{ id: string; digest: string }>(
    `UPDATE verification_code SET attempts = attempts + 1
      WHERE app_id = $1 AND purpose = $2 AND number = $3 AND subject = $4
        AND expires_at > $5 AND attempts < $6
     RETURNING id, digest`,
    [owner.appId, owner.purpose, owner.number, owner.subject, now, maxAttempts],
  );
  return rows[0];
}

/** Spends the very code that was compared; whoever deletes it has it, so of any number at once one does. */
export async function spendCode(tx: Handle, owner: CodeKey, id: string): Promise<boolean> {
  const { rowCount } = await tx.query(
    `DELETE FROM verification_code
      WHERE app_id = $1 AND purpose = $2 AND number = $3 AND subject = $4 AND id = $5`,
    [owner.appId, owner.purpose, owner.number, owner.subject, id],
  );
  return (rowCount ?? 0) > 0;
}

/** Deletes the codes that only this account may use. */
export async function deleteCodesOfSubject(tx: Handle, appId: string, subject: string): Promise<void> {
  if (subject === '') throw new Error('codes of nobody in particular are not deleted together');
  await tx.query(`DELETE FROM verification_code WHERE app_id = $1 AND subject = $2 AND subject <> ''`, [
    appId,
    subject,
  ]);
}

export async function deleteExpiredCodes(db: Handle, now: Date, limit: number): Promise<number> {
  const { rowCount } = await db.query(
    `DELETE FROM verification_code WHERE ctid IN (
       SELECT ctid FROM verification_code WHERE expires_at < $1 ORDER BY expires_at LIMIT $2
       FOR UPDATE SKIP LOCKED)`,
    [now, limit],
  );
  return rowCount ?? 0;
}

/** The newest codes for a purpose that one network address asked for and that anybody who holds the phone may use. */
export async function selectCodesAskedFrom(
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

/** The account that asked last for a code to this number; undefined when none did. */
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
