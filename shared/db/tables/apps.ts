import { z } from 'zod';
import type { Vault } from '../../crypto.ts';
import {
  type App,
  type AppKeys,
  type AppOptions,
  type AppOptionsPatch,
  appOptionsPatch,
  type Edition,
  effectiveOptions,
  type Plan,
} from '../../domain/apps/app.ts';
import type { FunctionStage } from '../../domain/apps/functions.ts';
import { sealContexts } from '../../domain/apps/seal-contexts.ts';
import { reachableName } from '../../domain/path.ts';
import { mapInTicks } from '../../event-loop.ts';
import type { Handle } from '../pool.ts';
import { membersOf, prepare } from '../prepared.ts';
import { query } from '../query.ts';
import { AppStatement, isSharded } from '../sharding.ts';
import { type Subscription, subscriptionsSql } from './webhooks.ts';

const oldKey = z.object({ value: z.string(), validUntilMs: z.number() }).optional();

/** Encrypted part of an app: its keys, and the options that contain credentials. */
const secretsShape = z.object({
  appKey: z.string(),
  masterKey: z.string(),
  hookKey: z.string(),
  oldKeys: z.object({ appKey: oldKey, masterKey: oldKey, hookKey: oldKey }).optional(),
  authPlatforms: appOptionsPatch.shape.authPlatforms,
});
type AppSecrets = z.infer<typeof secretsShape>;

const columns = membersOf(
  'app',
  'app_id, name, edition, plan, secrets, options, created_at, updated_at',
);

interface AppRow
  extends Pick<App, 'appId' | 'name' | 'edition' | 'plan' | 'createdAt' | 'updatedAt'> {
  secrets: Buffer;
  options: AppOptionsPatch;
}

export interface NewApp {
  appId: string;
  name: string;
  edition: Edition;
  plan: Plan;
  keys: AppKeys;
  options: AppOptionsPatch;
}

/** Splits options into those stored as plain text and those stored encrypted. */
function splitOptions(options: AppOptionsPatch): {
  open: AppOptionsPatch;
  sealed: Pick<AppSecrets, 'authPlatforms'>;
} {
  const { authPlatforms, ...open } = options;
  return { open, sealed: { authPlatforms } };
}

const openSecrets = ({ appId, secrets }: AppRow, vault: Vault): AppSecrets =>
  secretsShape.parse(vault.open(secrets, sealContexts.app(appId)));

function toApp(row: AppRow, vault: Vault): App {
  const { authPlatforms, ...keys } = openSecrets(row, vault);
  const { secrets: _, options, ...members } = row;
  const set = authPlatforms ? { ...options, authPlatforms } : options;
  return { ...members, ...keys, options: effectiveOptions(row.plan, set) };
}

async function queryApp(
  db: Handle,
  vault: Vault,
  text: string,
  values: unknown[],
): Promise<App | undefined> {
  const row = await query(db).row<AppRow>(text, values);
  return row && toApp(row, vault);
}

/**
 * Counts the apps whose ciphertext the keys of a vault can decrypt, and the other apps. Checks the
 * first bytes of each ciphertext.
 */
export const countSealedApps = (db: Handle, vault: Vault) =>
  query(db).one<{ open: number; closed: number }>(
    `SELECT count(*) FILTER (WHERE is_open) AS open, count(*) FILTER (WHERE NOT is_open) AS closed
       FROM (SELECT encode(substring(secrets FROM 1 FOR 5), 'hex') = ANY($1) AS is_open
         FROM app) AS seals`,
    [vault.prefixes],
  );

/**
 * Inserts an app, with an approved SMS signature of its own name (protocol/admin-api.md#apps).
 * Returns undefined if the id is taken.
 */
