import {
  type AuthData,
  type Identity,
  type Sealer,
  sealedAuthData,
} from '../../domain/users/auth-data.ts';
import type { SessionSecret, User, UserDraft } from '../../domain/users/user.ts';
import type { CopyValue } from '../copy.ts';
import type { Database, Handle } from '../pool.ts';
import { membersOf, type PreparedStatement, PreparedStatements, prepare } from '../prepared.ts';
import { listsOf, query } from '../query.ts';
import { type AppRow, forEachApp } from '../sharding.ts';
import { type Selection, selectByIds, selectRows } from './selection.ts';

const jsonOrNull = (value: object | null): string | null =>
  value === null ? null : JSON.stringify(value);

/** Columns that clients may write, and for each the value of a draft. */
const valueByColumn: Readonly<Record<string, (draft: UserDraft) => CopyValue>> = {
  username: (draft) => draft.username,
  email: (draft) => draft.email,
  email_verified: (draft) => draft.emailVerified,
  mobile_phone_number: (draft) => draft.mobilePhoneNumber,
  mobile_phone_verified: (draft) => draft.mobilePhoneVerified,
  auth_data: (draft) => jsonOrNull(draft.authData),
  acl: (draft) => jsonOrNull(draft.acl),
  fields: (draft) => JSON.stringify(draft.fields),
};
export const userDraftColumns = Object.keys(valueByColumn);
const draftReaders = Object.values(valueByColumn);

/** Returns the values of a draft in the order of `userDraftColumns`. */
export const userDraftValues = (draft: UserDraft): CopyValue[] =>
  draftReaders.map((read) => read(draft));

const secretColumns = 'password_hash, session_nonce, session_hash';
const readColumns = membersOf(
  'app_user',
  `id, object_id, created_at, updated_at, ${secretColumns}, ${userDraftColumns.join(', ')}`,
);
const from = { table: 'app_user', columns: readColumns } as const;

type UserRow = Omit<User, 'session'> & { sessionNonce: Buffer; sessionHash: Buffer };

const toUser = ({ sessionNonce: nonce, sessionHash: hash, ...user }: UserRow): User => ({
  ...user,
  session: { nonce, hash },
});

async function queryUser(
  db: Handle,
  statement: PreparedStatement,
  values: unknown[],
): Promise<User> {
  return toUser(await query(db).one<UserRow>(statement, values));
}

/** Columns that identify a user. Each has a unique index. */
const keyColumns = {
  id: 'id',
  objectId: 'object_id',
  username: 'username',
  email: 'email',
  mobilePhoneNumber: 'mobile_phone_number',
  sessionHash: 'session_hash',
} as const;

export type UserKey = {
  [K in keyof typeof keyColumns]: Record<K, string | number | Buffer>;
}[keyof typeof keyColumns];

const byKey = new PreparedStatements();

/** Finds a user by a unique column. With `isLocked`, locks the row until the transaction ends. */
export async function findUser(
  db: Handle,
  appId: string,
  { key, isLocked = false }: { key: UserKey; isLocked?: boolean },
): Promise<User | undefined> {
  const [[name, value] = ['', '']] = Object.entries(key);
  const column = Object.entries(keyColumns).find(([known]) => known === name)?.[1];
  if (!column) throw new Error('not a key of users');
  const text = `SELECT ${readColumns} FROM app_user WHERE app_id = $1
    AND ${column} = $2${isLocked ? ' FOR UPDATE' : ''}`;
  const row = await query(db).row<UserRow>(byKey.of(text), [appId, value]);
  return row && toUser(row);
}

/** Finds users by their public ids, unordered. Throws like `selectByIds`. */
export async function findUsers(
  db: Handle,
  appId: string,
  selection: { objectIds: string[]; maxBytes: number },
): Promise<User[]> {
  return (await selectByIds<UserRow>(db, from, { appId, ...selection })).map(toUser);
}

const sessionOwner = prepare(
  'SELECT id, object_id AS "objectId" FROM app_user WHERE app_id = $1 AND session_hash = $2',
);

/** Finds the ids of the user that has a session token. Most calls need only these. */
export const findSessionOwner = (db: Handle, appId: string, hash: Buffer) =>
  query(db).row<{ id: number; objectId: string }>(sessionOwner, [appId, hash]);

const insertStatement = prepare(
  `INSERT INTO app_user (app_id, object_id, password_hash, session_nonce, session_hash,
                         created_at, updated_at, auth_sealed, auth_sealed_whole,
                         ${userDraftColumns.join(', ')})
   VALUES ($1, $2, $3, $4, $5, $6, $6, true, true,
     ${userDraftColumns.map((_, i) => `$${i + 7}`).join(', ')})
   RETURNING ${readColumns}`,
);

