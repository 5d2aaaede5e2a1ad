import { forEachItem } from '../../shared/db/outage.ts';
import type { WebhookEvents } from '../../shared/db/webhook-events.ts';
import type { UsedQuotas } from '../../shared/queue/report.ts';

/** Shares of a daily cap, in percent, at which an app is told. The highest that is reached counts. */
const steps = [100, 80] as const;

/**
 * Reports to webhooks that an app has used 80 % or all of its daily cap, or that the quota of a
 * gateway is used up. Once for each endpoint, day and step. The day is the day of the use, since a
 * sample that is read before midnight may be reported after midnight. If a notice fails, the others
 * are written.
 */
export async function noticeQuotas(
  webhooks: Pick<WebhookEvents, 'emitAlone'>,
  { caps, quotas }: UsedQuotas,
): Promise<void> {
  const ofCaps = caps.flatMap(({ appId, day, usedRatio }) => {
    const usedPercent = steps.find((step) => usedRatio * 100 >= step);
    if (usedPercent === undefined) return [];
    const quota = 'dailyRecipientCap' as const;
    const data = { quota, usedPercent, day, connector: null, profile: null };
    return { appId, data, onceKey: `cap ${day} ${usedPercent}` };
  });
  const ofGateways = quotas
    .filter(({ isUsedUp }) => isUsedUp)
    .map(({ appId, connector, day, profile }) => {
      const data = { quota: 'gateway' as const, usedPercent: 100, day, connector, profile };
      return { appId, data, onceKey: `quota ${connector}/${profile} ${day}` };
    });
  await forEachItem([...ofCaps, ...ofGateways], (notice) =>
    webhooks.emitAlone({ ...notice, type: 'quota.near' }),
  );
}