export function insertApp(db: Handle, vault: Vault, app: NewApp): Promise<App | undefined> {
  const { open, sealed } = splitOptions(app.options);
  const secrets = vault.seal({ ...app.keys, ...sealed }, sealContexts.app(app.appId));
  return queryApp(
    db,
    vault,
    `WITH inserted AS (
       INSERT INTO app (app_id, name, edition, plan, secrets, options)
         VALUES ($1, $2, $3, $4, $5, $6)
       ON CONFLICT (app_id) DO NOTHING RETURNING *),
     signature AS (
       INSERT INTO sms_signature (app_id, name, is_approved) SELECT app_id, $7, true FROM inserted)
     SELECT ${columns} FROM inserted AS app`,
    [app.appId, app.name, app.edition, app.plan, secrets, open, reachableName(app.name)],
  );
}

export const findApp = (db: Handle, vault: Vault, appId: string) =>
  queryApp(db, vault, `SELECT ${columns} FROM app WHERE app_id = $1`, [appId]);

export async function listApps(db: Handle, vault: Vault): Promise<App[]> {
  const rows = await query(db).rows<AppRow>(
    `SELECT ${columns} FROM app ORDER BY created_at, app_id`,
  );
  return mapInTicks(rows, (row) => toApp(row, vault));
}

/** An app without its secrets, and the numbers of its devices and pushes, up to a limit. */
export interface AppSummary {
  appId: string;
  name: string;
  edition: Edition;
  plan: Plan;
  createdAt: Date;
  devices: number;
  pushes7d: number;
}

/** An app in a list. */
export type AppName = Pick<AppSummary, 'appId' | 'name'>;

/** Row of a list of apps. `place`: value by which the list is sorted. Null if it is the id. */
type Listed<T> = T & { place: string | null };

/** Filter of a list of apps. `apps`: null for all. `q`: an id or a part of a name. */
export interface AppFilter {
  apps: readonly string[] | null;
  q: string | undefined;
}

/** Order of a list of apps. `activity`: the app with the newest push first. */
export type AppOrder = 'id' | 'name' | 'activity';

/** Page of a list of apps. `after`: id and place of the last app of the previous page. */
interface AppPage {
  sort: AppOrder;
  after: { appId: string; place: string } | null;
  limit: number;
}

/** SQL of an order. Parameters: $3 is the id of the last app, $4 its place. */
const orders: Record<AppOrder, { place: string; isAfter: string; by: string }> = {
  id: { place: 'NULL', isAfter: 'app_id > $3::text', by: 'app_id' },
  name: {
    place: 'name',
    isAfter: '(lower(name), app_id) > (lower($4::text), $3::text)',
    by: 'lower(name), app_id',
  },
  activity: {
    place: 'coalesce(newest, 0)::text',
    isAfter: '(-coalesce(newest, 0), app_id) > (-($4::text)::bigint, $3::text)',
    by: '-coalesce(newest, 0), app_id',
  },
};

/**
 * Returns SQL that joins the id of the newest push of each app. PostgreSQL reads one entry of the
 * primary key per app. A sharded database joins such a subquery only if it groups by app, which
 * reads all pushes of the app.
 */
const newestPush = (isGrouped: boolean): string =>
  `LEFT JOIN LATERAL (SELECT max(n.id) AS newest FROM notification n WHERE n.app_id = app.app_id${
    isGrouped ? ' GROUP BY n.app_id' : ''
  }) AS p ON true`;

async function pageOfApps<T extends object>(
  db: Handle,
  columns: string,
  { apps, q }: AppFilter,
  { sort, after, limit }: AppPage,
): Promise<Listed<T>[]> {
  const { place, isAfter, by } = orders[sort];
  return query(db).rows<Listed<T>>(
    `SELECT ${columns}, ${place} AS place
       FROM app ${sort === 'activity' ? newestPush(await isSharded(db)) : ''}
      WHERE ($1::text[] IS NULL OR app_id = ANY($1)) AND ($3::text IS NULL OR ${isAfter})
        AND ($2::text IS NULL OR app_id = $2 OR position(lower($2) IN lower(name)) > 0)
        AND ($4::text IS NULL OR true)
      ORDER BY ${by} LIMIT $5`,
    [apps, q, after?.appId, after?.place, limit],
  );
}

