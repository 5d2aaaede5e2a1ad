/**
 * Everything that the database stores of one person: a user, the user's devices, and messages to
 * the user's address and number (operate/personal-data.md).
 */
import { isHiddenMember } from '../../domain/admin/masking.ts';
import { isJsonObject, type Json, type JsonObject } from '../../domain/json.ts';
import type { Handle } from '../pool.ts';
import { query } from '../query.ts';
import { deleteMatching } from './installations.ts';

/** A user and the values by which rows of the user are found. */
export interface Person {
  appId: string;
  /** Internal and public id of the user. */
  userId: number;
  objectId: string;
  /** Address and number of the user. */
  contacts: readonly string[];
  /** Digests under which failed logins are counted. */
  lockDigests: readonly Buffer[];
}

/** Ids of a device of the person. */
export interface PersonDevice {
  id: number;
  /** Public id, installation id, token and registration id. */
  names: string[];
}

/** Rows that belong to a person. The condition has the app in $1 and the values of `of` in $2. */
interface Rows {
  table: string;
  /** `devices`: internal ids of installations. `names`: contacts and ids of the user. */
  of: 'devices' | 'names' | 'user' | 'locks';
  condition: string;
  /** Columns of the export, without secrets. */
  columns: string;
}

const ofDevice = 'installation = ANY ($2::bigint[])';

/** Rows that are exported and deleted, by their name in the export and in the report. */
const rowsOfPersons = {
  pushFailures: {
    table: 'push_failure',
    of: 'devices',
    condition: ofDevice,
    columns: `object_id AS "installation", connector, outcome, status, split_part(reason, E'\\t', 1) AS reason,
      created_at AS at, (SELECT n.object_id FROM notification n
       WHERE n.app_id = t.app_id AND n.id = t.push_id) AS push`,
  },
  pushesPerDay: {
    table: 'device_day',
    of: 'devices',
    condition: ofDevice,
    columns: 'day, pushes',
  },
  invalidTokenNotices: {
    table: 'dead_notice',
    of: 'devices',
    condition: ofDevice,
    columns: 'connector, noted_at AS at',
  },
  liveActivityTokens: {
    table: 'live_activity_token',
    of: 'devices',
    condition: ofDevice,
    columns: 'kind, name, token, reported_at AS at',
  },
  channelMessages: {
    table: 'channel_inbox',
    of: 'devices',
    condition: ofDevice,
    columns: `(SELECT m.content FROM channel_message m
      WHERE m.app_id = t.app_id AND m.id = t.message_id) AS content`,
  },
  messages: {
    table: 'outbox',
    of: 'names',
    condition: 'recipient = ANY ($2::text[])',
    columns: 'kind, recipient AS to, type, body, state, created_at AS at, delivery',
  },
  smsSends: {
    table: 'sms_send',
    of: 'names',
    condition: 'number = ANY ($2::text[])',
    columns: 'number, kind, sign, sent_at AS at',
  },
  verificationCodes: {
    table: 'verification_code',
    of: 'names',
    condition: '(number = ANY ($2::text[]) OR subject = ANY ($2::text[]))',
    columns: 'purpose, number, expires_at AS "expiresAt"',
  },
  links: {
    table: 'link_token',
    of: 'user',
    condition: 'user_id = $2',
    columns: 'purpose, email, expires_at AS "expiresAt"',
  },
  loginLocks: {
    table: 'login_lock',
    of: 'locks',
    condition: 'identifier = ANY ($2::bytea[])',
    columns: 'failed_at AS "failedAt", locked_until AS "lockedUntil"',
  },
  identities: {
    table: 'user_identity',
    of: 'user',
    condition: 'user_id = $2',
    columns: 'platform, uid',
  },
  roles: {
    table: 'role_user',
    of: 'user',
    condition: 'user_id = $2',
    columns: `(SELECT r.name FROM role r WHERE r.app_id = t.app_id AND r.id = t.role_id) AS role`,
  },
} as const satisfies Record<string, Rows>;

export type RowsName = keyof typeof rowsOfPersons;
export const rowsNames = Object.keys(rowsOfPersons) as RowsName[];
const isOfDevices = (name: RowsName) => rowsOfPersons[name].of === 'devices';

