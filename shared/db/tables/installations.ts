import {
  comparedToken,
  type DeviceIds,
  storedFormsOfToken,
} from '../../domain/installations/identity.ts';
import type { Installation, InstallationDraft } from '../../domain/installations/installation.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import { harmonyDeviceTypes, vendorOfDevice } from '../../domain/labels.ts';
import type { CopyValue } from '../copy.ts';
import { isDeadlock } from '../limits/database-errors.ts';
import type { Database, Handle } from '../pool.ts';
import { membersOf, PreparedStatements, prepare } from '../prepared.ts';
import { query } from '../query.ts';
import { forEachApp } from '../sharding.ts';
import { type RowCondition, type Selection, selectByIds, selectRows } from './selection.ts';

/** Value of a column: objects as JSON text. */
type DraftValue = Exclude<CopyValue, Buffer>;

/** Columns that clients may write, and for each the value of a draft. */
const valueByColumn: Readonly<Record<string, (draft: InstallationDraft) => DraftValue>> = {
  device_type: (draft) => draft.deviceType,
  device_token: ({ deviceToken }) => deviceToken && comparedToken(deviceToken),
  device_token_sent: ({ deviceToken }) =>
    deviceToken === null || comparedToken(deviceToken) === deviceToken ? null : deviceToken,
  installation_id: (draft) => draft.installationId,
  vendor: (draft) => draft.vendor,
  vendor_name: (draft) => draft.vendorName,
  registration_id: (draft) => draft.registrationId,
  subscription_keys: (draft) => draft.subscriptionKeys,
  device_profile: (draft) => draft.deviceProfile,
  topic: (draft) => draft.topic,
  team_id: (draft) => draft.teamId,
  wire_names: (draft) => draft.hasWireNames,
  channels: (draft) => draft.channels,
  valid: (draft) => draft.valid,
  time_zone: (draft) => draft.timeZone,
  badge: (draft) => draft.badge,
  fields: (draft) => JSON.stringify(draft.fields),
};
export const draftColumns = Object.keys(valueByColumn);
export const draftReaders = Object.values(valueByColumn);

/** Returns the values of a draft in the order of `draftColumns`. */
export const draftValues = (draft: InstallationDraft): CopyValue[] =>
  draftReaders.map((read) => read(draft));

/**
 * The token as the client sent it. A process of an older version changes the token without this
 * spelling.
 */
const sentToken =
  'CASE WHEN lower(device_token_sent COLLATE "C") = device_token THEN device_token_sent ELSE device_token END';

/** Columns of an `Installation`. `large` returns the expression of a member that may be large. */
export const installationColumns = (large = (column: string) => column): string => {
  const plain = `id, object_id, device_type, installation_id, vendor, vendor_name, registration_id, subscription_keys,
    device_profile,
    topic, team_id, valid, time_zone, badge, created_at, updated_at`;
  return `${membersOf('installation', plain)}, ${sentToken} AS "deviceToken", wire_names AS "hasWireNames",
    ${large('fields')} AS fields, ${large('channels')} AS channels`;
};
const columns = installationColumns();
const from = { table: 'installation', columns } as const;

/** An installation with the version of its row: the transaction that wrote it. */
type Versioned = Installation & { version: string };

const byObjectId = `SELECT ${columns} FROM installation WHERE app_id = $1 AND object_id = $2`;
const findStatement = prepare(byObjectId);
const findLockedStatement = prepare(`${byObjectId} FOR UPDATE`);

/** Finds an installation by its public id. `isLocked` locks it until the transaction ends. */
export const findInstallation = (
  db: Handle,
  { appId, objectId, isLocked = false }: { appId: string; objectId: string; isLocked?: boolean },
) => query(db).row<Installation>(isLocked ? findLockedStatement : findStatement, [appId, objectId]);

/** Finds installations by public ids, unordered. Throws like `selectByIds`. */
export const findInstallations = (
  db: Handle,
  appId: string,
  selection: { objectIds: string[]; maxBytes: number },
) => selectByIds<Installation>(db, from, { appId, ...selection });

