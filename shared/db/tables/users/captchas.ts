import type { Handle } from '../../pool.ts';

/** Key of a captcha. */
export interface CaptchaId {
  appId: string;
  token: string;
}

/** Captcha to insert. */
export interface NewCaptcha extends CaptchaId {
  /** Encrypted. */
  answer: Buffer;
  /** PNG. */
  image: Buffer;
  expiresAt: Date;
}

export async function insertCaptcha(db: Handle, captcha: NewCaptcha): Promise<void> {
  await db.query(
    'INSERT INTO captcha (app_id, token, answer, image, expires_at) VALUES ($1, $2, $3, $4, $5)',
    [captcha.appId, captcha.token, captcha.answer, captcha.image, captcha.expiresAt],
  );
}

/** Finds the image of an unsolved captcha. */
export async function findCaptchaImage(
  db: Handle,
  { appId, token }: CaptchaId,
  now: Date,
): Promise<Buffer | undefined> {
  const { rows } = await db.query<{ image: Buffer }>(
    `SELECT image FROM captcha
      WHERE app_id = $1 AND token = $2 AND expires_at > $3 AND validate_digest IS NULL`,
    [appId, token, now],
  );
  return rows[0]?.image;
}

/** Finds the encrypted answer of a captcha in any state. */
export async function findCaptchaAnswer(
  db: Handle,
  { appId, token }: CaptchaId,
): Promise<Buffer | undefined> {
  const { rows } = await db.query<{ answer: Buffer }>(
    'SELECT answer FROM captcha WHERE app_id = $1 AND token = $2',
    [appId, token],
  );
  return rows[0]?.answer;
}

/** Counts one try and returns the encrypted answer; undefined for an expired or solved captcha, or without tries left. */
export async function countCaptchaAttempt(
  db: Handle,
  { appId, token }: CaptchaId,
  { maxAttempts, now }: { maxAttempts: number; now: Date },
): Promise<Buffer | undefined> {
  const { rows } = await db.query<{ answer: Buffer }>(
    `UPDATE captcha SET attempts = attempts + 1
      WHERE app_id = $1 AND token = $2 AND expires_at > $3 AND attempts < $4 AND validate_digest IS NULL
     RETURNING answer`,
    [appId, token, now, maxAttempts],
  );
  return rows[0]?.answer;
}

/** Marks a captcha as solved. Its validate token is valid until `expiresAt`. Returns false when it was solved already. */
export async function solveCaptcha(
  db: Handle,
  { appId, token }: CaptchaId,
  { digest, expiresAt }: { digest: Buffer; expiresAt: Date },
): Promise<boolean> {
  const { rowCount } = await db.query(
    `UPDATE captcha SET validate_digest = $3, expires_at = $4
      WHERE app_id = $1 AND token = $2 AND validate_digest IS NULL`,
    [appId, token, digest, expiresAt],
  );
  return (rowCount ?? 0) > 0;
}

/** Spends a validate token by deleting its row: of concurrent calls one succeeds. */
export async function spendValidateToken(
  tx: Handle,
  appId: string,
  { digest, now }: { digest: Buffer; now: Date },
): Promise<boolean> {
  const { rowCount } = await tx.query(
    'DELETE FROM captcha WHERE app_id = $1 AND validate_digest = $2 AND expires_at > $3',
    [appId, digest, now],
  );
  return (rowCount ?? 0) > 0;
}

export async function deleteExpiredCaptchas(db: Handle, now: Date, limit: number): Promise<number> {
  const { rowCount } = await db.query(
    `WITH old AS MATERIALIZED (
       SELECT app_id, token FROM captcha WHERE expires_at < $1 ORDER BY expires_at LIMIT $2)
     DELETE FROM captcha c USING old
      WHERE c.app_id = old.app_id AND c.token = old.token AND c.expires_at < $1`,
    [now, limit],
  );
  return rowCount ?? 0;
}
