import { dayMs, hourMs } from '../../clock.ts';
import type { Handle } from '../pool.ts';
import { membersOf } from '../prepared.ts';
import { query, sweepOf } from '../query.ts';

interface CaptchaId {
  appId: string;
  token: string;
}

interface NewCaptcha extends CaptchaId {
  /** Encrypted answer. */
  answer: Buffer;
  /** Image as PNG. */
  image: Buffer;
  expiresAt: Date;
}

export const insertCaptcha = (db: Handle, captcha: NewCaptcha) =>
  query(db).run(
    'INSERT INTO captcha (app_id, token, answer, image, expires_at) VALUES ($1, $2, $3, $4, $5)',
    [...[captcha.appId, captcha.token, captcha.answer, captcha.image, captcha.expiresAt]],
  );

/** Finds the image of an unsolved captcha. */
export const findCaptchaImage = (db: Handle, { appId, token }: CaptchaId, now: Date) =>
  query(db).value<Buffer>(
    `SELECT image FROM captcha
      WHERE app_id = $1 AND token = $2 AND expires_at > $3 AND validate_digest IS NULL`,
    [appId, token, now],
  );

/** Finds the encrypted answer of a captcha in any state. */
export const findCaptchaAnswer = (db: Handle, { appId, token }: CaptchaId) =>
  query(db).value<Buffer>('SELECT answer FROM captcha WHERE app_id = $1 AND token = $2', [
    appId,
    token,
  ]);

/**
 * Counts one try, and returns the encrypted answer. Returns undefined if the captcha has expired or
 * no try is left.
 */
export const countCaptchaAttempt = (
  db: Handle,
  { appId, token }: CaptchaId,
  { maxAttempts, now }: { maxAttempts: number; now: Date },
) =>
  query(db).value<Buffer>(
    `UPDATE captcha SET attempts = attempts + 1
      WHERE app_id = $1 AND token = $2 AND expires_at > $3 AND attempts < $4
        AND validate_digest IS NULL
     RETURNING answer`,
    [appId, token, now, maxAttempts],
  );

/** Marks a captcha as solved until `expiresAt`. Returns false if it was already solved. */
export const solveCaptcha = (
  db: Handle,
  { appId, token }: CaptchaId,
  { digest, expiresAt }: { digest: Buffer; expiresAt: Date },
) =>
  query(db).hasRows(
    `UPDATE captcha SET validate_digest = $3, expires_at = $4
      WHERE app_id = $1 AND token = $2 AND validate_digest IS NULL`,
    [appId, token, digest, expiresAt],
  );

/** Uses up a validate token by deleting its row. Only one of several concurrent calls succeeds. */
export const spendValidateToken = (
  tx: Handle,
  appId: string,
  { digest, now }: { digest: Buffer; now: Date },
) =>
  query(tx).hasRows(
    'DELETE FROM captcha WHERE app_id = $1 AND validate_digest = $2 AND expires_at > $3',
    [appId, digest, now],
  );

export const deleteExpiredCaptchas = sweepOf({
  table: 'captcha',
  key: ['app_id', 'token'],
  column: 'expires_at',
});

export type LinkPurpose = 'verifyEmail' | 'resetPassword';

/** Link in a mail to a user. */
export interface Link {
  appId: string;
  purpose: LinkPurpose;
  /** Internal id of the user. */
  userId: number;
  /** Address to which the link was sent. */
  email: string;
}

export const insertLink = (
  tx: Handle,
  link: Link,
  { digest, expiresAt }: { digest: Buffer; expiresAt: Date },
) =>
  query(tx).run(
    `INSERT INTO link_token (app_id, purpose, user_id, email, digest, expires_at)
     VALUES ($1, $2, $3, $4, $5, $6)`,
    [link.appId, link.purpose, link.userId, link.email, digest, expiresAt],
  );

const linkColumns = membersOf('link_token', 'app_id, purpose, user_id, email');

/** Finds the link of a token. Does not use it up. */
export const findLink = (
  db: Handle,
  purpose: LinkPurpose,
  { digest, now }: { digest: Buffer; now: Date },
) =>
  query(db).row<Link>(
    `SELECT ${linkColumns} FROM link_token
      WHERE digest = $1 AND purpose = $2 AND expires_at > $3`,
    [digest, purpose, now],
  );

/** Uses up a token. Only one of several concurrent calls gets the link. */
export const spendLink = (
  tx: Handle,
  purpose: LinkPurpose,
  { digest, now }: { digest: Buffer; now: Date },
) =>
  query(tx).row<Link>(
    `DELETE FROM link_token WHERE digest = $1 AND purpose = $2 AND expires_at > $3
     RETURNING ${linkColumns}`,
    [digest, purpose, now],
  );