const keyNames = ['objectId', 'installationId', 'deviceToken', 'registrationId'] as const;
const keyColumns = {
  objectId: 'object_id',
  installationId: 'installation_id',
  deviceToken: 'device_token',
  registrationId: 'registration_id',
};
const ofDevice = new PreparedStatements();

/**
 * Maximum installations with the same registration id that are read, newest first. Usually there is
 * one.
 */
export const maxOfRegistration = 8;

/**
 * Selects the installations that match one of the ids, at most a dozen, in the order of their
 * internal ids. Each set of ids has its own statement with one index lookup per id, because
 * PostgreSQL plans alternatives that may be NULL badly.
 */
async function selectOfDevice(
  db: Handle,
  appId: string,
  ids: DeviceIds,
  tail = '',
): Promise<Versioned[]> {
  const given = keyNames.flatMap((name) => {
    const id = ids[name];
    const values = id === undefined ? [] : name === 'deviceToken' ? storedFormsOfToken(id) : [id];
    return values.map((value) => ({ name, value }));
  });
  if (given.length === 0) return [];
  const lookUps = given.map(({ name }, i) => {
    const lookUp = `SELECT id FROM installation WHERE app_id = $1
      AND ${keyColumns[name]} = $${i + 2}`;
    if (name !== 'registrationId') return lookUp;
    // OFFSET 0: otherwise a plan may read all installations of the app in the order of their ids.
    return `(SELECT id FROM (${lookUp} OFFSET 0) AS same ORDER BY id DESC
      LIMIT ${maxOfRegistration})`;
  });
  const statement = ofDevice.of(
    `SELECT ${columns}, xmin::text AS version FROM installation
      WHERE app_id = $1 AND id = ANY(ARRAY(${lookUps.join(' UNION ALL ')})) ORDER BY id${tail}`,
  );
  return query(db).rows(statement, [appId, ...given.map(({ value }) => value)]);
}

/**
 * Finds the installations that match one of the ids, ordered by internal id, with the version of
 * each row.
 */
export async function findInstallationsOfDevice(
  db: Handle,
  appId: string,
  ids: DeviceIds,
): Promise<Map<Installation, string>> {
  const rows = await selectOfDevice(db, appId, ids);
  return new Map(rows.map(({ version, ...installation }) => [installation, version]));
}

/**
 * Locks the installations that match one of the ids, in the order of their internal ids. After a
 * concurrent change, one of them may no longer match.
 */
export async function lockInstallationsOfDevice(
  tx: Handle,
  appId: string,
  ids: DeviceIds,
): Promise<Installation[]> {
  const rows = await selectOfDevice(tx, appId, ids, ' FOR UPDATE');
  return rows.map(({ version: _, ...installation }) => installation);
}

const insertOne = prepare(
  `INSERT INTO installation (app_id, object_id, created_at, updated_at, ${draftColumns.join(', ')})
   VALUES ($1, $2, $3, $3, ${draftColumns.map((_, i) => `$${i + 4}`).join(', ')})
   ON CONFLICT DO NOTHING RETURNING ${columns}`,
);

/** Inserts an installation. Returns undefined if another installation has one of its unique ids. */
export const insertInstallation = (
  db: Handle,
  appId: string,
  { objectId, draft, now }: { objectId: string; draft: InstallationDraft; now: Date },
) => query(db).row<Installation>(insertOne, [appId, objectId, now, ...draftValues(draft)]);

const updateText = `UPDATE installation
    SET updated_at = $3, ${draftColumns.map((name, i) => `${name} = $${i + 4}`).join(', ')}
  WHERE app_id = $1 AND id = $2`;
const updateLocked = prepare(`${updateText} RETURNING ${columns}`);
const updateVersion = prepare(
  `${updateText} AND xmin = $${draftColumns.length + 4}::xid RETURNING ${columns}`,
);