/** JSON in which ids and names of the person may stand. They are replaced by `erasedText`. */
const textsOfPersons = {
  pushes: { table: 'notification', app: 'app_id', key: ['id'], columns: ['request', 'variables'] },
  recurringPushes: {
    table: 'recurring_push',
    app: 'app_id',
    key: ['id'],
    columns: ['body', 'request'],
  },
  savedItems: { table: 'saved_item', app: 'app_id', key: ['kind', 'name'], columns: ['content'] },
  audit: { table: 'audit', app: 'app_id', key: ['id'], columns: ['before', 'after'] },
  // An endpoint of the service gets events of all apps, so its `app_id` differs. The key contains it,
  // because a sharded database locks rows of one app only.
  webhookDeliveries: {
    table: 'webhook_delivery',
    app: 'source_app',
    key: ['app_id', 'webhook', 'id'],
    columns: ['data'],
  },
} as const;

export type TextsName = keyof typeof textsOfPersons;
export const textsNames = Object.keys(textsOfPersons) as TextsName[];

const erasedText = 'erased';

/** Texts that identify a person in JSON. */
export interface PersonTexts {
  /** Replaced wherever they are a whole text. */
  whole: ReadonlySet<string>;
  /** Replaced in members of users and devices only, because a channel may have the same name. */
  guarded: ReadonlySet<string>;
  /** Ids of the user and of the devices. Audit records about them lose their members. */
  targets: ReadonlySet<string>;
}

/** Tables that contain something of a person. A test names all others with the reason. */
export const tablesOfPersons: readonly string[] = [
  ...['app_user', 'installation', 'push_receipt', 'channel_group', 'channel_message'],
  ...Object.values({ ...rowsOfPersons, ...textsOfPersons }).map(({ table }) => table),
];

/** Returns the devices of a person above an internal id, in its order. */
export const listDevices = (db: Handle, person: Person, page: { after: number; limit: number }) =>
  query(db).rows<PersonDevice>(
    `SELECT id, array_remove(ARRAY[object_id, installation_id, device_token, device_token_sent,
            registration_id, split_part(subscription_keys, '.', 1),
            split_part(subscription_keys, '.', 2)], NULL) AS names
       FROM installation
      WHERE app_id = $1 AND fields -> 'user' ->> 'objectId' = $2 AND id > $3
      ORDER BY id LIMIT $4`,
    [person.appId, person.objectId, page.after, page.limit],
  );

/** Returns the values of $2 of a part. */
function valuesOf(name: RowsName, person: Person, devices: readonly number[]): unknown {
  switch (rowsOfPersons[name].of) {
    case 'devices':
      return devices;
    case 'names':
      return [...person.contacts, person.objectId];
    case 'user':
      return person.userId;
    case 'locks':
      return person.lockDigests;
  }
}

/** Reads the rows of a part, at most `limit`. */
export const readRows = (
  db: Handle,
  name: RowsName,
  { person, devices, limit }: { person: Person; devices: readonly number[]; limit: number },
) => {
  const { columns, condition, table } = rowsOfPersons[name];
  return query(db).rows<JsonObject>(
    `SELECT ${columns} FROM ${table} t WHERE t.app_id = $1 AND ${condition} LIMIT $3`,
    [person.appId, valuesOf(name, person, devices), limit],
  );
};

/** Counts the rows of a part. */
export const countRowsOf = (
  db: Handle,
  name: RowsName,
  person: Person,
  devices: readonly number[],
) => {
  const { condition, table } = rowsOfPersons[name];
  return query(db).number(`SELECT count(*) FROM ${table} WHERE app_id = $1 AND ${condition}`, [
    person.appId,
    valuesOf(name, person, devices),
  ]);
};

/** Reads the pushes for which devices have a receipt. */
export const readReceiptsOf = (
  db: Handle,
  { appId }: Person,
  devices: readonly number[],
  limit: number,
) =>
  query(db).rows<JsonObject>(
    `SELECT n.object_id AS push, r.connector, get_bit(r.delivered, d.bit) = 1 AS delivered,
            get_bit(r.clicked, d.bit) = 1 AS opened, get_bit(r.dismissed, d.bit) = 1 AS dismissed
       FROM (SELECT i / 512 AS block, (i % 512)::int AS bit FROM unnest($2::bigint[]) AS i) AS d
       JOIN push_receipt r ON r.app_id = $1 AND r.block = d.block
        AND get_bit(r.delivered | r.clicked | r.dismissed, d.bit) = 1
       LEFT JOIN notification n ON n.app_id = $1 AND n.id = r.push_id
      LIMIT $3`,
    [appId, devices, limit],
  );

/**
 * Deletes devices of a person and everything that is stored with them, as part of `tx`. Returns the
 * numbers of rows by part. Locks the rows of each table in the order of receipts, of
 * acknowledgements and of saves, so that two transactions cannot deadlock.
 */