/** Inserts a user with an encrypted `authData`. Throws a unique violation if a value is taken. */
export const insertUser = (
  tx: Handle,
  appId: string,
  {
    draft,
    now,
    ...user
  }: Pick<User, 'objectId' | 'passwordHash' | 'session'> & { draft: UserDraft; now: Date },
) =>
  queryUser(tx, insertStatement, [
    ...[appId, user.objectId, user.passwordHash, user.session.nonce, user.session.hash, now],
    ...userDraftValues(draft),
  ]);

const updateStatement = prepare(
  `UPDATE app_user SET updated_at = $3, auth_sealed = true, auth_sealed_whole = true,
          ${userDraftColumns.map((name, i) => `${name} = $${i + 4}`).join(', ')}
    WHERE app_id = $1 AND id = $2 RETURNING ${readColumns}`,
);

/** Updates a locked user, with an encrypted `authData`. Throws like `insertUser`. */
export const updateUser = (
  tx: Handle,
  appId: string,
  { id, draft, now }: { id: number; draft: UserDraft; now: Date },
) => queryUser(tx, updateStatement, [appId, id, now, ...userDraftValues(draft)]);

const passwordStatement = prepare(
  `UPDATE app_user SET password_hash = $3, updated_at = $4 WHERE app_id = $1 AND id = $2
    RETURNING ${readColumns}`,
);

/** Sets or removes the password of a locked user. */
export const setPassword = (
  tx: Handle,
  appId: string,
  { id, hash, now }: { id: number; hash: string | null; now: Date },
) => queryUser(tx, passwordStatement, [appId, id, hash, now]);

const hashStatement = prepare(
  'UPDATE app_user SET password_hash = $4 WHERE app_id = $1 AND id = $2 AND password_hash = $3',
);

/** Replaces a hash with a stronger one, unless the password has changed since. */
export const replaceHash = (
  db: Handle,
  appId: string,
  { id, from, to }: { id: number; from: string; to: string },
) => query(db).run(hashStatement, [appId, id, from, to]);

const sessionStatement = prepare(
  `UPDATE app_user SET session_nonce = $3, session_hash = $4,
          updated_at = coalesce($6, updated_at)
    WHERE app_id = $1 AND id = $2 AND ($5::bytea IS NULL OR session_hash = $5)
   RETURNING ${readColumns}`,
);

/**
 * Replaces the session of a user. With `from`, only if `from` is still the current session,
 * otherwise returns undefined. With `now`, sets `updated_at`.
 */
export async function replaceSession(
  db: Handle,
  appId: string,
  { id, to, from, now }: { id: number; to: SessionSecret; from?: Buffer; now?: Date },
): Promise<User | undefined> {
  const values = [appId, id, to.nonce, to.hash, from, now];
  const row = await query(db).row<UserRow>(sessionStatement, values);
  return row && toUser(row);
}

const deleteStatement = prepare('DELETE FROM app_user WHERE app_id = $1 AND id = $2');

export const deleteUser = (tx: Handle, appId: string, id: number) =>
  query(tx).run(deleteStatement, [appId, id]);

export async function selectUsers(tx: Handle, selection: Selection): Promise<User[]> {
  return (await selectRows<UserRow>(tx, from, selection)).map(toUser);
}

/**
 * SQL of an app's identities whose platforms and uids are in two parameters, starting at `first`.
 */
const identitiesAmong = (first: number) => `user_identity
       JOIN unnest($${first}::text[], $${first + 1}::text[]) AS wanted (platform,
         uid) USING (platform, uid)
      WHERE app_id = $1`;

const columnsOf = (identities: Identity[]) => listsOf(identities, 'platform', 'uid');

/** Finds the ids of the users of these third-party accounts, without duplicates. */
export async function findUsersOfIdentities(
  db: Handle,
  appId: string,
  identities: Identity[],
): Promise<number[]> {
  if (identities.length === 0) return [];
  return query(db).column(`SELECT DISTINCT user_id FROM ${identitiesAmong(2)}`, [
    appId,
    ...columnsOf(identities),
  ]);
}

/**
 * Replaces the third-party accounts of a locked user. Returns accounts that belong to another user.
 * Inserts in index order and before deleting, so that concurrent calls do not deadlock. A delete
 * waits for no lock.
 */
export async function setIdentities(
  tx: Handle,
  appId: string,
  { userId, identities }: { userId: number; identities: Identity[] },
): Promise<Identity[]> {
  const values = [appId, userId, ...columnsOf(identities)];
  const taken = identities.length === 0 ? [] : await addIdentities(tx, values);
  await tx.query(
    `DELETE FROM user_identity
      WHERE app_id = $1 AND user_id = $2
        AND (platform, uid) NOT IN (SELECT * FROM unnest($3::text[], $4::text[]))`,
    values,
  );
  return taken;
}

