import { chinaDay, utcDay } from '../../shared/clock.ts';
import type { WebhookEvents } from '../../shared/db/webhook-events.ts';
import type { UsedQuotas } from '../../shared/queue/report.ts';
import type { DispatcherDeps } from '../deps.ts';

/** Shares of a daily cap, in percent, at which an app is told. The highest that is reached counts. */
const steps = [100, 80] as const;

/**
 * Reports to webhooks that an app has used 80 % or all of its daily cap, or that the quota of a
 * gateway is used up. Once for each endpoint, day and step.
 */
export async function noticeQuotas(
  {
    clock,
    webhooks,
  }: Pick<DispatcherDeps, 'clock'> & { webhooks: Pick<WebhookEvents, 'emitAlone'> },
  { caps, quotas }: UsedQuotas,
): Promise<void> {
  const today = utcDay(clock.now());
  for (const { appId, usedRatio } of caps) {
    const usedPercent = steps.find((step) => usedRatio * 100 >= step);
    if (usedPercent === undefined) continue;
    const quota = 'dailyRecipientCap';
    const data = { quota, usedPercent, day: today, connector: null, profile: null } as const;
    const onceKey = `cap ${today} ${usedPercent}`;
    await webhooks.emitAlone({ appId, type: 'quota.near', data, onceKey });
  }
  const day = chinaDay(clock.now());
  for (const { appId, connector, profile, isUsedUp } of quotas) {
    if (!isUsedUp) continue;
    const data = { quota: 'gateway', usedPercent: 100, day, connector, profile } as const;
    const onceKey = `quota ${connector}/${profile} ${day}`;
    await webhooks.emitAlone({ appId, type: 'quota.near', data, onceKey });
  }
}
