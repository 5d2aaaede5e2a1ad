import type { InstallationDraft } from '../../../../domain/installations/installation.ts';
import { parseExactly } from '../../../../domain/json.ts';
import type { Handle } from '../../../pool.ts';
import { partByApp } from '../../../schema/by-app.ts';
import { draftColumns, draftReaders } from '../installations.ts';

/** New values of an installation whose row has this version. */
interface VersionedUpdate {
  appId: string;
  id: number;
  row: { version: string };
  draft: InstallationDraft;
}

const types: Readonly<Record<string, string>> = {
  wire_names: 'boolean',
  valid: 'boolean',
  badge: 'integer',
  fields: 'jsonb',
  channels: 'text[]',
};

/** Takes the rows as JSON, which has its types without casts: Citus refuses a cast that depends on settings here. */
const updateText = `
  UPDATE installation i SET updated_at = $1, ${draftColumns.map((name) => `${name} = g.${name}`).join(', ')}
    FROM (SELECT g.* FROM jsonb_to_recordset($2::jsonb) AS g (app_id text, id bigint, version text,
                 ${draftColumns.map((name) => `${name} ${types[name] ?? 'text'}`).join(', ')}),
          LATERAL (
            SELECT FROM installation i
             WHERE i.xmin = g.version::xid AND i.app_id = g.app_id AND i.id = g.id AND i.app_id = $3
               FOR NO KEY UPDATE SKIP LOCKED) AS locked) AS g
   WHERE i.app_id = g.app_id AND i.id = g.id AND i.app_id = $3
  RETURNING NULL::text AS object_id, i.id`;

/** Updates rows of a group in a spread database, with a statement for each app. Returns the keys of those that it updated. */
export async function updateInSpread(
  db: Handle,
  updates: readonly VersionedUpdate[],
  now: Date,
): Promise<{ object_id: null; id: number }[]> {
  const updated: { object_id: null; id: number }[] = [];
  for (const part of await partByApp(db, updates)) {
    const values = [now, JSON.stringify(part.map(rowOf)), part[0]?.appId];
    updated.push(...(await db.query<{ object_id: null; id: number }>(updateText, values)).rows);
  }
  return updated;
}

function rowOf({ appId, id, row, draft }: VersionedUpdate): object {
  const values = draftColumns.map((name, i) => {
    const value = draftReaders[i]?.(draft) ?? null;
    return [name, name === 'fields' ? parseExactly(String(value)) : value];
  });
  return { app_id: appId, id, version: row.version, ...Object.fromEntries(values) };
}
