import { z } from 'zod';
import type { Handle } from '../db/pool.ts';
import { countTokenStates } from '../db/tables/console.ts';
import { countKeptTokens } from '../db/tables/invalid-tokens.ts';
import { listWaitingApprovals } from '../db/tables/scheduled-pushes.ts';
import { planLimits } from '../domain/apps/app.ts';

/** Rows of each kind in a reading: they become labels of metrics, which must not grow with the number of apps. */
const maxRows = 100;
/** Least time between two readings of all dispatchers, and the share of the time that reading may take. */
const leastRestMs = 30_000;
const restPerReading = 20;
/** Time after which another dispatcher reads, if this one did not come back. */
const claimMs = 120_000;

const profile = { appId: z.string(), connector: z.string(), profile: z.string() };
const accountReading = z.object({
  /** Apps that used most of their daily cap; today in UTC. */
  caps: z.array(z.object({ appId: z.string(), usedRatio: z.number() })),
  /** Profiles that sent most today in China, those whose quota is used up first. */
  quotas: z.array(z.object({ ...profile, recipients: z.number(), isUsedUp: z.boolean() })),
  /** Credentials that end first. */
  credentials: z.array(z.object({ ...profile, endsAtMs: z.number() })),
  /** Encrypted values that are not under the first key of CARILLON_SECRET, by column; empty with a single key. */
  oldSecrets: z.record(z.string(), z.number()).default({}),
  /** Rotations of credentials that are open or ended within a day. */
  rotations: z.array(z.object({ ...profile, state: z.string() })).default([]),
  /** Pushes that wait for the approval of a second person, by app. */
  approvals: z.array(z.object({ appId: z.string(), pushes: z.number() })).default([]),
  /** Invalid tokens that pushes of the last day kept, by profile. */
  keptTokens: z.array(z.object({ ...profile, tokens: z.number() })).default([]),
  /** Tokens of the admin API: valid, of those ending within 30 days, expired. */
  tokens: z.record(z.string(), z.number()).default({}),
});

/** Use of caps and quotas, and ends of credentials, of the apps that an operator has to look at first. */
export type AccountReading = z.infer<typeof accountReading>;

/** Profile whose credentials end. */
export type EndingCredentials = AccountReading['credentials'][number];

/** Reads by `read` if no dispatcher has done so lately, and stores the result for all. Returns whether it read. */
export async function refreshAccountReading(
  db: Handle,
  read: () => Promise<Pick<AccountReading, 'credentials' | 'oldSecrets'>>,
): Promise<boolean> {
  const startedAtMs = performance.now();
  const claimed = await db.query(
    `INSERT INTO shared_reading (id, next_at, accounts_next_at)
     VALUES (true, clock_timestamp(), clock_timestamp() + $1 * interval '1 ms')
     ON CONFLICT (id) DO UPDATE SET accounts_next_at = excluded.accounts_next_at
           WHERE shared_reading.accounts_next_at IS NULL OR shared_reading.accounts_next_at <= clock_timestamp()
     RETURNING id`,
    [claimMs],
  );
  if (claimed.rows.length === 0) return false;
  const { credentials, oldSecrets } = await read();
  const reading: AccountReading = {
    caps: await readCaps(db),
    quotas: await readQuotas(db),
    credentials: credentials.toSorted((a, b) => a.endsAtMs - b.endsAtMs).slice(0, maxRows),
    oldSecrets,
    rotations: await readRotations(db),
    approvals: await listWaitingApprovals(db, maxRows),
    keptTokens: await countKeptTokens(db, maxRows),
    tokens: await countTokenStates(db),
  };
  const restMs = Math.max(leastRestMs, (performance.now() - startedAtMs) * restPerReading);
  await db.query(
    `UPDATE shared_reading SET accounts = $1, accounts_next_at = clock_timestamp() + $2 * interval '1 ms'`,
    [JSON.stringify(reading), restMs],
  );
  return true;
}

/** Returns the newest reading; undefined before the first one. */
export async function readAccounts(db: Handle): Promise<AccountReading | undefined> {
  const { rows } = await db.query<{ accounts: unknown }>('SELECT accounts FROM shared_reading');
  return accountReading.safeParse(rows[0]?.accounts).data;
}

async function readRotations(db: Handle): Promise<AccountReading['rotations']> {
  const { rows } = await db.query<AccountReading['rotations'][number]>(
    `SELECT app_id AS "appId", connector, name AS profile, state FROM profile_rotation
      WHERE state IN ('staged', 'checked', 'canary') OR changed_at > now() - interval '1 day'
      ORDER BY changed_at DESC LIMIT ${maxRows}`,
  );
  return rows;
}

async function readCaps(db: Handle): Promise<AccountReading['caps']> {
  const { rows } = await db.query<AccountReading['caps'][number]>(
    `SELECT app_id AS "appId",
            recipients / greatest(1, coalesce(options ->> 'dailyRecipientCap', $1::jsonb -> plan ->> 'dailyRecipientCap')::float8)
              AS "usedRatio"
       FROM usage_day JOIN app USING (app_id)
      WHERE day = (now() AT TIME ZONE 'UTC')::date AND recipients > 0
      ORDER BY "usedRatio" DESC LIMIT ${maxRows}`,
    [JSON.stringify(planLimits)],
  );
  return rows;
}

async function readQuotas(db: Handle): Promise<AccountReading['quotas']> {
  const { rows } = await db.query<AccountReading['quotas'][number]>(
    `SELECT app_id AS "appId", connector, profile, sum(recipients)::float8 AS recipients,
            bool_or(closed_reason IS NOT NULL) AS "isUsedUp"
       FROM gateway_day WHERE day = (now() AT TIME ZONE 'Asia/Shanghai')::date
      GROUP BY app_id, connector, profile ORDER BY "isUsedUp" DESC, recipients DESC LIMIT ${maxRows}`,
  );
  return rows;
}