/** Lists ids and names of apps. */
export const listAppNames = (db: Handle, filter: AppFilter, page: AppPage) =>
  pageOfApps<AppName>(db, 'app_id AS "appId", name', filter, page);

type AppSizes = Pick<AppSummary, 'appId' | 'devices' | 'pushes7d'>;

/** Counts the devices and pushes of apps, up to a limit. */
const sizesStatement = new AppStatement(
  3,
  (andApp) => `SELECT k.app_id AS "appId",
    (SELECT count(*) FROM (SELECT FROM installation
      WHERE app_id = k.app_id${andApp('installation')} LIMIT $2) AS d) AS devices,
    (SELECT count(*) FROM (SELECT FROM notification
      WHERE app_id = k.app_id${andApp('notification')} LIMIT $2) AS p) AS "pushes7d"
    FROM unnest($1::text[]) AS k (app_id)`,
);

/**
 * Lists apps without decrypting anything. Counts at most `maxCounted` devices and pushes of each.
 */
export async function listAppSummaries(
  db: Handle,
  filter: AppFilter,
  { maxCounted, ...page }: AppPage & { maxCounted: number },
): Promise<Listed<AppSummary>[]> {
  const rows = await pageOfApps<Omit<AppSummary, 'devices' | 'pushes7d'>>(
    db,
    'app_id AS "appId", name, edition, plan, created_at AS "createdAt"',
    filter,
    page,
  );
  const found = await sizesStatement.run<AppSizes, (typeof rows)[number]>(db, rows, (part) => [
    part.map(({ appId }) => appId),
    maxCounted,
  ]);
  const sizes = new Map(found.map((size) => [size.appId, size]));
  return rows.map((row) => ({ devices: 0, pushes7d: 0, ...row, ...sizes.get(row.appId) }));
}

/** Lists the ids of all apps, oldest first. Decrypts nothing. */
export const listAppIds = (db: Handle) =>
  query(db).column<string>('SELECT app_id FROM app ORDER BY created_at, app_id');

/**
 * Finds the options of an app that are not encrypted. Needs no key. Returns undefined for an
 * unknown app.
 */
export async function findOpenOptions(db: Handle, appId: string): Promise<AppOptions | undefined> {
  const row = await query(db).row<Pick<AppRow, 'plan' | 'options'>>(
    'SELECT plan, options FROM app WHERE app_id = $1',
    [appId],
  );
  return row && effectiveOptions(row.plan, row.options);
}

/** Switches an option on, unless it has a value. Returns whether it was switched on. */
export const switchOn = (tx: Handle, appId: string, option: 'allowStrictUserQuery') =>
  query(tx).hasRows(
    `UPDATE app SET options = options || jsonb_build_object($2::text, true), updated_at = now()
      WHERE app_id = $1 AND NOT options ? $2::text`,
    [appId, option],
  );

/**
 * Changes the name, options and keys of an app under a lock. `change` gets its current state, and
 * returns the new name, the options to merge and the keys to replace. Returns undefined for an
 * unknown app. Needs a transaction.
 */
export async function updateApp(
  tx: Handle,
  vault: Vault,
  appId: string,
  change: (app: App) => {
    name?: string;
    options?: AppOptionsPatch;
    keys?: Partial<AppKeys> & Pick<App, 'oldKeys'>;
  },
): Promise<App | undefined> {
  const row = await query(tx).row<AppRow>(
    `SELECT ${columns} FROM app WHERE app_id = $1 FOR UPDATE`,
    [appId],
  );
  if (!row) return undefined;
  const { name, options, keys } = change(toApp(row, vault));
  const { open, sealed } = splitOptions(options ?? {});
  const newSecrets = {
    ...openSecrets(row, vault),
    ...keys,
    ...(sealed.authPlatforms ? sealed : {}),
  };
  return queryApp(
    tx,
    vault,
    `UPDATE app SET name = $2, options = options || $3::jsonb, secrets = $4, updated_at = now()
      WHERE app_id = $1 RETURNING ${columns}`,
    [appId, name ?? row.name, open, vault.seal(newSecrets, sealContexts.app(appId))],
  );
}