/** New values of an installation. */
interface InstallationUpdate {
  id: number;
  draft: InstallationDraft;
  now: Date;
}

/**
 * Updates a locked installation. Throws a unique violation if another installation has its new ids.
 */
export const updateInstallation = (
  tx: Handle,
  appId: string,
  { id, draft, now }: InstallationUpdate,
) => query(tx).one<Installation>(updateLocked, [appId, id, now, ...draftValues(draft)]);

/** Like `updateInstallation`, without a lock. Returns undefined if the row has another version. */
export const updateInstallationVersion = (
  db: Handle,
  appId: string,
  { id, draft, now, version }: InstallationUpdate & { version: string },
) => query(db).row<Installation>(updateVersion, [appId, id, now, ...draftValues(draft), version]);

/** Vendor of a row (`vendorOfDevice`). */
const vendorOfRow = `coalesce(vendor,
  CASE WHEN device_type IN (${harmonyDeviceTypes.map((name) => `'${name}'`).join(', ')})
    THEN 'vendor_a' END)`;

/**
 * Removes the registration id of an installation from other installations of the same vendor. Skips
 * installations that are being saved; the next scan finds them (`identities.ts`).
 */
export async function takeRegistration(
  tx: Handle,
  appId: string,
  saved: Pick<Installation, 'id' | 'deviceType' | 'vendor' | 'registrationId'>,
): Promise<void> {
  const { id, deviceType, vendor, registrationId } = saved;
  const owner = vendorOfDevice(deviceType, vendor);
  if (registrationId === null || owner === null) return;
  await tx.query(
    `WITH former AS MATERIALIZED (
       SELECT id FROM installation WHERE app_id = $1 AND registration_id = $2
         AND ${vendorOfRow} = $3 AND id <> $4
          FOR UPDATE SKIP LOCKED)
     UPDATE installation i SET registration_id = NULL FROM former f WHERE i.app_id = $1
       AND i.id = f.id`,
    [appId, registrationId, owner, id],
  );
}

/**
 * Locks installations in the order of their internal ids, to avoid deadlocks. Returns the ids and
 * ACLs.
 */
export const lockInstallations = (tx: Handle, appId: string, objectIds: string[]) =>
  query(tx).rows<Pick<Installation, 'id'> & { acl: Json }>(
    `SELECT id, fields -> 'ACL' AS acl FROM installation
      WHERE app_id = $1 AND object_id = ANY($2::text[]) ORDER BY id FOR UPDATE`,
    [appId, objectIds],
  );

export const deleteInstallations = (tx: Handle, appId: string, ids: number[]) =>
  query(tx).run('DELETE FROM installation WHERE app_id = $1 AND id = ANY($2::bigint[])', [
    appId,
    ids,
  ]);

export const selectInstallations = (tx: Handle, selection: Selection) =>
  selectRows<Installation>(tx, from, selection);

/** Condition of the index `installation_token_spelling`. */
const isAsSent = `device_token COLLATE "C" ~ '^[0-9A-Fa-f]*[A-F][0-9A-Fa-f]*$'`;
const asSent = `SELECT app_id, id FROM installation WHERE ${isAsSent} ORDER BY app_id, id LIMIT $1`;

interface TokenRow {
  id: number;
  token: string;
  updated_at: Date;
}

/**
 * Rewrites up to `limit` tokens that an older version stored as they were sent, and merges
 * installations whose tokens differ only in spelling. Returns the number of rows read. Skips
 * installations that are being saved.
 */
export function rewriteTokens(db: Database, limit: number): Promise<number> {
  return db.transaction(async (tx) => {
    const rows = await forEachApp(tx, { text: asSent, values: [limit] }, async (appId, ids) => {
      const locked = await tx.query<TokenRow>(
        `SELECT id, device_token AS token, updated_at FROM installation
          WHERE app_id = $1 AND id = ANY ($2::bigint[]) AND ${isAsSent} ORDER BY id
            FOR UPDATE SKIP LOCKED`,
        [appId, ids],
      );
      await rewriteRows(tx, appId, locked.rows);
      return locked.rows;
    });
    return rows.length;
  });
}