/** Deletes a user's links for a purpose. */
export const deleteLinksOfUser = (
  tx: Handle,
  { appId, userId, purpose }: Pick<Link, 'appId' | 'userId' | 'purpose'>,
) =>
  query(tx).run('DELETE FROM link_token WHERE app_id = $1 AND user_id = $2 AND purpose = $3', [
    appId,
    userId,
    purpose,
  ]);

export const deleteExpiredLinks = sweepOf({
  table: 'link_token',
  key: ['app_id', 'digest'],
  column: 'expires_at',
});

/** Returns whether an identifier is locked. */
export const isLoginLocked = (
  db: Handle,
  appId: string,
  { identifier, now }: { identifier: Buffer; now: Date },
) =>
  query(db).hasRows(
    'SELECT FROM login_lock WHERE app_id = $1 AND identifier = $2 AND locked_until > $3',
    [appId, identifier, now],
  );

/**
 * Counts a failed login (protocol/users.md#account-lock). It is one statement, so that concurrent
 * calls are all counted. Returns whether the identifier is locked now. Counts nothing while it is
 * locked, so the lock ends one window after the failure that caused it. The times of failures are
 * sorted, so `width_bucket` returns the number of failures before the window. A sharded database
 * supports no subquery here.
 */
export async function countLoginFailure(
  db: Handle,
  appId: string,
  {
    identifier,
    now,
    rule,
  }: { identifier: Buffer; now: Date; rule: { maxFailures: number; windowMs: number } },
): Promise<boolean> {
  const after = (ms: number) => new Date(now.getTime() + ms);
  return query(db).boolean(
    `INSERT INTO login_lock AS l (app_id, identifier, failed_at, last_failed_at)
     VALUES ($1, $2, ARRAY[$3::timestamptz(3)], $3)
     ON CONFLICT (app_id, identifier) DO UPDATE SET
       failed_at = CASE WHEN l.locked_until > $3 THEN l.failed_at
         ELSE l.failed_at[width_bucket($4, l.failed_at) + 1:] || $3::timestamptz(3) END,
       locked_until = CASE WHEN l.locked_until > $3 THEN l.locked_until
         WHEN cardinality(l.failed_at) - width_bucket($4,
       l.failed_at) >= $5 THEN $6::timestamptz END,
       last_failed_at = CASE WHEN l.locked_until > $3 THEN l.last_failed_at ELSE $3 END
     RETURNING coalesce(locked_until > $3, false) AS is_locked`,
    [appId, identifier, now, after(-rule.windowMs), rule.maxFailures, after(rule.windowMs)],
  );
}

/** Deletes entries without recent failures. */
export const deleteOldLoginLocks = sweepOf({
  table: 'login_lock',
  key: ['app_id', 'identifier'],
  column: 'last_failed_at',
});

/**
 * Reads the lock of an identifier: the number of failures since `since`, and the end of the lock.
 * `lockedUntil` is null if the identifier is not locked.
 */
export async function readLoginLock(
  db: Handle,
  appId: string,
  { identifier, now, since }: { identifier: Buffer; now: Date; since: Date },
): Promise<{ failures: number; lockedUntil: Date | null }> {
  const lock = await query(db).row<{ failures: number; lockedUntil: Date | null }>(
    `SELECT (SELECT count(*) FROM unnest(failed_at) AS at WHERE at > $4) AS failures,
            CASE WHEN locked_until > $3 THEN locked_until END AS "lockedUntil"
       FROM login_lock WHERE app_id = $1 AND identifier = $2`,
    [appId, identifier, now, since],
  );
  return lock ?? { failures: 0, lockedUntil: null };
}

/** Deletes the failures of an identifier, and so its lock. */
export const deleteLoginLock = (db: Handle, appId: string, identifier: Buffer) =>
  query(db).run('DELETE FROM login_lock WHERE app_id = $1 AND identifier = $2', [
    appId,
    identifier,
  ]);

/**
 * Users and bytes that one network address has added to an app in the current windows
 * (`send_budget`).
 */
interface SignUpUse {
  users: { n: number; since: Date };
  bytes: { n: number; since: Date };
}

/** Length of the windows. */
export const signUpWindows = { usersMs: hourMs, bytesMs: dayMs } as const;

/**
 * Counts one new user and its bytes for a network address. Returns the new counts. Other calls for
 * the address wait until `tx` ends. If a count is too high, the caller rolls back `tx`, which also
 * undoes the count.
 */