/**
 * Locks the row of an app until `tx` ends, so that a limit is exact. Returns false for an unknown
 * app.
 */
export const lockAppRow = (tx: Handle, appId: string) =>
  query(tx).hasRows('SELECT FROM app WHERE app_id = $1 FOR NO KEY UPDATE', [appId]);

/**
 * Tables with rows of an app that no foreign key deletes. Recurring pushes are first: if a
 * dispatcher is creating a push from one, its transaction has ended when this deletion continues.
 * On a sharded database `push_freeze` has no foreign key.
 */
const tablesOfApp = `recurring_push, live_activity_token, installation, device_day, notification, push_batch, push_failure, failure_count,
  failed_receipt, push_receipt, push_receipt_total, dead_notice, request_ledger, scheduled_push,
  saved_item, channel_message, channel_deposit, channel_group, channel_inbox, channel_session,
  push_freeze, push_day, reason_day, installation_day, outbox, verification_code, sms_send, send_budget, sms_conversion, sms_breaker,
  captcha, webhook`;

/** Deletes an app with all its rows. Returns false for an unknown app. Needs a transaction. */
export async function deleteApp(tx: Handle, appId: string): Promise<boolean> {
  if (!(await query(tx).hasRows('DELETE FROM app WHERE app_id = $1', [appId]))) return false;
  for (const table of tablesOfApp.split(/,\s*/))
    await tx.query(`DELETE FROM ${table} WHERE app_id = $1`, [appId]);
  return true;
}

/** Versions of an app's row and of its profiles, which change with every write. */
export interface AppVersions {
  app: string;
  profiles: string;
  /** Enabled endpoints of the app. Few apps have any. Null without endpoints. */
  webhooks: Subscription[] | null;
}

const versionsStatement = prepare(
  `SELECT a.app_id AS "appId", a.xmin::text AS app,
          coalesce((SELECT string_agg(concat_ws(' ', p.xmin, p.connector, p.name), ','
          ORDER BY p.connector, p.name)
                      FROM push_profile p WHERE p.app_id = a.app_id), '') AS profiles,
          ${subscriptionsSql('a.app_id')} AS webhooks
     FROM app a WHERE a.app_id = ANY($1::text[])`,
);

/**
 * Reads the versions of apps in the given order. Undefined for an unknown app. Decrypts nothing.
 */
export async function readAppVersions(
  db: Handle,
  appIds: readonly string[],
): Promise<(AppVersions | undefined)[]> {
  // An app and its profiles are usually requested together.
  const distinct = [...new Set(appIds)];
  const rows = await query(db).rows<AppVersions & { appId: string }>(versionsStatement, [distinct]);
  const byId = new Map(rows.map(({ appId, ...versions }) => [appId, versions]));
  return appIds.map((appId) => byId.get(appId));
}

/** Function host of one stage of an app. Its list of hooks is valid for this URL only. */
export interface DeclaringHost {
  appId: string;
  stage: FunctionStage;
  url: string;
}

/** Saves the hooks that a host declares. Replaces the hooks of this stage. */
export const keepDeclaredHooks = (
  db: Handle,
  { appId, stage, url }: DeclaringHost,
  names: readonly string[],
) =>
  query(db).run(
    `INSERT INTO declared_hooks AS d (app_id, stage, url, names)
     SELECT app_id, $2, $3, $4 FROM app WHERE app_id = $1
     ON CONFLICT (app_id, stage)
     DO UPDATE SET url = excluded.url, names = excluded.names, declared_at = excluded.declared_at
      WHERE (d.url, d.names) IS DISTINCT FROM (excluded.url, excluded.names)`,
    [appId, stage, url, names],
  );

/** Finds the hooks that a host declared last. Undefined before its first declaration. */
export const findDeclaredHooks = (db: Handle, { appId, stage, url }: DeclaringHost) =>
  query(db).value<string[]>(
    'SELECT names FROM declared_hooks WHERE app_id = $1 AND stage = $2 AND url = $3',
    [appId, stage, url],
  );