async function addIdentities(tx: Handle, values: unknown[]): Promise<Identity[]> {
  await tx.query(
    `INSERT INTO user_identity (app_id, user_id, platform, uid)
     SELECT $1, $2, platform, uid FROM unnest($3::text[], $4::text[]) AS wanted (platform, uid)
      ORDER BY platform, uid
     ON CONFLICT DO NOTHING`,
    values,
  );
  return query(tx).rows(
    `SELECT platform, uid FROM ${identitiesAmong(3)} AND user_id <> $2`,
    values,
  );
}

/** Returns the given identities that a user has. */
export async function heldIdentities(
  tx: Handle,
  appId: string,
  { userId, identities }: { userId: number; identities: Identity[] },
): Promise<Identity[]> {
  if (identities.length === 0) return [];
  return query(tx).rows(`SELECT platform, uid FROM ${identitiesAmong(3)} AND user_id = $2`, [
    appId,
    userId,
    ...columnsOf(identities),
  ]);
}

/**
 * Removes UnionIDs from users that have them only with `main_account: false`. Returns whether there
 * was such a user.
 */
export async function releaseOtherAccounts(
  tx: Handle,
  appId: string,
  unions: Identity[],
): Promise<boolean> {
  if (unions.length === 0) return false;
  return query(tx).hasRows(
    `DELETE FROM user_identity i USING app_user u,
      unnest($2::text[], $3::text[]) AS wanted (platform, uid)
      WHERE i.app_id = $1 AND i.platform = wanted.platform AND i.uid = wanted.uid
        AND u.app_id = $1 AND u.id = i.user_id AND NOT EXISTS (
          SELECT 1 FROM jsonb_each(u.auth_data) AS e
           WHERE e.value ->> 'unionid' = i.uid
             AND i.platform = '_' || (e.value ->> 'platform') || '_unionid'
             AND coalesce(e.value ->> 'main_account', 'true') = 'true')`,
    [appId, ...columnsOf(unions)],
  );
}

const maxPlatformsRead = 1000;

/** Lists up to a thousand platforms of an app's users. Each takes one index lookup. */
export async function listPlatforms(db: Handle, appId: string): Promise<string[]> {
  const platforms = await query(db).column<string | null>(
    `WITH RECURSIVE known AS (
       SELECT min(platform) AS platform FROM user_identity WHERE app_id = $1
       UNION ALL
       SELECT (SELECT min(platform) FROM user_identity WHERE app_id = $1
         AND platform > known.platform)
         FROM known WHERE known.platform IS NOT NULL)
     SELECT platform FROM known LIMIT $2`,
    [appId, maxPlatformsRead],
  );
  return platforms.flatMap((platform) => platform ?? []);
}

const isUnsealed = 'NOT auth_sealed_whole AND auth_data IS NOT NULL';
const unsealed = `SELECT app_id, id FROM app_user WHERE ${isUnsealed} ORDER BY app_id, id LIMIT $1`;
const lockUnsealed = `
  SELECT app_id, id, auth_data FROM app_user
   WHERE ${isUnsealed} AND app_id = $1 AND id = ANY($2::bigint[]) ORDER BY id
     FOR UPDATE SKIP LOCKED`;

/**
 * Encrypts the platform secrets of up to `limit` users whose rows are from a version that stored
 * some of them as plain text. Returns the number of rows read. Skips users that another transaction
 * has locked.
 */
export function sealAuthDataOfOldRows(
  db: Database,
  sealer: Sealer,
  limit: number,
): Promise<number> {
  return db.transaction(async (tx) => {
    const rows = await forEachApp(tx, { text: unsealed, values: [limit] }, (appId, ids) =>
      query(tx).rows<AppRow & { auth_data: AuthData }>(lockUnsealed, [appId, ids]),
    );
    if (rows.length === 0) return 0;
    const sealed = rows.map((row) =>
      JSON.stringify(sealedAuthData(sealer, row.app_id, row.auth_data)),
    );
    await tx.query(
      `UPDATE app_user u SET auth_data = s.auth_data, auth_sealed = true, auth_sealed_whole = true
         FROM unnest($1::text[], $2::bigint[], $3::jsonb[]) AS s (app_id, id, auth_data)
        WHERE u.app_id = s.app_id AND u.id = s.id`,
      [rows.map((row) => row.app_id), rows.map(({ id }) => id), sealed],
    );
    return rows.length;
  });
}