async function rewriteRows(tx: Handle, appId: string, rows: readonly TokenRow[]): Promise<void> {
  const byToken = Map.groupBy(rows, ({ token }) => comparedToken(token));
  const { free, holders } = await findHolders(tx, appId, [...byToken.keys()]);
  const single: number[] = [];
  for (const [token, spellings] of byToken) {
    const holder = holders.get(token);
    const [first, ...others] = spellings;
    if (first && others.length === 0 && free.has(token)) single.push(first.id);
    else if (holder || free.has(token))
      await merge(tx, appId, holder ? [holder, ...spellings] : spellings);
  }
  if (single.length > 0) await rewrite(tx, appId, single);
}

/**
 * Finds which tokens no installation has in normal form. For the other tokens, locks the
 * installations that have them, unless they are being saved.
 */
async function findHolders(
  tx: Handle,
  appId: string,
  tokens: readonly string[],
): Promise<{ free: ReadonlySet<string>; holders: ReadonlyMap<string, TokenRow> }> {
  const select =
    'SELECT id, device_token AS token, updated_at FROM installation WHERE app_id = $1 AND device_token = ANY ($2::text[])';
  const taken = await tx.query<TokenRow>(select, [appId, tokens]);
  const isTaken = new Set(taken.rows.map(({ token }) => token));
  const free = new Set(tokens.filter((token) => !isTaken.has(token)));
  if (isTaken.size === 0) return { free, holders: new Map() };
  const locked = await tx.query<TokenRow>(`${select} ORDER BY id FOR UPDATE SKIP LOCKED`, [
    appId,
    [...isTaken],
  ]);
  return { free, holders: new Map(locked.rows.map((row) => [row.token, row])) };
}

const rewrite = (tx: Handle, appId: string, ids: readonly number[]) =>
  tx.query(
    `UPDATE installation SET device_token = lower(device_token COLLATE "C"),
      device_token_sent = device_token
      WHERE app_id = $1 AND id = ANY ($2::bigint[]) AND ${isAsSent}`,
    [appId, ids],
  );

interface MergedRow {
  installation_id: string | null;
  channels: string[] | null;
  time_zone: string | null;
  fields: JsonObject;
}

/**
 * Keeps the installation that was saved last, and deletes the others. Missing members are copied
 * from the deleted ones, because a client may have registered another spelling with its token
 * alone.
 */
async function merge(tx: Handle, appId: string, rows: readonly TokenRow[]): Promise<void> {
  const [kept, ...older] = rows.toSorted(
    (a, b) => b.updated_at.getTime() - a.updated_at.getTime() || b.id - a.id,
  );
  if (!kept) return;
  for (const { id } of older) {
    const deleted = await tx.query<MergedRow>(
      'DELETE FROM installation WHERE app_id = $1 AND id = $2 RETURNING installation_id, channels, time_zone, fields',
      [appId, id],
    );
    const [row] = deleted.rows;
    if (!row) continue;
    await tx.query(
      `UPDATE installation SET installation_id = coalesce(installation_id, $3),
              channels = coalesce(channels, $4), time_zone = coalesce(time_zone, $5),
              fields = $6::jsonb || fields
        WHERE app_id = $1 AND id = $2`,
      [
        appId,
        kept.id,
        row.installation_id,
        row.channels,
        row.time_zone,
        JSON.stringify(row.fields),
      ],
    );
  }
  await rewrite(tx, appId, [kept.id]);
}

/** Maximum registration ids that one statement reads. This takes some milliseconds. */
const idsOfPage = 5000;
/** If at least this many installations lose their registration id, the page is read again. */
const releasedAtOnce = 1000;

