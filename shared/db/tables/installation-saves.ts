import { type DeviceIds, storedFormsOfToken } from '../../domain/installations/identity.ts';
import type { Installation, InstallationDraft } from '../../domain/installations/installation.ts';
import { parseExactly } from '../../domain/json.ts';
import { arrayText } from '../copy.ts';
import type { ServerSettings } from '../limits/client-pool.ts';
import type { Handle } from '../pool.ts';
import { type PreparedStatement, prepare } from '../prepared.ts';
import { query } from '../query.ts';
import { AppStatement, isSharded, onePlan, partByApp } from '../sharding.ts';
import {
  draftColumns,
  draftReaders,
  installationColumns,
  maxOfRegistration,
} from './installations.ts';

/**
 * Settings of the connections for saves. A statement is planned once, and finds each row by an
 * index even while the table is small. The lock timeout is short, because saves of several apps
 * wait together.
 */
export const saveSettings = {
  ...onePlan,
  lock_timeout: '100ms',
  enable_sort: 'off',
  enable_bitmapscan: 'off',
  cpu_index_tuple_cost: 1000,
};

/**
 * Returns the settings of the connections for saves. On a sharded database Citus chooses the server
 * by the values of a statement, and does not support a plan that is made once for all values.
 */
export async function saveSettingsOf(db: Handle): Promise<ServerSettings> {
  return (await isSharded(db))
    ? { lock_timeout: saveSettings.lock_timeout, jit: 'off' }
    : saveSettings;
}

/**
 * Maximum bytes of custom members, and of channels, of a row that is written in a group. PostgreSQL
 * does not compress smaller values, so their size is known without reading them.
 */
const maxBytes = 2000;

const uniqueIds = ['object_id', 'installation_id', 'device_token'];
const searchedIds = [...uniqueIds, 'registration_id'];

const isSmall = (column: string) =>
  `coalesce(pg_column_size(${column}) <= ${maxBytes}
    AND pg_column_compression(${column}) IS NULL, true)`;
const small = `${isSmall('fields')} AND ${isSmall('channels')}`;

/**
 * Selects the rows of an app with a given value in a column. The range and the order allow only one
 * index. With an equality condition, a plan that is made while the app has few rows may read all
 * its rows later. NULL finds nothing.
 */
const rowsWith = (
  column: string,
  value: string,
  { columns = ['id'], condition = 'true', andApp = '' } = {},
) =>
  `(SELECT ${columns.join(', ')} FROM installation
     WHERE app_id = g.app_id${andApp} AND ${column} >= ${value} AND ${column} <= ${value}
       AND ${condition}
     ORDER BY app_id, ${column} OFFSET 0)`;

/** Selects the newest installations with a registration id. */
const newestOfRegistration = (andApp: string) =>
  `(SELECT id FROM ${rowsWith('registration_id', 'g.registration_id', { andApp })} AS same
     ORDER BY id DESC LIMIT ${maxOfRegistration})`;

const foundColumns = [
  installationColumns((column) => `CASE WHEN ${small} THEN ${column} END`),
  'ctid::text AS place',
  'xmin::text AS version',
  `${small} AS "isSmall"`,
];

/**
 * Selects rows with one of the unique ids of a device, and the newest rows with its registration
 * id.
 */
const keysOf = (andApp: string) =>
  [
    ...uniqueIds.map((column) => rowsWith(column, `g.${column}`, { andApp })),
    newestOfRegistration(andApp),
  ].join(' UNION ');

const findStatement = new AppStatement(
  searchedIds.length + 3,
  (andApp) => `
   SELECT g.device, f.*
     FROM unnest($1::int[], $2::text[], ${searchedIds.map((_, i) => `$${i + 3}::text[]`).join(', ')})
          AS g(device, app_id, ${searchedIds.join(', ')}),
          LATERAL (${keysOf(andApp('installation'))}) AS k,
          LATERAL ${rowsWith('id', 'k.id', { columns: foundColumns, andApp: andApp('installation') })} AS f`,
  { isPrepared: true },
);

interface RequestedDevice {
  appId: string;
  ids: DeviceIds;
}

/** Location and version of a row (`ctid` and `xmin`), as PostgreSQL prints them. */
interface RowVersion {
  place: string;
  version: string;
}

/** An installation that matches an id, with the version of its row. */
export interface FoundInstallation {
  installation: Installation;
  row: RowVersion;
  /** False if `fields` and `channels` are not needed. */
  isSmall: boolean;
}

type FoundRow = Installation & RowVersion & { device: number; isSmall: boolean };

