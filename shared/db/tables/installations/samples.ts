import type { Json } from '../../../domain/json.ts';
import type { Handle } from '../../pool.ts';

/** Devices of a sample: the newest of an app. */
const maxSampled = 2000;
/** Members, and values of one, in a reply; longer values are left out. */
const maxNames = 200;
const maxValues = 20;
const maxValueLength = 100;

/** Member of installations in a sample. */
export interface SampledField {
  name: string;
  /** JSON types of its values, or `__type` of typed ones. */
  types: string[];
  /** Its most frequent values with their share of the devices that have it. */
  values: { value: Json; share: number }[];
}

/** Built-in members of which values are suggested. Those with ids are not: each device has its own. */
const columns = `'deviceType', device_type, 'vendor', vendor_name, 'deviceProfile', device_profile, 'timeZone', time_zone,
  'apnsTopic', topic, 'apnsTeamId', team_id, 'channels', CASE WHEN cardinality(channels) > 0 THEN to_jsonb(channels) END,
  'badge', badge, 'valid', valid`;

const sample = `sample AS MATERIALIZED (
    SELECT fields || jsonb_strip_nulls(jsonb_build_object(${columns})) AS members
      FROM installation WHERE app_id = $1 ORDER BY id DESC LIMIT ${maxSampled})`;

/** Lists the members of the newest installations whose name begins with `prefix`, the most frequent first. */
export async function sampleFields(db: Handle, appId: string, prefix: string): Promise<SampledField[]> {
  const { rows } = await db.query<SampledField>(
    `WITH ${sample},
     member AS (
       SELECT m.key AS name, m.value FROM sample, jsonb_each(members) AS m WHERE starts_with(m.key, $2)),
     field AS (
       SELECT name, count(*) AS n, array_agg(DISTINCT coalesce(value ->> '__type', jsonb_typeof(value))) AS types
         FROM member GROUP BY name ORDER BY n DESC, name LIMIT ${maxNames}),
     found AS (
       SELECT m.name, e.value, count(*) AS n, row_number() OVER (PARTITION BY m.name ORDER BY count(*) DESC, e.value) AS place
         FROM member m JOIN field USING (name)
         CROSS JOIN LATERAL (
           SELECT m.value WHERE jsonb_typeof(m.value) <> 'array'
           UNION ALL
           SELECT jsonb_array_elements(m.value) WHERE jsonb_typeof(m.value) = 'array') AS e
        WHERE length(e.value::text) <= ${maxValueLength} AND jsonb_typeof(e.value) IN ('string', 'number', 'boolean')
        GROUP BY m.name, e.value)
     SELECT f.name, f.types,
            coalesce(jsonb_agg(jsonb_build_object('value', v.value, 'share', round(v.n / f.n::numeric, 3))
                       ORDER BY v.place) FILTER (WHERE v.place IS NOT NULL), '[]') AS values
       FROM field f LEFT JOIN found v ON v.name = f.name AND v.place <= ${maxValues}
      GROUP BY f.name, f.types, f.n ORDER BY f.n DESC, f.name`,
    [appId, prefix],
  );
  return rows;
}

/** Lists the channels of the newest installations that begin with `prefix`, the most frequent first. */
export async function sampleChannels(
  db: Handle,
  appId: string,
  prefix: string,
): Promise<{ value: string; share: number }[]> {
  const { rows } = await db.query<{ value: string; share: number }>(
    `WITH sample AS MATERIALIZED (
       SELECT channels FROM installation WHERE app_id = $1 ORDER BY id DESC LIMIT ${maxSampled})
     SELECT channel AS value, round(count(*) / (SELECT count(*) FROM sample)::numeric, 3)::float8 AS share
       FROM sample, unnest(channels) AS channel WHERE starts_with(channel, $2)
      GROUP BY channel ORDER BY count(*) DESC, channel LIMIT ${maxNames}`,
    [appId, prefix],
  );
  return rows;
}