export async function eraseDevices(
  tx: Handle,
  person: Person,
  devices: readonly number[],
): Promise<Record<string, number>> {
  const erased: Record<string, number> = {};
  const values = [person.appId, devices];
  erased.receipts = await query(tx).rowCount(
    `WITH m AS (
       SELECT i / 512 AS block, bit_or(set_bit(0::bit(512), (i % 512)::int, 1)) AS bits
         FROM unnest($2::bigint[]) AS i GROUP BY 1),
     locked AS MATERIALIZED (
       SELECT r.push_id, r.connector, r.block, m.bits
         FROM push_receipt r JOIN m ON r.block = m.block
        WHERE r.app_id = $1 AND ((r.delivered | r.clicked | r.dismissed) & m.bits) <> 0::bit(512)
        ORDER BY r.connector, r.push_id, r.block FOR UPDATE OF r)
     UPDATE push_receipt r SET delivered = r.delivered & ~l.bits, clicked = r.clicked & ~l.bits,
            dismissed = r.dismissed & ~l.bits
       FROM locked l
      WHERE r.app_id = $1 AND r.push_id = l.push_id AND r.connector = l.connector
        AND r.block = l.block`,
    values,
  );
  const groups = await query(tx).column<number>(
    `WITH locked AS MATERIALIZED (
       SELECT id FROM channel_group WHERE app_id = $1 AND pending && $2::bigint[]
        ORDER BY id FOR UPDATE)
     UPDATE channel_group g SET pending = ARRAY(
       SELECT unnest(g.pending) EXCEPT SELECT unnest($2::bigint[]) ORDER BY 1)
       FROM locked WHERE g.app_id = $1 AND g.id = locked.id RETURNING g.message_id`,
    values,
  );
  const inbox = await query(tx).column<number>(
    `WITH locked AS MATERIALIZED (
       SELECT id FROM channel_inbox WHERE app_id = $1 AND ${ofDevice} ORDER BY id FOR UPDATE)
     DELETE FROM channel_inbox i USING locked WHERE i.app_id = $1 AND i.id = locked.id
       RETURNING i.message_id`,
    values,
  );
  erased.channelMessages = inbox.length + groups.length;
  // A text may be written for one person. A push that is still sent may need it for other devices.
  await tx.query(
    `DELETE FROM channel_message m USING notification n
      WHERE m.app_id = $1 AND m.id = ANY ($2::bigint[]) AND n.app_id = $1 AND n.id = m.push_id
        AND n.finished_at IS NOT NULL
        AND NOT EXISTS (SELECT FROM channel_inbox i WHERE i.app_id = $1 AND i.message_id = m.id)
        AND NOT EXISTS (SELECT FROM channel_group g WHERE g.app_id = $1 AND g.message_id = m.id
                           AND cardinality(g.pending) > 0)`,
    [person.appId, [...inbox, ...groups]],
  );
  for (const name of rowsNames.filter((one) => isOfDevices(one) && one !== 'channelMessages'))
    erased[name] = await deleteRows(tx, name, person, devices);
  const ofDevices = { condition: 'true', values: [person.appId] };
  erased.installations = await deleteMatching(tx, ofDevices, devices);
  return erased;
}

/** Deletes the rows of a person that belong to no device, as part of `tx`. Returns the numbers. */
export async function eraseRows(tx: Handle, person: Person): Promise<Record<string, number>> {
  const erased: Record<string, number> = {};
  for (const name of rowsNames.filter((one) => !isOfDevices(one)))
    erased[name] = await deleteRows(tx, name, person, []);
  return erased;
}

const deleteRows = (tx: Handle, name: RowsName, person: Person, devices: readonly number[]) => {
  const { condition, table } = rowsOfPersons[name];
  return query(tx).rowCount(`DELETE FROM ${table} WHERE app_id = $1 AND ${condition}`, [
    person.appId,
    valuesOf(name, person, devices),
  ]);
};

/** Row with JSON that contains a text of a person. */
export interface TextRow {
  /** Values of the primary key, as text. */
  key: string[];
  values: (Json | null)[];
  /** Digest of the stored values. `values` may contain numbers that JavaScript has rounded. */
  digest: string;
  target: string | null;
}

/** Condition of rows that contain one of the texts in $2 in their JSON. */
const containsText = (name: TextsName) => {
  const { columns } = textsOfPersons[name];
  const all = columns.map((column) => `coalesce(t.${column}::text, '')`).join(` || ' ' || `);
  const target = name === 'audit' ? ` || ' "' || replace(t.target, ',', '","') || '"'` : '';
  return `EXISTS (SELECT FROM unnest($2::text[]) AS one
           WHERE strpos(${all}${target}, one) > 0)`;
};

