import { comparedToken, type DeviceIds, namesOfToken } from '../../../domain/installations/identity.ts';
import type { Installation, InstallationDraft } from '../../../domain/installations/installation.ts';
import type { Json, JsonObject } from '../../../domain/json.ts';
import { harmonyDeviceTypes, vendorOfDevice } from '../../../domain/labels.ts';
import type { CopyValue } from '../../copy.ts';
import type { Handle } from '../../pool.ts';
import { PreparedStatements, prepare } from '../../prepared.ts';
import { type Selection, selectByIds, selectRows } from '../selection.ts';

export interface InstallationRow {
  id: number;
  object_id: string;
  device_type: string;
  /** As it is compared (`comparedToken`); rows of older versions have it as it was sent. */
  device_token: string | null;
  /** Spelling that the client sent, if it is another one. */
  device_token_sent: string | null;
  installation_id: string | null;
  vendor: string | null;
  vendor_name: string | null;
  registration_id: string | null;
  device_profile: string | null;
  topic: string | null;
  team_id: string | null;
  wire_names: boolean;
  channels: string[] | null;
  valid: boolean;
  time_zone: string | null;
  badge: number | null;
  fields: JsonObject;
  created_at: Date;
  updated_at: Date;
}

/** Row with its version: the transaction that wrote it. */
type VersionRow = InstallationRow & { version: string };

/** Value of a column: objects as JSON text. */
type DraftValue = Exclude<CopyValue, Buffer>;

