import { parseIdList } from '../../id-list.ts';
import type { Handle } from '../../pool.ts';
import { PreparedStatements } from '../../prepared.ts';

/** Column of the token that each kind of gateway addresses an installation by. */
const tokenColumns = {
  deviceToken: 'device_token',
  registrationId: 'registration_id',
  installationId: 'installation_id',
} as const;

export type TokenField = keyof typeof tokenColumns;

/** Installations that are alike but for id and token; the lists have one entry for each, in the same order. */
export interface RecipientGroup {
  deviceType: string;
  vendor: string | null;
  topic: string | null;
  teamId: string | null;
  ids: number[];
  /** Empty for an installation that has none. */
  tokens: string[];
  /** When each was last saved, as `savedAtMs` reads it. */
  savedAt: Buffer;
}

interface GroupRow {
  device_type: string;
  vendor_name: string | null;
  topic: string | null;
  team_id: string | null;
  ids: string;
  tokens: string;
  saved_at: Buffer;
}

const tokenSeparator = '\n';

/**
 * Loads recipients by key; those that were deleted since planning are missing. One row for each group instead of one for each
 * installation costs a fifth of the processor time on this side.
 */
export function loadRecipients(
  db: Handle,
  appId: string,
  ids: readonly number[],
  tokenField: TokenField,
): Promise<RecipientGroup[]> {
  return loadRecipientsFrom(db, tokenField, {
    from: installationsIn('$2::bigint[]'),
    values: [appId, `{${ids.join(',')}}`],
  });
}

/** As `loadRecipients`, for all recipients of a batch, whose ids then need not be sent. Empty where the batch was deleted. */
export function loadBatchRecipients(
  db: Handle,
  { appId, batchId }: { appId: string; batchId: number },
  tokenField: TokenField,
): Promise<RecipientGroup[]> {
  return loadRecipientsFrom(db, tokenField, { from: installationsIn(idsOfBatch), values: [appId, batchId] });
}

const idsOfBatch = '(SELECT recipients FROM push_batch WHERE app_id = $1 AND id = $2)::bigint[]';

const installationsIn = (ids: string): string => `installation WHERE app_id = $1 AND id = ANY(${ids})`;

/** Prepared: without that, PostgreSQL plans each time for all the ids, which takes as long as reading the rows. */
const statements = new PreparedStatements();

/** As `loadRecipients`, from a relation with the columns of `installation`. */
async function loadRecipientsFrom(
  db: Handle,
  tokenField: TokenField,
  { from, values }: { from: string; values: unknown[] },
): Promise<RecipientGroup[]> {
  const token = `coalesce(${tokenColumns[tokenField]}, '')`;
  const read = async (tokens: string) => {
    const { rows } = await db.query<GroupRow>(statements.of(groupsSql(from, tokens)), values);
    return rows;
  };
  const groups = (await read(`string_agg(${token}, '${tokenSeparator}')`)).map((row) =>
    toGroup(row, row.tokens.split(tokenSeparator)),
  );
  // A token contains the separator; tokens of gateways do not.
  if (groups.some(({ ids: of, tokens }) => of.length !== tokens.length))
    return (await read(`json_agg(${token})::text`)).map((row) => toGroup(row, JSON.parse(row.tokens)));
  return groups;
}

const groupsSql = (from: string, tokens: string): string =>
  `SELECT device_type, vendor_name, topic, team_id, string_agg(id::text, ',') AS ids, ${tokens} AS tokens,
          string_agg(timestamptz_send(updated_at), '') AS saved_at
     FROM ${from}
    GROUP BY device_type, vendor_name, topic, team_id`;

const toGroup = (row: GroupRow, tokens: string[]): RecipientGroup => ({
  deviceType: row.device_type,
  vendor: row.vendor_name,
  topic: row.topic,
  teamId: row.team_id,
  ids: parseIdList(row.ids),
  tokens,
  savedAt: row.saved_at,
});

/** PostgreSQL counts microseconds from 2000-01-01, in eight bytes. */
const timestampBytes = 8;
const epochOffsetMs = Date.UTC(2000, 0, 1);

/** Reads when the installation at a place of a group was last saved, in epoch ms. */
export const savedAtMs = ({ savedAt }: RecipientGroup, place: number): number =>
  Number(savedAt.readBigInt64BE(place * timestampBytes) / 1000n) + epochOffsetMs;
