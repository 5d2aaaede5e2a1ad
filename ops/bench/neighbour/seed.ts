import type { Bench } from '../harness/bench-service.ts';
import type { Targets } from './patterns.ts';

/** Devices of the hostile app, enough to make a list without an index slow. */
const devices = 100_000;
/** Users of the hostile app, of the largest size that an app key can write. */
const users = 400;
const userBytes = 110_000;
/** Length of a text for patterns. */
const longBytes = 60_000;

/** Writes rows directly into the tables, as many as an app could write in an hour. */
export async function writeHostileRows({ db }: Pick<Bench, 'db'>, appId: string): Promise<Targets> {
  await db.transaction(async (tx) => {
    await tx.query('SET LOCAL synchronous_commit = off');
    await tx.query(
      `INSERT INTO app_user (app_id, object_id, username, session_nonce, session_hash, fields)
       SELECT $1, lpad(to_hex(i), 24, '0'), 'user ' || i, int8send(i), sha256(int8send(i)),
              jsonb_build_object('parts', (SELECT jsonb_agg(jsonb_build_array(left(md5((i * j)::text), 10)))
                                             FROM generate_series(1, $3::int) AS j))
         FROM generate_series(1, $2::int) AS i`,
      [appId, users, Math.floor(userBytes / 16)],
    );
    await tx.query(
      `INSERT INTO installation (app_id, object_id, device_type, installation_id, fields)
       SELECT $1, lpad(to_hex(i), 24, '0'), 'android', 'hostile-' || i, jsonb_build_object(
                'level', i % 1000, 'city', 'c' || i % 30, 'text', translate(md5(i::text) || md5(i::text), '0123456789cdef', 'abababababababab'),
                'at', jsonb_build_object('__type', 'GeoPoint', 'latitude', i % 90, 'longitude', i % 180))
         FROM generate_series(1, $2::int) AS i`,
      [appId, devices],
    );
    await tx.query(
      `UPDATE installation SET fields = fields || jsonb_build_object('owned', 1, 'owner', jsonb_build_object(
                '__type', 'Pointer', 'className', '_User', 'objectId', object_id))
        WHERE app_id = $1 AND object_id <= lpad(to_hex($2::int), 24, '0')`,
      [appId, users],
    );
    await tx.query(
      `UPDATE installation SET fields = fields || jsonb_build_object('long',
                (SELECT string_agg(translate(md5(j::text), '0123456789cdef', 'abababababababab'), '')
                   FROM generate_series(1, $2::int) AS j))
        WHERE app_id = $1 AND object_id <= lpad(to_hex(20), 24, '0')`,
      [appId, Math.floor(longBytes / 32)],
    );
  });
  await db.query('VACUUM ANALYZE installation');
  await db.query('VACUUM ANALYZE app_user');
  await db.query('CHECKPOINT');
  return { devices: Array.from({ length: 20 }, (_, i) => (i + 1).toString(16).padStart(24, '0')) };
}
