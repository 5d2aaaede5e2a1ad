import type { Identity } from '../../domain/users/auth-data.ts';
import type { SessionSecret, UserDraft } from '../../domain/users/user.ts';
import { type CopyValue, copyIn, RowEncoder } from '../copy.ts';
import type { Handle } from '../pool.ts';
import { query } from '../query.ts';
import { seenMembers } from './import-roles.ts';
import {
  type Merged,
  openStage,
  type Stage,
  takeUnwritten,
  type Unwritten,
  unstage,
  unwrittenRows,
} from './imports.ts';
import { userDraftColumns, userDraftValues } from './users.ts';

/** Validated user of an import. Times are ISO 8601. */
export interface StagedUser {
  line: number;
  objectId: string;
  draft: UserDraft;
  passwordHash: string | null;
  session: SessionSecret;
  /**
   * Third-party accounts and UnionIDs. A taken account is a conflict; a taken UnionID stays with
   * its present user.
   */
  identities: { own: Identity[]; claims: Identity[] };
  createdAt: string;
  updatedAt: string;
}

const users: Stage = {
  name: 'import_user',
  table: 'app_user',
  shadow: seenMembers.users,
  columns: [
    ...['object_id', 'password_hash', 'session_nonce', 'session_hash', 'created_at', 'updated_at'],
    ...userDraftColumns,
  ],
  unique: {
    username: 'username',
    email: 'email',
    mobile_phone_number: 'mobilePhoneNumber',
    session_hash: 'sessionToken',
  },
};

/** The target tables, or the tables of a dry run. */
interface Targets {
  users: string;
  identities: string;
}
const tables: Targets = { users: users.table, identities: 'user_identity' };
const shadows: Targets = { users: users.shadow, identities: 'import_seen_identity' };

/** Creates the temporary tables of an import on this connection. */
export async function openUserStage(connection: Handle): Promise<void> {
  const extra = ['NULL::bigint AS user_id', 'NULL::jsonb AS own', 'NULL::jsonb AS claims'];
  await openStage(connection, users, extra);
  await connection.query(`CREATE UNIQUE INDEX ON ${shadows.users} (app_id, id)`);
  await connection.query(
    `CREATE TEMP TABLE ${shadows.identities} (LIKE user_identity INCLUDING INDEXES)`,
  );
}

/**
 * Writes the new users of a batch in line order, with their third-party accounts, and returns the
 * other users. Existing users stay unchanged. The object ids of a batch must be distinct. With
 * `isDry`, only reads the tables.
 */
export async function mergeUsers(
  tx: Handle,
  appId: string,
  { rows, isDry }: { rows: StagedUser[]; isDry: boolean },
): Promise<Merged> {
  const encoder = new RowEncoder();
  const staged = rows.map((user) => encoder.encode(copyValues(user)));
  await copyIn(
    tx,
    { table: users.name, columns: ['line', 'own', 'claims', ...users.columns] },
    staged,
  );
  const unwritten = isDry ? await takeUnwrittenUsers(tx, appId) : [];
  const targets = isDry ? shadows : tables;
  for (;;) {
    await insertUsers(tx, appId, targets);
    const conflicts = await insertIdentities(tx, appId, targets);
    if (conflicts.length === 0) break;
    unwritten.push(...(await removeConflicts(tx, appId, { targets, conflicts })));
  }
  await insertAccounts(tx, appId, { identities: targets.identities, column: 'claims' });
  const written = await query(tx).rowCount(`DELETE FROM ${users.name} WHERE user_id IS NOT NULL`);
  if (written + unwritten.length < rows.length)
    unwritten.push(...(await unwrittenRows(tx, appId, users, targets.users)));
  return { written, unwritten };
}

const copyValues = ({
  identities: { own, claims },
  session,
  draft,
  ...user
}: StagedUser): CopyValue[] => [
  ...[user.line, JSON.stringify(own), JSON.stringify(claims), user.objectId, user.passwordHash],
  ...[session.nonce, session.hash, user.createdAt, user.updatedAt, ...userDraftValues(draft)],
];

/** Inserts the staged users that are not written yet, except users with a taken unique value. */
const insertUsers = (tx: Handle, appId: string, targets: Targets) =>
  query(tx).run(
    `WITH written AS (
       INSERT INTO ${targets.users} (app_id, auth_sealed, auth_sealed_whole,
         ${users.columns.join(', ')})
       SELECT $1, true, true, ${users.columns.join(', ')} FROM ${users.name} WHERE user_id IS NULL
         ORDER BY line
       ON CONFLICT DO NOTHING RETURNING id, object_id)
     UPDATE ${users.name} s SET user_id = w.id FROM written w WHERE s.object_id = w.object_id`,
    [appId],
  );

