import type { Handle } from '../../../pool.ts';
import { prepare } from '../../../prepared.ts';
import type { SqlCondition } from '../../installations/audience.ts';
import { localeExpression } from '../../installations/traits.ts';

interface PushKey {
  appId: string;
  id: number;
}

/** Locales of one audience that are told apart: clients choose them. Devices of further ones count as without a locale. */
const maxLocales = 2000;

/** Devices with the same `locale`; null for those without one, or with one of too many. */
export interface LocaleGroup {
  locale: string | null;
  devices: number;
}

/** Counts devices by their locale, the most frequent first. */
export async function countLocales(tx: Handle, condition: SqlCondition): Promise<LocaleGroup[]> {
  const { rows } = await tx.query<LocaleGroup & { total: number }>(
    `SELECT ${localeExpression} AS locale, count(*) AS devices, (sum(count(*)) OVER ())::bigint AS total
       FROM installation WHERE ${condition.text}
      GROUP BY 1 ORDER BY devices DESC, 1 LIMIT ${maxLocales}`,
    condition.values,
  );
  const groups = rows.map(({ locale, devices }) => ({ locale, devices }));
  const others = (rows[0]?.total ?? 0) - groups.reduce((sum, { devices }) => sum + devices, 0);
  return others > 0 ? [...groups, { locale: null, devices: others }] : groups;
}

/** Recipients by a key of the push: language or variable. */
type Counts = Readonly<Record<string, { devices: number; fallback: number }>>;

const addStatement = (column: 'languages' | 'variables') =>
  prepare(
    `UPDATE notification n
        SET ${column} = (
          SELECT jsonb_object_agg(l.key, l.counts)
            FROM (SELECT a.key, jsonb_build_object('devices', sum((a.value ->> 'devices')::bigint),
                                                   'fallback', sum((a.value ->> 'fallback')::bigint)) AS counts
                    FROM (SELECT * FROM jsonb_each(coalesce(n.${column}, '{}'))
                          UNION ALL SELECT * FROM jsonb_each($3::jsonb)) AS a
                   GROUP BY a.key) AS l)
      WHERE n.app_id = $1 AND n.id = $2`,
  );
const addStatements = { languages: addStatement('languages'), variables: addStatement('variables') };

/** Adds the recipients of a page to those of a push, in the transaction that writes their batches. */
export async function addCounts(
  tx: Handle,
  { appId, id }: PushKey,
  column: keyof typeof addStatements,
  counts: Counts,
): Promise<void> {
  if (Object.keys(counts).length === 0) return;
  await tx.query(addStatements[column], [appId, id, JSON.stringify(counts)]);
}

/** Reads the recipients of pushes by language or variable, as far as they are planned, by push id. */
export async function readCounts(
  db: Handle,
  appId: string,
  { column, ids }: { column: keyof typeof addStatements; ids: readonly number[] },
): Promise<Map<number, Counts>> {
  const { rows } = await db.query<{ id: number; counts: Counts }>(
    `SELECT id, ${column} AS counts FROM notification
      WHERE app_id = $1 AND id = ANY($2::bigint[]) AND ${column} IS NOT NULL`,
    [appId, ids],
  );
  return new Map(rows.map(({ id, counts }) => [id, counts]));
}
