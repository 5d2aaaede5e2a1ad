import {
  comparedToken,
  type DeviceIds,
  storedFormsOfToken,
} from '../../domain/installations/identity.ts';
import type { Installation, InstallationDraft } from '../../domain/installations/installation.ts';
import type { Json } from '../../domain/json.ts';
import { harmonyDeviceTypes, vendorOfDevice } from '../../domain/labels.ts';
import type { CopyValue } from '../copy.ts';
import type { Handle } from '../pool.ts';
import { membersOf, PreparedStatements, prepare } from '../prepared.ts';
import { query } from '../query.ts';
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
 * Finds the installations that match one of the ids, at most a dozen, in the order of their
 * internal ids. Returns them with the versions of their rows: the transactions that wrote them.
 * `isLocked` locks them until the transaction ends. After a concurrent change, one of them may no
 * longer match.
 *
 * Each set of ids has its own statement with one index lookup per id, because PostgreSQL plans
 * alternatives that may be NULL badly.
 */
export async function findInstallationsOfDevice(
  db: Handle,
  appId: string,
  ids: DeviceIds,
  { isLocked = false } = {},
): Promise<Map<Installation, string>> {
  const given = keyNames.flatMap((name) => {
    const id = ids[name];
    const values = id === undefined ? [] : name === 'deviceToken' ? storedFormsOfToken(id) : [id];
    return values.map((value) => ({ name, value }));
  });
  if (given.length === 0) return new Map();
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
      WHERE app_id = $1 AND id = ANY(ARRAY(${lookUps.join(' UNION ALL ')})) ORDER BY id
      ${isLocked ? 'FOR UPDATE' : ''}`,
  );
  const values = [appId, ...given.map(({ value }) => value)];
  const rows = await query(db).rows<Installation & { version: string }>(statement, values);
  return new Map(rows.map(({ version, ...installation }) => [installation, version]));
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
export const vendorOfRow = `coalesce(vendor,
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
