import type { WebhookEvents } from '../../shared/db/webhook-events.ts';
import type { UsedQuotas } from '../../shared/queue/report.ts';

/** Shares of a daily cap, in percent, at which an app is told. The highest that is reached counts. */
const steps = [100, 80] as const;

/**
 * Reports to webhooks that an app has used 80 % or all of its daily cap, or that the quota of a
 * gateway is used up. Once for each endpoint, day and step. The day is the day of the use, since a
 * sample that is read before midnight may be reported after midnight.
 */
export async function noticeQuotas(
  webhooks: Pick<WebhookEvents, 'emitAlone'>,
  { caps, quotas }: UsedQuotas,
): Promise<void> {
  for (const { appId, day, usedRatio } of caps) {
    const usedPercent = steps.find((step) => usedRatio * 100 >= step);
    if (usedPercent === undefined) continue;
    const quota = 'dailyRecipientCap';
    const data = { quota, usedPercent, day, connector: null, profile: null } as const;
    const onceKey = `cap ${day} ${usedPercent}`;
    await webhooks.emitAlone({ appId, type: 'quota.near', data, onceKey });
  }
  for (const { appId, connector, day, profile, isUsedUp } of quotas) {
    if (!isUsedUp) continue;
    const data = { quota: 'gateway', usedPercent: 100, day, connector, profile } as const;
    const onceKey = `quota ${connector}/${profile} ${day}`;
    await webhooks.emitAlone({ appId, type: 'quota.near', data, onceKey });
  }
}