/** Ids of a device, and its index in the request. */
interface IndexedDevice extends RequestedDevice {
  device: number;
}

/**
 * Returns the ids of a device, and a further row for each other stored form of its token
 * (`storedFormsOfToken`).
 */
function asSpelled({ appId, ids }: RequestedDevice, device: number): IndexedDevice[] {
  if (ids.deviceToken === undefined) return [{ appId, ids, device }];
  const [compared, ...others] = storedFormsOfToken(ids.deviceToken);
  return [
    { appId, ids: { ...ids, deviceToken: compared }, device },
    ...others.map((deviceToken) => ({ appId, ids: { ...noIds, deviceToken }, device })),
  ];
}

const noIds: DeviceIds = {
  objectId: undefined,
  installationId: undefined,
  deviceToken: undefined,
  registrationId: undefined,
};

/**
 * Finds the installations that match an id of each device. Returns them by the index of the device.
 */
export async function findInstallationsOfDevices(
  db: Handle,
  devices: RequestedDevice[],
): Promise<FoundInstallation[][]> {
  const found = await findStatement.run<FoundRow, IndexedDevice>(
    db,
    devices.flatMap(asSpelled),
    (part) => [
      arrayText(part.map(({ device }) => device)),
      arrayText(part.map(({ appId }) => appId)),
      arrayText(part.map(({ ids }) => ids.objectId)),
      arrayText(part.map(({ ids }) => ids.installationId)),
      arrayText(part.map(({ ids }) => ids.deviceToken)),
      arrayText(part.map(({ ids }) => ids.registrationId)),
    ],
  );
  const byDevice = devices.map((): FoundInstallation[] => []);
  for (const { device, place, version, isSmall, ...installation } of found) {
    const ofDevice = byDevice[device];
    // A row may contain one spelling of the token and another id of the device.
    if (!ofDevice || ofDevice.some((one) => one.installation.id === installation.id)) continue;
    ofDevice.push({ installation, row: { place, version }, isSmall });
  }
  for (const several of byDevice)
    if (several.length > 1) several.sort((a, b) => a.installation.id - b.installation.id);
  return byDevice;
}

/** A new installation of a group. */
export interface GroupInsert {
  appId: string;
  objectId: string;
  draft: InstallationDraft;
}

/** New values of an installation whose row has this version. They change no unique id. */
export interface GroupUpdate {
  appId: string;
  id: number;
  row: RowVersion;
  draft: InstallationDraft;
}

/** Types of columns. The others are `text`. */
const types: Readonly<Record<string, string>> = {
  id: 'bigint',
  wire_names: 'boolean',
  valid: 'boolean',
  badge: 'integer',
  fields: 'jsonb',
  channels: 'text[]',
};
/** Type of a column in `rowsOf`: there is no array of arrays, so the channels of a row are a text. */
const listedType = (name: string) => (name === 'channels' ? 'text' : (types[name] ?? 'text'));
/** Returns SQL of rows from arrays, one array per column, starting at parameter `first`. */
const rowsOf = (names: string[], first: number) =>
  `unnest(${names.map((name, i) => `$${first + i}::${listedType(name)}[]`).join(', ')}) AS g(${names.join(', ')})`;
const written = (name: string) => (name === 'channels' ? 'g.channels::text[]' : `g.${name}`);

const insertColumns = ['app_id', 'object_id', ...draftColumns];
const updateColumns = ['app_id', 'id', 'place', 'version', ...draftColumns];

const insertText = (first: number) =>
  `INSERT INTO installation (created_at, updated_at, ${insertColumns.join(', ')})
   SELECT $1, $1, ${insertColumns.map(written).join(', ')} FROM ${rowsOf(insertColumns, first)}
   ON CONFLICT DO NOTHING RETURNING object_id, NULL::bigint AS id`;

/**
 * Finds rows by their `ctid`, which needs no index. Skips rows that another transaction has locked,
 * so that a group never waits for one of its rows.
 */
const updateText = (first: number) =>
  `UPDATE installation i
      SET updated_at = $1, ${draftColumns.map((name) => `${name} = ${written(name)}`).join(', ')}
     FROM (SELECT g.* FROM ${rowsOf(updateColumns, first)}, LATERAL (
             SELECT FROM installation i
              WHERE i.ctid = g.place::tid AND i.xmin = g.version::xid AND i.app_id = g.app_id
                AND i.id = g.id
                FOR NO KEY UPDATE SKIP LOCKED) AS locked) AS g
    WHERE i.ctid = g.place::tid AND i.app_id = g.app_id AND i.id = g.id
      RETURNING NULL::text AS object_id, i.id`;

