import type { Identity } from '../../../domain/users/auth-data.ts';
import type { SessionSecret, UserDraft } from '../../../domain/users/user.ts';
import { type CopyValue, copyIn, RowEncoder } from '../../copy.ts';
import type { Handle } from '../../pool.ts';
import { draftColumns, draftValues } from '../users/users.ts';
import { keptOut, type Merged, type Unwritten, unstage, unwrittenRows } from './unwritten.ts';

/** Validated user of an import. Times are ISO 8601. */
export interface StagedUser {
  /** Line of its file. */
  line: number;
  objectId: string;
  draft: UserDraft;
  passwordHash: string | null;
  session: SessionSecret;
  /** Third-party accounts, which conflict when another user has them, and UnionIDs, which stay with their present user. */
  identities: { own: Identity[]; claims: Identity[] };
  createdAt: string;
  updatedAt: string;
}

const stage = 'import_user';
const columns = [
  'object_id',
  'password_hash',
  'session_nonce',
  'session_hash',
  'created_at',
  'updated_at',
  ...draftColumns,
];

/** Names of the unique members, by column. */
const unique = {
  username: 'username',
  email: 'email',
  mobile_phone_number: 'mobilePhoneNumber',
  session_hash: 'sessionToken',
};

/** Target tables: the real ones, or those of a dry run. */
interface Targets {
  users: string;
  identities: string;
}
const tables: Targets = { users: 'app_user', identities: 'user_identity' };
const shadows: Targets = { users: 'import_seen_user', identities: 'import_seen_identity' };

/** Creates the temporary tables of an import on this connection. */
export async function openUserStage(connection: Handle): Promise<void> {
  await connection.query(
    `CREATE TEMP TABLE ${stage} ON COMMIT DELETE ROWS AS
       SELECT 0::bigint AS line, NULL::bigint AS user_id, NULL::jsonb AS own, NULL::jsonb AS claims,
              ${columns.join(', ')} FROM app_user WITH NO DATA`,
  );
  await connection.query(
    `CREATE TEMP TABLE ${shadows.users} (LIKE app_user INCLUDING DEFAULTS INCLUDING IDENTITY)`,
  );
  for (const name of ['id', 'object_id', 'username', 'email', 'mobile_phone_number', 'session_hash'])
    await connection.query(`CREATE UNIQUE INDEX ON ${shadows.users} (app_id, ${name})`);
  await connection.query(`CREATE TEMP TABLE ${shadows.identities} (LIKE user_identity INCLUDING INDEXES)`);
}

/**
 * Writes the new users of a batch in line order, with their third-party accounts, and returns the others; existing users
 * stay unchanged. The object ids of a batch must be distinct. With `isDry`, only reads the tables.
 */
export async function mergeUsers(
  tx: Handle,
  appId: string,
  { rows, isDry }: { rows: StagedUser[]; isDry: boolean },
): Promise<Merged> {
  const encoder = new RowEncoder();
  await copyIn(
    tx,
    { table: stage, columns: ['line', 'own', 'claims', ...columns] },
    rows.map((user) => encoder.encode(copyValues(user))),
  );
  const unwritten = isDry ? await takeUnwritten(tx, appId, tables) : [];
  const targets = isDry ? shadows : tables;
  for (;;) {
    await insertUsers(tx, appId, targets);
    const conflicts = await insertIdentities(tx, appId, targets);
    if (conflicts.length === 0) break;
    unwritten.push(...(await removeConflicts(tx, appId, { targets, conflicts })));
  }
  await insertClaims(tx, appId, targets);
  const { rowCount } = await tx.query(`DELETE FROM ${stage} WHERE user_id IS NOT NULL`);
  const written = rowCount ?? 0;
  if (written + unwritten.length < rows.length)
    unwritten.push(...(await unwrittenRows(tx, appId, { stage, table: targets.users, unique })));
  return { written, unwritten };
}

function copyValues(user: StagedUser): CopyValue[] {
  const { own, claims } = user.identities;
  return [
    user.line,
    JSON.stringify(own),
    JSON.stringify(claims),
    user.objectId,
    user.passwordHash,
    user.session.nonce,
    user.session.hash,
    user.createdAt,
    user.updatedAt,
    ...draftValues(user.draft),
  ];
}

/** Inserts the staged users that are not written yet, except those whose name, address or number is taken. */
async function insertUsers(tx: Handle, appId: string, { users }: Targets): Promise<void> {
  await tx.query(
    `WITH written AS (
       INSERT INTO ${users} (app_id, auth_sealed, auth_sealed_whole, ${columns.join(', ')})
       SELECT $1, true, true, ${columns.join(', ')} FROM ${stage} WHERE user_id IS NULL ORDER BY line
       ON CONFLICT DO NOTHING RETURNING id, object_id)
     UPDATE ${stage} s SET user_id = w.id FROM written w WHERE s.object_id = w.object_id`,
    [appId],
  );
}