/** Client-writable columns, with the value that a draft has for each. */
const valueByColumn: Readonly<Record<string, (draft: InstallationDraft) => DraftValue>> = {
  device_type: (draft) => draft.deviceType,
  device_token: ({ deviceToken }) => deviceToken && comparedToken(deviceToken),
  device_token_sent: ({ deviceToken }) =>
    deviceToken === null || comparedToken(deviceToken) === deviceToken ? null : deviceToken,
  installation_id: (draft) => draft.installationId,
  vendor: (draft) => draft.vendor,
  vendor_name: (draft) => draft.vendorName,
  registration_id: (draft) => draft.registrationId,
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
export const draftValues = (draft: InstallationDraft): CopyValue[] => draftReaders.map((read) => read(draft));

export const readColumnNames = ['id', 'object_id', ...draftColumns, 'created_at', 'updated_at'];
const readColumns = readColumnNames.join(', ');

export function toInstallation(row: InstallationRow): Installation {
  return {
    id: row.id,
    objectId: row.object_id,
    deviceType: row.device_type,
    deviceToken: sentToken(row),
    installationId: row.installation_id,
    vendor: row.vendor,
    vendorName: row.vendor_name,
    registrationId: row.registration_id,
    deviceProfile: row.device_profile,
    topic: row.topic,
    teamId: row.team_id,
    hasWireNames: row.wire_names,
    channels: row.channels,
    valid: row.valid,
    timeZone: row.time_zone,
    badge: row.badge,
    fields: row.fields,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}

/** A process of an older version changes a token without its spelling. */
const sentToken = ({ device_token: token, device_token_sent: sent }: InstallationRow): string | null =>
  sent !== null && comparedToken(sent) === token ? sent : token;

/** Finds an installation by its public id; `isLocked` locks it until the transaction ends. */
export async function findInstallation(
  db: Handle,
  { appId, objectId, isLocked = false }: { appId: string; objectId: string; isLocked?: boolean },
): Promise<Installation | undefined> {
  const { rows } = await db.query<InstallationRow>(
    `SELECT ${readColumns} FROM installation WHERE app_id = $1 AND object_id = $2${isLocked ? ' FOR UPDATE' : ''}`,
    [appId, objectId],
  );
  return rows.map(toInstallation)[0];
}

/** Finds installations by public ids, unordered. Throws as `selectByIds`. */
export async function findInstallations(
  db: Handle,
  appId: string,
  wanted: { objectIds: string[]; maxBytes: number },
): Promise<Installation[]> {
  const from = { table: 'installation', columns: readColumns } as const;
  return (await selectByIds<InstallationRow>(db, from, { appId, ...wanted })).map(toInstallation);
}

const keyColumns = {
  objectId: 'object_id',
  installationId: 'installation_id',
  deviceToken: 'device_token',
  registrationId: 'registration_id',
} as const;
const keyNames = ['objectId', 'installationId', 'deviceToken', 'registrationId'] as const;
const ofDevice = new PreparedStatements();

/**
 * Installations with a registration id that are looked at, the newest ones: one has it, until it is
 * registered again.
 */
export const maxOfRegistration = 8;

/**
 * Selects the installations, a dozen at most, that match one of the ids, in the order of their
 * keys. Each set of ids has a statement of its own with one look-up per id: PostgreSQL chooses poor
 * plans for alternatives that may be NULL.
 */
async function selectOfDevice(db: Handle, appId: string, ids: DeviceIds, tail = ''): Promise<VersionRow[]> {
  const given = keyNames.flatMap((name) => {
    const id = ids[name];
    const values = id === undefined ? [] : name === 'deviceToken' ? namesOfToken(id) : [id];
    return values.map((value) => ({ name, value }));
  });
  if (given.length === 0) return [];
  const lookUps = given.map(({ name }, i) => {
    const lookUp = `SELECT id FROM installation WHERE app_id = $1 AND ${keyColumns[name]} = $${i + 2}`;
    if (name !== 'registrationId') return lookUp;
    // OFFSET 0: without it a plan may read all installations of the app in the order of their keys.
    return `(SELECT id FROM (${lookUp} OFFSET 0) AS same ORDER BY id DESC LIMIT ${maxOfRegistration})`;
  });
  const statement = ofDevice.of(
    `SELECT ${readColumns}, xmin::text AS version FROM installation
      WHERE app_id = $1 AND id = ANY(ARRAY(${lookUps.join(' UNION ALL ')})) ORDER BY id${tail}`,
  );
  return (await db.query<VersionRow>(statement, [appId, ...given.map(({ value }) => value)])).rows;
}

/** Finds the installations that match one of the ids, each with the version of its row, in the order of their keys. */
export async function findInstallationsOfDevice(
  db: Handle,
  appId: string,
  ids: DeviceIds,
): Promise<Map<Installation, string>> {
  const rows = await selectOfDevice(db, appId, ids);
  return new Map(rows.map((row) => [toInstallation(row), row.version]));
}

/**
 * Locks the installations that match one of the ids, in the order of their keys. A concurrent change may leave one among
 * them that no longer matches.
 */
export async function lockInstallationsOfDevice(
  tx: Handle,
  appId: string,
  ids: DeviceIds,
): Promise<Installation[]> {
  return (await selectOfDevice(tx, appId, ids, ' FOR UPDATE')).map(toInstallation);
}

const insertOne = prepare(
  `INSERT INTO installation (app_id, object_id, created_at, updated_at, ${draftColumns.join(', ')})
   VALUES ($1, $2, $3, $3, ${draftColumns.map((_, i) => `$${i + 4}`).join(', ')})
   ON CONFLICT DO NOTHING RETURNING ${readColumns}`,
);

/** Inserts an installation; undefined if another one, even a concurrent one, holds one of the unique ids. */
export async function insertInstallation(
  db: Handle,
  appId: string,
  { objectId, draft, now }: { objectId: string; draft: InstallationDraft; now: Date },
): Promise<Installation | undefined> {
  const values = [appId, objectId, now, ...draftValues(draft)];
  const { rows } = await db.query<InstallationRow>(insertOne, values);
  return rows.map(toInstallation)[0];
}

const updateText = `UPDATE installation
    SET updated_at = $3, ${draftColumns.map((name, i) => `${name} = $${i + 4}`).join(', ')}
  WHERE app_id = $1 AND id = $2`;
const updateLocked = prepare(`${updateText} RETURNING ${readColumns}`);
const updateVersion = prepare(
  `${updateText} AND xmin = $${draftColumns.length + 4}::xid RETURNING ${readColumns}`,
);

/** New values of an installation. */
interface InstallationUpdate {
  id: number;
  draft: InstallationDraft;
  now: Date;
}

/** Updates a locked installation. Fails on a unique index if another one holds its new ids. */
export async function updateInstallation(
  tx: Handle,
  appId: string,
  { id, draft, now }: InstallationUpdate,
): Promise<Installation> {
  const { rows } = await tx.query<InstallationRow>(updateLocked, [appId, id, now, ...draftValues(draft)]);
  const [installation] = rows.map(toInstallation);
  if (!installation) throw new Error('a locked installation is gone');
  return installation;
}

/** As `updateInstallation`, without a lock: undefined if the row has changed since this version was read. */
export async function updateInstallationVersion(
  db: Handle,
  appId: string,
  { id, draft, now, version }: InstallationUpdate & { version: string },
): Promise<Installation | undefined> {
  const values = [appId, id, now, ...draftValues(draft), version];
  return (await db.query<InstallationRow>(updateVersion, values)).rows.map(toInstallation)[0];
}

/** Vendor of a row (`vendorOfDevice`). */
export const vendorOfRow = `coalesce(vendor, CASE WHEN device_type IN (${harmonyDeviceTypes.map((name) => `'${name}'`).join(', ')}) THEN 'vendor_a' END)`;

/**
 * Takes the registration id of an installation from the others of its vendor, except for those that
 * are being saved: the next walk finds these (`identities.ts`).
 */
export async function takeRegistration(
  tx: Handle,
  appId: string,
  {
    id,
    deviceType,
    vendor,
    registrationId,
  }: Pick<Installation, 'id' | 'deviceType' | 'vendor' | 'registrationId'>,
): Promise<void> {
  const owner = vendorOfDevice(deviceType, vendor);
  if (registrationId === null || owner === null) return;
  await tx.query(
    `WITH former AS MATERIALIZED (
       SELECT id FROM installation WHERE app_id = $1 AND registration_id = $2 AND ${vendorOfRow} = $3 AND id <> $4
          FOR UPDATE SKIP LOCKED)
     UPDATE installation i SET registration_id = NULL FROM former f WHERE i.app_id = $1 AND i.id = f.id`,
    [appId, registrationId, owner, id],
  );
}

/**
 * Locks installations by public ids, in the order of their keys to avoid deadlocks. Returns the
 * keys and ACLs.
 */
export async function lockInstallations(
  tx: Handle,
  appId: string,
  objectIds: string[],
): Promise<(Pick<Installation, 'id'> & { acl: Json })[]> {
  const { rows } = await tx.query<Pick<Installation, 'id'> & { acl: Json }>(
    `SELECT id, fields -> 'ACL' AS acl FROM installation
      WHERE app_id = $1 AND object_id = ANY($2::text[]) ORDER BY id FOR UPDATE`,
    [appId, objectIds],
  );
  return rows;
}

export async function deleteInstallations(tx: Handle, appId: string, ids: number[]): Promise<void> {
  await tx.query('DELETE FROM installation WHERE app_id = $1 AND id = ANY($2::bigint[])', [appId, ids]);
}

export async function selectInstallations(tx: Handle, selection: Selection): Promise<Installation[]> {
  const from = { table: 'installation', columns: readColumns } as const;
  return (await selectRows<InstallationRow>(tx, from, selection)).map(toInstallation);
}