export async function countSignUp(
  tx: Handle,
  { appId, key, bytes }: { appId: string; key: string; bytes: number },
  now: Date,
): Promise<SignUpUse> {
  const before = (windowMs: number) => new Date(now.getTime() - windowMs);
  const rows = await query(tx).rows<{ scope: string; n: number; since: Date }>(
    `INSERT INTO send_budget AS b (app_id, scope, key, since, n)
     VALUES ($1, 'signUpBytes', $2, $3, $4), ($1, 'signUps', $2, $3, 1)
     ON CONFLICT (app_id, scope, key) DO UPDATE
        SET n = CASE WHEN b.since <= CASE WHEN b.scope = 'signUps' THEN $5::timestamptz ELSE $6 END
                     THEN excluded.n ELSE b.n + excluded.n END,
            since = CASE WHEN b.since <= CASE WHEN b.scope = 'signUps' THEN $5::timestamptz
            ELSE $6 END
                         THEN excluded.since ELSE b.since END
     RETURNING scope, n, since`,
    [appId, key, now, bytes, before(signUpWindows.usersMs), before(signUpWindows.bytesMs)],
  );
  const of = (scope: string) => rows.find((row) => row.scope === scope) ?? { n: 0, since: now };
  return { users: of('signUps'), bytes: of('signUpBytes') };
}

/**
 * Key of a code. There is one code per number and purpose, or one per account if only this account
 * may use the code.
 */
export interface CodeKey {
  appId: string;
  purpose: string;
  /** Phone number in international form. */
  number: string;
  /** The only account that may use the code. Empty: any caller may use it. */
  subject: string;
}

interface NewCode extends CodeKey {
  id: string;
  digest: string;
  expiresAt: Date;
  /** Digest of the network address that requested the code. */
  requestedFrom: string;
}

const ofCode = 'app_id = $1 AND purpose = $2 AND number = $3 AND subject = $4';
const codeKey = ({ appId, purpose, number, subject }: CodeKey) => [appId, purpose, number, subject];

/** Writes a code. Replaces an older code with the same key. */
export const putCode = (tx: Handle, code: NewCode) =>
  query(tx).run(
    `INSERT INTO verification_code (app_id, purpose, number, subject, id, digest, expires_at,
      asked_from)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
     ON CONFLICT (app_id, purpose, number, subject) DO UPDATE
        SET id = excluded.id, digest = excluded.digest, expires_at = excluded.expires_at,
            attempts = 0, asked_from = excluded.asked_from`,
    [...codeKey(code), code.id, code.digest, code.expiresAt, code.requestedFrom],
  );

/**
 * Counts one try, and returns the digest to compare. Counting before comparing prevents concurrent
 * guesses from exceeding the limit. Returns undefined if there is no code, or if it has expired or
 * has no tries left.
 */
export const countAttempt = (
  db: Handle,
  key: CodeKey,
  { maxAttempts, now }: { maxAttempts: number; now: Date },
) =>
  query(db).row<{ id: string; digest: string }>(
    `UPDATE verification_code SET attempts = attempts + 1
      WHERE ${ofCode} AND expires_at > $5 AND attempts < $6
     RETURNING id, digest`,
    [...codeKey(key), now, maxAttempts],
  );

/**
 * Uses up the code that was compared by deleting it. Only one of several concurrent calls succeeds.
 */
export const spendCode = (tx: Handle, key: CodeKey, id: string) =>
  query(tx).hasRows(`DELETE FROM verification_code WHERE ${ofCode} AND id = $5`, [
    ...codeKey(key),
    id,
  ]);

/** Deletes the codes that only this account may use. */
export async function deleteCodesOfSubject(
  tx: Handle,
  appId: string,
  subject: string,
): Promise<void> {
  if (subject === '') throw new Error('a subject is required');
  await tx.query(
    `DELETE FROM verification_code WHERE app_id = $1 AND subject = $2 AND subject <> ''`,
    [appId, subject],
  );
}

export const deleteExpiredCodes = sweepOf({
  table: 'verification_code',
  key: ['app_id', 'purpose', 'number', 'subject'],
  column: 'expires_at',
});

/** Selects the newest codes that one network address requested and that any caller may use. */
export const selectCodesRequestedFrom = (
  db: Handle,
  {
    appId,
    purpose,
    requestedFrom: askedFrom,
  }: Pick<NewCode, 'appId' | 'purpose' | 'requestedFrom'>,
  { now, limit }: { now: Date; limit: number },
) =>
  query(db).rows<{ number: string; id: string; digest: string }>(
    `SELECT number, id, digest FROM verification_code
      WHERE app_id = $1 AND purpose = $2 AND asked_from = $3 AND subject = '' AND expires_at > $4
      ORDER BY expires_at DESC LIMIT $5`,
    [appId, purpose, askedFrom, now, limit],
  );

/** Finds the account that last requested a code for this number. */
export const findCodeSubject = (db: Handle, { appId, purpose, number }: Omit<CodeKey, 'subject'>) =>
  query(db).value<string>(
    `SELECT subject FROM verification_code WHERE app_id = $1 AND purpose = $2 AND number = $3
      ORDER BY expires_at DESC LIMIT 1`,
    [appId, purpose, number],
  );