const identitiesIn = (column: 'own' | 'claims') =>
  `${stage} s CROSS JOIN jsonb_to_recordset(s.${column}) AS x (platform text, uid text)`;

/** Returns the join with the user who has the account `x`. LIMIT 1 prevents a plan that reads all users for one batch. */
const holderIn = ({ users, identities }: Targets) =>
  `CROSS JOIN LATERAL (
     SELECT t.id, t.object_id FROM ${identities} i JOIN ${users} t ON t.app_id = i.app_id AND t.id = i.user_id
      WHERE i.app_id = $1 AND i.platform = x.platform AND i.uid = x.uid LIMIT 1) h`;

/** Written user, and the user who has one of its third-party accounts. */
interface Conflict {
  line: number;
  user_id: number;
  object_id: string;
  platform: string;
  holder_id: number;
  holder: string;
}

/** Inserts the third-party accounts of written users. Returns the users whose accounts belong to another user. */
async function insertIdentities(tx: Handle, appId: string, targets: Targets): Promise<Conflict[]> {
  await tx.query(
    `INSERT INTO ${targets.identities} (app_id, user_id, platform, uid)
     SELECT $1, s.user_id, x.platform, x.uid FROM ${identitiesIn('own')}
      WHERE s.user_id IS NOT NULL ORDER BY s.line, x.platform, x.uid
     ON CONFLICT DO NOTHING`,
    [appId],
  );
  const { rows } = await tx.query<Conflict>(
    `SELECT s.line, s.user_id, s.object_id, x.platform, h.id AS holder_id, h.object_id AS holder
       FROM ${identitiesIn('own')} ${holderIn(targets)}
      WHERE s.user_id IS NOT NULL AND h.id <> s.user_id ORDER BY s.line`,
    [appId],
  );
  return rows;
}

/**
 * Deletes the users with conflicts. A user whose conflict is with another deleted one is tried again; the others are
 * unwritten. The first conflict in line order is always with a user who stays, so the caller's loop ends.
 */
async function removeConflicts(
  tx: Handle,
  appId: string,
  { targets, conflicts }: { targets: Targets; conflicts: Conflict[] },
): Promise<Unwritten[]> {
  const ids = new Set(conflicts.map(({ user_id }) => Number(user_id)));
  await tx.query(`DELETE FROM ${targets.identities} WHERE app_id = $1 AND user_id = ANY($2::bigint[])`, [
    appId,
    [...ids],
  ]);
  await tx.query(`DELETE FROM ${targets.users} WHERE app_id = $1 AND id = ANY($2::bigint[])`, [
    appId,
    [...ids],
  ]);
  const out = new Map(
    conflicts
      .filter(({ holder_id }) => !ids.has(Number(holder_id)))
      .map((conflict) => [Number(conflict.line), conflict]),
  );
  const unwritten = [...out.values()].map(conflictOf);
  await unstage(tx, stage, unwritten);
  await tx.query(`UPDATE ${stage} SET user_id = NULL WHERE user_id = ANY($1::bigint[])`, [[...ids]]);
  return unwritten;
}

const conflictOf = ({ line, object_id, platform, holder }: Conflict): Unwritten => ({
  line: Number(line),
  objectId: object_id,
  isThere: false,
  isNewer: false,
  holders: { [`authData.${platform}`]: holder },
});

async function insertClaims(tx: Handle, appId: string, { identities }: Targets): Promise<void> {
  await tx.query(
    `INSERT INTO ${identities} (app_id, user_id, platform, uid)
     SELECT $1, s.user_id, x.platform, x.uid FROM ${identitiesIn('claims')}
      WHERE s.user_id IS NOT NULL ORDER BY s.line, x.platform, x.uid
     ON CONFLICT DO NOTHING`,
    [appId],
  );
}

/** Finds the staged users that exist or conflict, and deletes them from the stage. */
async function takeUnwritten(tx: Handle, appId: string, targets: Targets): Promise<Unwritten[]> {
  const kept = await keptOut(tx, appId, { stage, table: targets.users, unique });
  const known = new Set(kept.map(({ line }) => line));
  const { rows } = await tx.query<Conflict>(
    `SELECT s.line, s.object_id, x.platform, h.object_id AS holder
       FROM ${identitiesIn('own')} ${holderIn(targets)}`,
    [appId],
  );
  const linked = new Map(rows.map((conflict) => [Number(conflict.line), conflictOf(conflict)]));
  const unwritten = [...kept, ...[...linked.values()].filter(({ line }) => !known.has(line))];
  await unstage(tx, stage, unwritten);
  return unwritten;
}