/** NOTIFY channel of changed freezes. */
export const freezeTopic = 'carillon_freeze';

/** A freeze: pushes of an app, or of all apps, are accepted and held. */
export interface Freeze {
  /** Null for the whole service. */
  appId: string | null;
  reason: string;
  /** Name of the operator. */
  by: string;
  since: Date;
}

const members = 'app_id AS "appId", reason, actor AS "by", since';

/** Lists the freezes. The freeze of the whole service comes first. */
export const listFreezes = (db: Handle) =>
  query(db).rows<Freeze>(
    `SELECT ${members} FROM push_freeze WHERE released_at IS NULL ORDER BY app_id NULLS FIRST`,
  );

/**
 * Freezes an app, or the whole service (null), and notifies all dispatchers when `tx` commits. If
 * the freeze exists, it gets the new reason. Returns undefined if the app does not exist.
 */
export async function insertFreeze(
  tx: Handle,
  { appId, reason, by }: Omit<Freeze, 'since'>,
): Promise<Freeze | undefined> {
  const freeze = await query(tx).row<Freeze>(
    `INSERT INTO push_freeze AS f (app_id, reason, actor)
     SELECT $1::text, $2, $3 WHERE $1::text IS NULL OR EXISTS (SELECT FROM app WHERE app_id = $1)
     ON CONFLICT (app_id) DO UPDATE
        SET reason = excluded.reason, actor = excluded.actor, released_at = NULL,
            since = CASE WHEN f.released_at IS NULL THEN f.since ELSE excluded.since END
     RETURNING ${members}`,
    [appId, reason, by],
  );
  await notifyFreezes(tx);
  return freeze;
}

/**
 * Ends a freeze, and notifies all dispatchers when `tx` commits. Its row remains until all held
 * pushes have jobs again. Returns the freeze, or undefined if it does not exist.
 */
export async function releaseFreeze(tx: Handle, appId: string | null): Promise<Freeze | undefined> {
  const freeze = await query(tx).row<Freeze>(
    `UPDATE push_freeze SET released_at = now()
      WHERE app_id IS NOT DISTINCT FROM $1 AND released_at IS NULL RETURNING ${members}`,
    [appId],
  );
  await notifyFreezes(tx);
  return freeze;
}

const freezeOf = `SELECT FROM push_freeze WHERE (app_id IS NULL OR app_id = $1)
  AND released_at IS NULL LIMIT 1`;

/** Returns whether an app or the whole service is frozen. */
export const isFrozen = (db: Handle, appId: string) => query(db).hasRows(freezeOf, [appId]);

/** Like `isFrozen`. The answer stays true until `tx` ends. */
export const lockFreeze = (tx: Handle, appId: string) =>
  query(tx).hasRows(`${freezeOf} FOR SHARE`, [appId]);

/** Returns whether pushes of an ended freeze may still be held. */
export const hasEndedFreeze = (db: Handle) =>
  query(db).hasRows('SELECT FROM push_freeze WHERE released_at IS NOT NULL LIMIT 1');

/**
 * Locks the freezes that have ended until `tx` ends. Returns their scopes: the app, or '' for the
 * service. Skips freezes that another dispatcher has locked.
 */
export const lockEndedFreezes = (tx: Handle) =>
  query(tx).column<string>(
    `SELECT coalesce(app_id, '') AS scope FROM push_freeze WHERE released_at IS NOT NULL
      FOR UPDATE SKIP LOCKED`,
  );

/** Deletes locked freezes. */
export const deleteFreezes = (tx: Handle, scopes: readonly string[]) =>
  query(tx).run(`DELETE FROM push_freeze WHERE coalesce(app_id, '') = ANY ($1)`, [scopes]);

const notifyFreezes = (tx: Handle) => query(tx).run(`SELECT pg_notify($1, '')`, [freezeTopic]);