/** A scan over the installations of an app, one page at a time. */
interface Walk {
  appId: string;
  now: Date;
  /**
   * Start of the next scan after a scan of several pages. A scan of a single page begins again at
   * once.
   */
  nextAt: Date;
}

/**
 * Runs the next page of a scan, unless another process is doing so or the next scan is not due.
 * `makePage` gets the position where the page begins, and returns the position of the next page, or
 * null after the last page. Returns the same.
 */
async function continueWalk<P extends string | number>(
  tx: Handle,
  { table, column, start }: { table: string; column: string; start: P },
  { appId, now, nextAt }: Walk,
  makePage: (after: P) => Promise<P | null>,
): Promise<P | null> {
  await tx.query(
    `INSERT INTO ${table} (app_id) SELECT app_id FROM app WHERE app_id = $1 ON CONFLICT DO NOTHING`,
    [appId],
  );
  const after = await query(tx).value<P>(
    `SELECT ${column} FROM ${table} WHERE app_id = $1
      AND next_at <= $2 FOR NO KEY UPDATE SKIP LOCKED`,
    [appId, now],
  );
  if (after === undefined) return null;
  const next = await makePage(after);
  if (next === null && after === start) return null;
  const values = [appId, next ?? start, next === null ? nextAt : now];
  await tx.query(`UPDATE ${table} SET ${column} = $2, next_at = $3 WHERE app_id = $1`, values);
  return next;
}

const registrationWalk = { table: 'registration_walk', column: 'after', start: '' };
const idleWalk = { table: 'idle_walk', column: 'after_id', start: 0 };

/**
 * Runs the next page of an app's scan over its registration ids (`continueWalk`). If installations
 * of a vendor have the same id, the installation that was saved last keeps it. Returns whether
 * another page follows.
 */
export const continueRegistrationWalk = (db: Database, walk: Walk): Promise<boolean> =>
  db.transaction(async (tx) => {
    const makePage = (after: string) => releasePage(tx, walk.appId, after);
    return (await continueWalk(tx, registrationWalk, walk, makePage)) !== null;
  });

/**
 * Makes the next scan due now, because an import may have written registration ids that devices
 * already have.
 */
export const hastenRegistrationWalk = (db: Handle, appId: string) =>
  db.query("UPDATE registration_walk SET next_at = '-infinity' WHERE app_id = $1", [appId]);

/** Returns the registration id after which the next page begins. Null after the last page. */
async function releasePage(tx: Handle, appId: string, after: string): Promise<string | null> {
  const { read, last, repeated } = await query(tx).one<{
    read: number;
    last: string | null;
    repeated: string[];
  }>(
    `WITH page AS MATERIALIZED (
       SELECT registration_id FROM installation WHERE app_id = $1 AND registration_id > $2
        ORDER BY registration_id LIMIT ${idsOfPage})
     SELECT count(*) AS read, max(registration_id) AS last,
            ARRAY(SELECT registration_id FROM page GROUP BY 1 HAVING count(*) > 1) AS repeated
              FROM page`,
    [appId, after],
  );
  const isLast = read < idsOfPage;
  // The last id of a full page may have more rows on the next page.
  const ids = isLast || last === null ? repeated : [...repeated, last];
  if (ids.length > 0 && (await release(tx, appId, ids)) >= releasedAtOnce) return after;
  return isLast ? null : last;
}

const release = (tx: Handle, appId: string, ids: readonly string[]) =>
  query(tx).rowCount(
    `WITH locked AS MATERIALIZED (
       SELECT id, registration_id, ${vendorOfRow} AS owner, updated_at FROM installation
        WHERE app_id = $1 AND registration_id = ANY ($2::text[]) AND ${vendorOfRow} IS NOT NULL
        LIMIT ${idsOfPage} FOR UPDATE SKIP LOCKED),
     ranked AS (
       SELECT id, row_number() OVER (PARTITION BY registration_id, owner
         ORDER BY updated_at DESC, id DESC) AS place
         FROM locked)
     UPDATE installation i SET registration_id = NULL FROM ranked r
      WHERE i.app_id = $1 AND i.id = r.id AND r.place > 1`,
    [appId, ids],
  );

