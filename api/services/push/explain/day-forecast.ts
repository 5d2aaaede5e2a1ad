import type { Profile } from '../../../../connectors/routing.ts';
import { dayMs, hourMs } from '../../../../shared/clock.ts';
import type { Handle } from '../../../../shared/db/pool.ts';
import { listProfileUse, type ProfileUse } from '../../../../shared/db/tables/gateway-limits.ts';
import { listScheduledPage } from '../../../../shared/db/tables/scheduled-pushes.ts';
import { readUsage } from '../../../../shared/db/tables/usage.ts';
import { meaningOrNull } from '../../../../shared/domain/admin/reasons/meaning.ts';
import type { App } from '../../../../shared/domain/apps/app.ts';
import type { ConnectorId } from '../../../../shared/domain/labels.ts';
import type { PushTiming } from '../../../../shared/domain/pushes/push.ts';
import { reasonText } from '../../../../shared/domain/reasons.ts';
import { profileKey } from '../../../../shared/rules/mass-limit.ts';
import type { ConnectorShare } from './audience.ts';
import { type CountedPush, countPush } from './forecast.ts';

/** Scheduled pushes whose audience is counted. */
const maxScheduled = 5;
/** Rows of use that are read: profiles by class. */
const maxUse = 1000;
/** China is eight hours ahead of UTC all year. */
const chinaOffsetMs = 8 * hourMs;

export interface ForecastInputs {
  app: App;
  shares: Map<ConnectorId, ConnectorShare>;
  devices: number;
  profiles: Profile[];
  timing: PushTiming;
  nowMs: number;
}

type Shares = Map<ConnectorId, ConnectorShare>;

/** Returns the day of a time, in a zone that is so far ahead of UTC. */
const dayOf = (ms: number, offsetMs: number): string => new Date(ms + offsetMs).toISOString().slice(0, 10);

/**
 * Returns the use of the day that a push is sent on: recipients so far, of the pushes that are scheduled for it, and of
 * this push, against the daily cap of the app (day in UTC) and by gateway (day in China).
 */
export async function readForecast(tx: Handle, inputs: ForecastInputs) {
  const { app, devices, timing, nowMs, shares } = inputs;
  const atMs = timing.pushTime?.getTime() ?? nowMs;
  const [day, chinaDay] = [dayOf(atMs, 0), dayOf(atMs, chinaOffsetMs)];
  const { counted, isLeast } = await countScheduledPushes(tx, inputs, atMs);
  const inDay = counted.filter(({ push }) => dayOf(push.pushTime.getTime(), 0) === day);
  const inChinaDay = counted.filter(({ push }) => dayOf(push.pushTime.getTime(), chinaOffsetMs) === chinaDay);
  const scheduled = inDay.reduce((sum, one) => sum + one.devices, 0);
  const { recipients: used } = await readUsage(tx, app.appId, day);
  const limit = app.options.dailyRecipientCap;
  const left = Math.max(0, limit - used - scheduled);
  const use = await listProfileUse(tx, app.appId, { day: chinaDay, limit: maxUse });
  return {
    scheduledPushes: counted.length,
    scheduledIsLeast: isLeast,
    cap: { day, zone: 'UTC', used, scheduled, draft: devices, limit, over: Math.max(0, devices - left) },
    quotas: {
      day: chinaDay,
      zone: 'Asia/Shanghai',
      results: quotasOf(
        use,
        inChinaDay.map((one) => one.shares),
        shares,
      ),
    },
  };
}

/** Counts the recipients of the next scheduled pushes that may fall on the day of a time. */
async function countScheduledPushes(
  tx: Handle,
  { app, profiles, nowMs }: ForecastInputs,
  atMs: number,
): Promise<{ counted: CountedPush[]; isLeast: boolean }> {
  const next = await listScheduledPage(tx, app.appId, { after: null, limit: maxScheduled + 1 });
  const near = next.filter(({ push }) => Math.abs(push.pushTime.getTime() - atMs) < dayMs);
  const counted: CountedPush[] = [];
  for (const { push } of near.slice(0, maxScheduled))
    counted.push(await countPush(tx, { app, push, profiles, nowMs }));
  return { counted, isLeast: next.length > maxScheduled };
}

/** Returns the use of each gateway and profile that has any, or that the push goes by. */
function quotasOf(use: ProfileUse[], scheduled: Shares[], draft: Shares) {
  const known = Map.groupBy(use, ({ connector, profile }) => profileKey(connector, profile));
  const keys = new Set([...known.keys(), ...[draft, ...scheduled].flatMap(keysOf)]);
  return [...keys].sort().flatMap((key) => {
    const [connector = '', profile = ''] = key.split('/');
    // The own channel has no quota.
    if (connector === 'channel') return [];
    const rows = known.get(key) ?? [];
    const closedReason = rows.find((row) => row.closedReason !== null)?.closedReason ?? null;
    const countIn = (shares: Shares) => devicesOf(shares, key);
    return [
      {
        connector,
        profile,
        used: rows.reduce((sum, { recipients }) => sum + recipients, 0),
        scheduled: scheduled.reduce((sum, shares) => sum + countIn(shares), 0),
        draft: countIn(draft),
        closedReason: closedReason && reasonText(closedReason),
        closedMeaning: meaningOrNull(closedReason),
      },
    ];
  });
}

const keysOf = (shares: Shares): string[] =>
  [...shares].flatMap(([connector, { profiles }]) =>
    [...profiles.keys()].map((name) => profileKey(connector, name)),
  );

function devicesOf(shares: Shares, key: string): number {
  for (const [connector, { profiles }] of shares)
    for (const [name, n] of profiles) if (profileKey(connector, name) === key) return n;
  return 0;
}