const insertStatement = prepare(insertText(2));
const updateStatement = prepare(updateText(2));
const bothStatement = prepare(
  `WITH made AS (${insertText(2)}), changed AS (${updateText(2 + insertColumns.length)})
   SELECT * FROM made UNION ALL SELECT * FROM changed`,
);

/** Public ids of the inserted installations, and internal ids of the updated ones. */
interface WrittenGroup {
  inserted: ReadonlySet<string>;
  updated: ReadonlySet<number>;
}

/**
 * Writes a group in one transaction. On a sharded database, the inserts are one transaction, and
 * the updates of each app are one transaction. Skips an insert if another installation has one of
 * its unique ids. Skips an update if its row is locked or has changed since its version.
 */
export async function writeInstallationGroup(
  db: Handle,
  { inserts, updates, now }: { inserts: GroupInsert[]; updates: GroupUpdate[]; now: Date },
): Promise<WrittenGroup> {
  const rows: WrittenRow[] = [];
  const run = async (statement: PreparedStatement, ...arrays: string[]) =>
    rows.push(...(await query(db).rows<WrittenRow>(statement, [now, ...arrays])));
  const sharded = await isSharded(db);
  if (inserts.length > 0 && updates.length > 0 && !sharded)
    await run(bothStatement, ...insertArrays(inserts), ...updateArrays(updates));
  else {
    if (inserts.length > 0) await run(insertStatement, ...insertArrays(inserts));
    if (sharded) rows.push(...(await updateSharded(db, updates, now)));
    else if (updates.length > 0) await run(updateStatement, ...updateArrays(updates));
  }
  return {
    inserted: new Set(rows.flatMap(({ object_id }) => object_id ?? [])),
    updated: new Set(rows.flatMap(({ id }) => id ?? [])),
  };
}

interface WrittenRow {
  object_id: string | null;
  id: number | null;
}

const insertArrays = (inserts: GroupInsert[]): string[] => [
  arrayText(inserts.map(({ appId }) => appId)),
  arrayText(inserts.map(({ objectId }) => objectId)),
  ...draftArrays(inserts),
];

const updateArrays = (updates: GroupUpdate[]): string[] => [
  arrayText(updates.map(({ appId }) => appId)),
  arrayText(updates.map(({ id }) => id)),
  arrayText(updates.map(({ row }) => row.place)),
  arrayText(updates.map(({ row }) => row.version)),
  ...draftArrays(updates),
];

/** Returns an array for each of `draftColumns`. */
const draftArrays = (rows: { draft: InstallationDraft }[]): string[] =>
  draftReaders.map((read) =>
    arrayText(
      rows.map(({ draft }) => {
        const value = read(draft);
        return Array.isArray(value) ? arrayText(value) : value;
      }),
    ),
  );

/**
 * Takes the rows as JSON, which needs no casts, because Citus refuses casts that depend on settings
 * here. It has no `ctid`, which is a location on one server.
 */
const shardedUpdateText = `
  UPDATE installation i
    SET updated_at = $1, ${draftColumns.map((name) => `${name} = g.${name}`).join(', ')}
    FROM (SELECT g.* FROM jsonb_to_recordset($2::jsonb) AS g (app_id text, id bigint, version text,
                 ${draftColumns.map((name) => `${name} ${types[name] ?? 'text'}`).join(', ')}),
          LATERAL (
            SELECT FROM installation i
             WHERE i.xmin = g.version::xid AND i.app_id = g.app_id AND i.id = g.id AND i.app_id = $3
               FOR NO KEY UPDATE SKIP LOCKED) AS locked) AS g
   WHERE i.app_id = g.app_id AND i.id = g.id AND i.app_id = $3
  RETURNING NULL::text AS object_id, i.id`;

/** Updates rows of a group on a sharded database with one statement for each app. */
async function updateSharded(
  db: Handle,
  updates: readonly GroupUpdate[],
  now: Date,
): Promise<WrittenRow[]> {
  const updated: WrittenRow[] = [];
  for (const part of await partByApp(db, updates)) {
    const values = [now, JSON.stringify(part.map(jsonRowOf)), part[0]?.appId];
    updated.push(...(await query(db).rows<WrittenRow>(shardedUpdateText, values)));
  }
  return updated;
}

function jsonRowOf({ appId, id, row, draft }: GroupUpdate): object {
  const values = draftColumns.map((name, i) => {
    const value = draftReaders[i]?.(draft) ?? null;
    return [name, name === 'fields' ? parseExactly(String(value)) : value];
  });
  return { app_id: appId, id, version: row.version, ...Object.fromEntries(values) };
}