/** Key of a batch. */
interface BatchKey {
  appId: string;
  id: number;
}

/**
 * SQL condition of the recipients of a batch. Rows are locked in the order of the scan, usually the
 * order of their ids. Locking them in a fixed order first would cost half as much again, so a rare
 * deadlock is repeated instead.
 */
const ofBatch = (recipients: string) =>
  `i.app_id = $1 AND i.id = ANY((SELECT recipients FROM ${recipients})::bigint[])`;

const largestBadge = 2 ** 31 - 1;

/** Increments all badges or none. The updated row must fit into its page (migration 0031). */
const incrementStatement = prepare(
  `WITH held AS MATERIALIZED (
     SELECT recipients FROM push_batch WHERE app_id = $1 AND id = $2
       AND badges IS NULL FOR NO KEY UPDATE),
   counted AS (
     UPDATE installation i SET badge = least(coalesce(i.badge, 0), ${largestBadge - 1}) + 1
      WHERE ${ofBatch('held')} RETURNING i.id, i.badge),
   listed AS (
     SELECT array_agg(c.badge ORDER BY r.place) AS badges
       FROM held, unnest(held.recipients) WITH ORDINALITY AS r (id, place) LEFT JOIN counted c
         ON c.id = r.id),
   saved AS (
     UPDATE push_batch b SET badges = listed.badges FROM listed
      WHERE b.app_id = $1 AND b.id = $2 AND EXISTS (SELECT FROM held) RETURNING b.badges)
   SELECT array_to_string(badges, ',', '') AS badges FROM saved`,
);

const countedStatement = prepare(
  `SELECT array_to_string(badges, ',', '') AS badges FROM push_batch WHERE app_id = $1 AND id = $2`,
);

/**
 * Increments the badge of every recipient of a batch, only once even if the batch is delivered
 * again. Returns the numbers in the order of its recipients, null for a deleted one
 * (protocol/apns.md#badge: a retry sends the same number).
 */
export async function incrementBadges(
  db: Handle,
  { appId, id }: BatchKey,
): Promise<(number | null)[]> {
  const counted = await repeatDeadlocked(() => readBadges(db, incrementStatement, { appId, id }));
  // Undefined if another delivery has incremented them. That delivery may have committed after this
  // statement began, so a second statement reads the numbers.
  const badges = counted ?? (await readBadges(db, countedStatement, { appId, id }));
  if (!badges) throw new Error('the batch was deleted');
  return badges;
}

async function readBadges(
  db: Handle,
  statement: ReturnType<typeof prepare>,
  { appId, id }: BatchKey,
): Promise<(number | null)[] | undefined> {
  const badges = await query(db).value<string | null>(statement, [appId, id]);
  return badges?.split(',').map((badge) => (badge === '' ? null : Number(badge)));
}

const setStatement = prepare(
  `UPDATE installation i SET badge = $3
    WHERE ${ofBatch('push_batch WHERE app_id = $1 AND id = $2')} AND i.badge IS DISTINCT FROM $3`,
);

/** Saves the badge that a push sets, so that a later `Increment` continues from it. */
export async function setBadges(db: Handle, { appId, id }: BatchKey, badge: number): Promise<void> {
  await repeatDeadlocked(() => db.query(setStatement, [appId, id, badge]));
}

const maxTries = 5;

/** Repeats a statement that PostgreSQL rolled back because of a deadlock. */
async function repeatDeadlocked<T>(work: () => Promise<T>, triesLeft = maxTries): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!isDeadlock(error) || triesLeft <= 1) throw error;
    return repeatDeadlocked(work, triesLeft - 1);
  }
}

/** Lists the internal ids of up to `limit` installations that meet a condition, unordered. */
export const listMatching = (tx: Handle, { condition, values }: RowCondition, limit: number) =>
  query(tx).column<number>(
    `SELECT id FROM installation WHERE app_id = $1 AND (${condition}) LIMIT $${values.length + 1}`,
    [...values, limit],
  );

