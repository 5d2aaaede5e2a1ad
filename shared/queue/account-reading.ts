import { z } from 'zod';
import type { Handle } from '../db/pool.ts';
import { query } from '../db/query.ts';
import { countTokenStates } from '../db/tables/console.ts';
import { countKeptTokens } from '../db/tables/invalid-tokens.ts';
import { listWaitingApprovals } from '../db/tables/scheduled-pushes.ts';
import { planLimits } from '../domain/apps/app.ts';
import { refreshReading } from './shared-reading.ts';

/** Rows of each kind in a reading: they become labels of metrics, which must not grow with the number of apps. */
const maxRows = 100;
const accountsReading = {
  column: 'accounts',
  nextAt: 'accounts_next_at',
  leastRestMs: 30_000,
  claimMs: 120_000,
} as const;

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
export const refreshAccountReading = (
  db: Handle,
  read: () => Promise<Pick<AccountReading, 'credentials' | 'oldSecrets'>>,
): Promise<boolean> =>
  refreshReading(db, accountsReading, async (): Promise<AccountReading> => {
    const { credentials, oldSecrets } = await read();
    return {
      caps: await readCaps(db),
      quotas: await readQuotas(db),
      credentials: credentials.toSorted((a, b) => a.endsAtMs - b.endsAtMs).slice(0, maxRows),
      oldSecrets,
      rotations: await readRotations(db),
      approvals: await listWaitingApprovals(db, maxRows),
      keptTokens: await countKeptTokens(db, maxRows),
      tokens: await countTokenStates(db),
    };
  });

/** Returns the newest reading; undefined before the first one. */
export const readAccounts = async (db: Handle): Promise<AccountReading | undefined> =>
  accountReading.safeParse(await query(db).value('SELECT accounts FROM shared_reading')).data;

const readRotations = (db: Handle) =>
  query(db).rows<AccountReading['rotations'][number]>(
    `SELECT app_id AS "appId", connector, name AS profile, state FROM profile_rotation
      WHERE state IN ('staged', 'checked', 'canary') OR changed_at > now() - interval '1 day'
      ORDER BY changed_at DESC LIMIT ${maxRows}`,
  );

const readCaps = (db: Handle) =>
  query(db).rows<AccountReading['caps'][number]>(
    `SELECT app_id AS "appId",
            recipients / greatest(1, coalesce(options ->> 'dailyRecipientCap', $1::jsonb -> plan ->> 'dailyRecipientCap')::float8)
              AS "usedRatio"
       FROM usage_day JOIN app USING (app_id)
      WHERE day = (now() AT TIME ZONE 'UTC')::date AND recipients > 0
      ORDER BY "usedRatio" DESC LIMIT ${maxRows}`,
    [JSON.stringify(planLimits)],
  );

const readQuotas = (db: Handle) =>
  query(db).rows<AccountReading['quotas'][number]>(
    `SELECT app_id AS "appId", connector, profile, sum(recipients)::float8 AS recipients,
            bool_or(closed_reason IS NOT NULL) AS "isUsedUp"
       FROM gateway_day WHERE day = (now() AT TIME ZONE 'Asia/Shanghai')::date
      GROUP BY app_id, connector, profile ORDER BY "isUsedUp" DESC, recipients DESC LIMIT ${maxRows}`,
  );