const identitiesIn = (column: 'own' | 'claims') =>
  `${users.name} s CROSS JOIN jsonb_to_recordset(s.${column}) AS x (platform text, uid text)`;

/** A staged user, and the user that already has one of its third-party accounts. */
interface Conflict {
  line: number;
  userId: number;
  objectId: string;
  platform: string;
  holderId: number;
  holder: string;
}

/**
 * Returns SQL of the staged users with third-party accounts, and of the users `h` that have these
 * accounts. LIMIT 1 prevents a plan that reads all users.
 */
const conflictsIn = ({ users: holders, identities }: Targets) =>
  `SELECT s.line, s.user_id AS "userId", s.object_id AS "objectId", x.platform,
          h.id AS "holderId", h.object_id AS holder
     FROM ${identitiesIn('own')} CROSS JOIN LATERAL (
       SELECT t.id, t.object_id FROM ${identities} i JOIN ${holders} t ON t.app_id = i.app_id
         AND t.id = i.user_id
        WHERE i.app_id = $1 AND i.platform = x.platform AND i.uid = x.uid LIMIT 1) h`;

/**
 * Inserts the third-party accounts of written users. Returns the accounts that belong to another
 * user.
 */
async function insertIdentities(tx: Handle, appId: string, targets: Targets): Promise<Conflict[]> {
  await insertAccounts(tx, appId, { identities: targets.identities, column: 'own' });
  return query(tx).rows(
    `${conflictsIn(targets)} WHERE s.user_id IS NOT NULL AND h.id <> s.user_id ORDER BY s.line`,
    [appId],
  );
}

const insertAccounts = (
  tx: Handle,
  appId: string,
  { identities, column }: { identities: string; column: 'own' | 'claims' },
) =>
  query(tx).run(
    `INSERT INTO ${identities} (app_id, user_id, platform, uid)
     SELECT $1, s.user_id, x.platform, x.uid FROM ${identitiesIn(column)}
      WHERE s.user_id IS NOT NULL ORDER BY s.line, x.platform, x.uid
     ON CONFLICT DO NOTHING`,
    [appId],
  );

/**
 * Deletes the users with conflicts. If the other user of a conflict is deleted too, the user is
 * tried again. Otherwise the user counts as unwritten. The first conflict in line order is always
 * with a user that remains, so the caller's loop ends.
 */
async function removeConflicts(
  tx: Handle,
  appId: string,
  { targets, conflicts }: { targets: Targets; conflicts: Conflict[] },
): Promise<Unwritten[]> {
  const ids = new Set(conflicts.map(({ userId }) => userId));
  const list = [...ids];
  const where = (column: string) => `WHERE app_id = $1 AND ${column} = ANY($2::bigint[])`;
  await tx.query(`DELETE FROM ${targets.identities} ${where('user_id')}`, [appId, list]);
  await tx.query(`DELETE FROM ${targets.users} ${where('id')}`, [appId, list]);
  const unwritten = byLine(conflicts.filter(({ holderId }) => !ids.has(holderId)));
  await unstage(tx, users, unwritten);
  await tx.query(`UPDATE ${users.name} SET user_id = NULL WHERE user_id = ANY($1::bigint[])`, [
    list,
  ]);
  return unwritten;
}

/** Returns each user of the conflicts once, with its last conflict. */
const byLine = (conflicts: readonly Conflict[]): Unwritten[] =>
  [...new Map(conflicts.map((conflict) => [conflict.line, conflict])).values()].map(
    ({ line, objectId, platform, holder }) => ({
      line,
      objectId,
      isThere: false,
      isNewer: false,
      holders: { [`authData.${platform}`]: holder },
    }),
  );

/** Like `takeUnwritten`, including users whose third-party accounts belong to another user. */
async function takeUnwrittenUsers(tx: Handle, appId: string): Promise<Unwritten[]> {
  const kept = await takeUnwritten(tx, appId, users);
  const unwritten = byLine(await query(tx).rows<Conflict>(conflictsIn(tables), [appId]));
  await unstage(tx, users, unwritten);
  return [...kept, ...unwritten];
}