/** SQL of the JSON of a row, as a list. */
const valuesSql = (name: TextsName): string =>
  `jsonb_build_array(${textsOfPersons[name].columns.map((column) => `t.${column}`).join(', ')})`;

const digestSql = (name: TextsName): string => `md5(${valuesSql(name)}::text)`;

/**
 * Lists rows whose JSON contains one of `texts`, in the order of their key, above `after`.
 */
export function listTextRows(
  db: Handle,
  name: TextsName,
  { appId, texts, after, limit }: { appId: string; texts: string[]; after: string; limit: number },
): Promise<TextRow[]> {
  const { app, key, table } = textsOfPersons[name];
  const keyText = key.map((column) => `t.${column}::text`).join(` || ' ' || `);
  return query(db).rows<TextRow>(
    `SELECT ARRAY[${key.map((column) => `t.${column}::text`).join(', ')}] AS key,
            ${valuesSql(name)} AS values, ${digestSql(name)} AS digest,
            ${name === 'audit' ? 't.target' : 'NULL'} AS target
       FROM ${table} t WHERE t.${app} = $1 AND ${keyText} > $3 AND ${containsText(name)}
      ORDER BY ${keyText} LIMIT $4`,
    [appId, texts, after, limit],
  );
}

/** Counts rows whose JSON contains one of `texts`. */
export const countTextRows = (db: Handle, name: TextsName, appId: string, texts: string[]) => {
  const { app, table } = textsOfPersons[name];
  return query(db).number(
    `SELECT count(*) FROM ${table} t WHERE t.${app} = $1 AND ${containsText(name)}`,
    [appId, texts],
  );
};

/**
 * Writes the JSON of a row in which the texts of a person are replaced, as part of `tx`. Returns
 * false without a change if the JSON is no longer the JSON that was read.
 */
export async function replaceTexts(
  tx: Handle,
  name: TextsName,
  { appId, row, texts }: { appId: string; row: TextRow; texts: PersonTexts },
): Promise<boolean> {
  const { app, columns, key, table } = textsOfPersons[name];
  const ofRow = (first: number) =>
    key.map((column, i) => `AND t.${column}::text = $${first + i}`).join(' ');
  // A sharded database cannot compute the digest in an UPDATE.
  const digest = await query(tx).value<string>(
    `SELECT ${digestSql(name)} AS value FROM ${table} t WHERE t.${app} = $1 ${ofRow(2)} FOR UPDATE`,
    [appId, ...row.key],
  );
  if (digest !== row.digest) return false;
  const targets = (row.target ?? '').split(',');
  const isAbout = targets.some((one) => texts.targets.has(one));
  const values = [
    appId,
    ...row.values.map((value) => (isAbout ? null : json(withoutTexts(value, texts)))),
  ];
  const sets = columns.map((column, i) => `${column} = $${i + 2}::jsonb`);
  if (name === 'audit') {
    // The audit is append-only otherwise (migration 0095).
    await tx.query(`SELECT set_config('carillon.erases_person', 'on', true)`);
    const isErased = (one: string) => texts.whole.has(one) || texts.guarded.has(one);
    values.push(targets.map((one) => (isErased(one) ? erasedText : one)).join(','));
    sets.push(`target = $${values.length}`);
  }
  // A receiver may have answered with what it got.
  if (name === 'webhookDeliveries') sets.push('response = NULL');
  await tx.query(
    `UPDATE ${table} t SET ${sets.join(', ')} WHERE t.${app} = $1 ${ofRow(values.length + 1)}`,
    [...values, ...row.key],
  );
  return true;
}

const json = (value: Json | null): string | null => (value === null ? null : JSON.stringify(value));

/** Returns JSON in which the texts of a person are replaced. */
export function withoutTexts(
  value: Json | null,
  texts: PersonTexts,
  isPersonal = false,
): Json | null {
  const isErased = (text: string) =>
    texts.whole.has(text) || (isPersonal && texts.guarded.has(text));
  if (typeof value === 'string') return isErased(value) ? erasedText : value;
  if (Array.isArray(value)) return value.map((one) => withoutTexts(one, texts, isPersonal));
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [
      isErased(name) ? erasedText : name,
      withoutTexts(one, texts, isPersonal || isHiddenMember(name)),
    ]),
  );
}
