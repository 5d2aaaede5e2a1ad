import type { Bench } from './bench-service.ts';

/** Rows from which on indexes are built after the insert instead of row by row. */
const manyRows = 50_000;

/**
 * Writes installations directly into the table, because the benchmark measures sending and not registration. Device number i
 * has `i` in the last eight digits of its token (gateway/arrivals.ts) and as its object id; the first has badge 1.
 */
export const writeInstallations = (
  bench: Pick<Bench, 'db' | 'gateway'>,
  appId: string,
  count: number,
): Promise<void> => writeAudiences(bench, [appId], count);

/** Writes `each` installations for each app, numbered on from one app to the next. */
export async function writeAudiences(
  { db, gateway }: Pick<Bench, 'db' | 'gateway'>,
  appIds: readonly string[],
  each: number,
): Promise<void> {
  const indexes = appIds.length * each < manyRows ? [] : await dropIndexes(db);
  await db.transaction(async (tx) => {
    await tx.query(
      `INSERT INTO installation (app_id, object_id, device_type, device_token, topic, badge)
       SELECT app_id, lpad(to_hex(i), 24, '0'), 'ios',
              encode(substr(sha256(i::text::bytea), 1, 28) || int4send(i), 'hex'), $3,
              CASE WHEN i = 1 THEN 1 END
         FROM unnest($1::text[]) WITH ORDINALITY AS a (app_id, place),
              generate_series((place - 1)::int * $2 + 1, place::int * $2) AS i`,
      [appIds, each, gateway.apns.topics[0]],
    );
    await tx.query(`SET LOCAL maintenance_work_mem = '512MB'`);
    for (const { definition } of indexes) await tx.query(definition);
  });
  await db.query('VACUUM ANALYZE installation');
  await db.query('CHECKPOINT');
}

/** Subscribes every `nth` installation of an app to the channel `sparse`. */
export async function subscribeSparsely(
  { db }: Pick<Bench, 'db'>,
  appId: string,
  nth: number,
): Promise<void> {
  await db.query(
    `UPDATE installation SET channels = '{sparse}' WHERE app_id = $1 AND ('x' || right(device_token, 8))::bit(32)::int % $2 = 0`,
    [appId, nth],
  );
  await db.query('VACUUM ANALYZE installation');
  await db.query('CHECKPOINT');
}

interface Index {
  name: string;
  definition: string;
}

/** Drops all indexes but the primary key. Returns their definitions. */
async function dropIndexes(db: Bench['db']): Promise<Index[]> {
  const { rows } = await db.query<Index>(
    `SELECT c.relname AS name, pg_get_indexdef(i.indexrelid) AS definition
       FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
      WHERE i.indrelid = 'installation'::regclass AND NOT i.indisprimary`,
  );
  for (const { name } of rows) await db.query(`DROP INDEX ${name}`);
  return rows;
}

/** One of four locales: three of them have a translation, some in another spelling. */
const locale = `'locale', (ARRAY['en_US', 'en_GB', 'zh_CN', 'de_DE'])[1 + (id % 4)::int]`;
const ownName = `'name', 'Person ' || id`;

/** Gives the installations of an app one of four locales each. */
export const writeLocales = (bench: Pick<Bench, 'db'>, appId: string): Promise<void> =>
  writeFields(bench, appId, locale);

/** Gives each installation of an app a name of its own, and no level. */
export const writeNames = (bench: Pick<Bench, 'db'>, appId: string): Promise<void> =>
  writeFields(bench, appId, ownName);

/** Gives the installations of an app what every kind of push reads: locales, names, and one of four zones with the same time. */
export async function writeTraits(bench: Pick<Bench, 'db'>, appId: string): Promise<void> {
  await bench.db.query(
    `UPDATE installation SET time_zone = (ARRAY['Etc/UTC', 'Africa/Abidjan', 'Atlantic/Reykjavik', 'Africa/Accra'])[1 + (id % 4)::int]
      WHERE app_id = $1`,
    [appId],
  );
  await writeFields(bench, appId, `${locale}, ${ownName}`);
}

async function writeFields({ db }: Pick<Bench, 'db'>, appId: string, members: string): Promise<void> {
  await db.query(`UPDATE installation SET fields = jsonb_build_object(${members}) WHERE app_id = $1`, [
    appId,
  ]);
  await db.query('VACUUM ANALYZE installation');
}