/**
 * Deletes installations that still meet a condition. Locks them in the order of their internal ids.
 * Returns their number.
 */
export const deleteMatching = (
  tx: Handle,
  { condition, values }: RowCondition,
  ids: readonly number[],
) =>
  query(tx).rowCount(
    `WITH matching AS MATERIALIZED (
       SELECT id FROM installation WHERE app_id = $1 AND id = ANY($${values.length + 1}::bigint[])
         AND (${condition})
        ORDER BY id FOR UPDATE)
     DELETE FROM installation i USING matching WHERE i.app_id = $1 AND i.id = matching.id`,
    [...values, ids],
  );

/** Installations that one statement reads. This takes some milliseconds. */
export const rowsOfPage = 5000;

/**
 * Installations that were neither updated nor imported since `before`, and the maximum that a page
 * deletes.
 */
interface IdleInstallations {
  appId: string;
  before: Date;
  limit: number;
}

/**
 * Deletes the idle installations of a page. Skips installations that are being saved. Returns their
 * number, and the id after which the next page begins, or null after the last page.
 */
async function deleteIdlePage(
  tx: Handle,
  { appId, before, limit }: IdleInstallations,
  after: number,
): Promise<{ deleted: number; next: number | null }> {
  const found = await query(tx).one<{
    read: number;
    lastId: number;
    deleted: number;
    lastDeleted: number;
  }>(
    `WITH page AS MATERIALIZED (
       SELECT id FROM installation WHERE app_id = $1 AND id > $2 ORDER BY id LIMIT ${rowsOfPage}
     ), idle AS MATERIALIZED (
       SELECT id FROM installation
        WHERE app_id = $1 AND id > $2 AND id <= (SELECT max(id) FROM page)
          AND updated_at < $3 AND (imported_at IS NULL OR imported_at < $3)
        ORDER BY id LIMIT $4 FOR UPDATE SKIP LOCKED
     ), deleted AS (
       DELETE FROM installation i USING idle WHERE i.app_id = $1 AND i.id = idle.id
     )
     SELECT (SELECT count(*) FROM page) AS read, (SELECT max(id) FROM page) AS "lastId",
            count(*) AS deleted, max(id) AS "lastDeleted" FROM idle`,
    [appId, after, before, limit],
  );
  const { read, lastId, deleted, lastDeleted } = found;
  if (deleted >= limit) return { deleted, next: lastDeleted };
  return { deleted, next: read < rowsOfPage ? null : lastId };
}

/**
 * Runs the next page of an app's scan for idle installations (`continueWalk`). Returns the number
 * of deleted installations, or `limit` if another page follows.
 */
export const continueIdleWalk = (db: Database, walk: Walk & IdleInstallations): Promise<number> =>
  db.transaction(async (tx) => {
    let deleted = 0;
    const next = await continueWalk(tx, idleWalk, walk, async (after: number) => {
      const page = await deleteIdlePage(tx, walk, after);
      deleted = page.deleted;
      return page.next;
    });
    return next === null ? deleted : walk.limit;
  });

/** Maximum number of VAPID keys of an app that are counted. */
const maxKeys = 50;

/**
 * Counts the installations with a Web Push subscription by the id of their VAPID key, most first.
 * The id is empty if the key is unknown.
 */
export const countSubscriptionKeys = (db: Handle, appId: string) =>
  query(db).rows<{ keyId: string; devices: number }>(
    `SELECT split_part(subscription_keys, '.', 3) AS "keyId", count(*) AS devices
       FROM installation WHERE app_id = $1 AND vendor = 'webpush' AND registration_id IS NOT NULL
        AND subscription_keys IS NOT NULL
      GROUP BY 1 ORDER BY devices DESC, 1 LIMIT ${maxKeys}`,
    [appId],
  );
