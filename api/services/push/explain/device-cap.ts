import type { Handle } from '../../../../shared/db/pool.ts';
import { countCappedDevices } from '../../../../shared/db/tables/installations/device-days.ts';
import { type ForecastText, textOf } from '../../../../shared/domain/admin/forecast-texts.ts';
import type { App } from '../../../../shared/domain/apps/app.ts';
import type { PushOrder } from '../../../../shared/domain/pushes/push.ts';
import { deviceCapOf } from '../../../../shared/domain/pushes/push-class.ts';
import { Params, targetCondition } from '../../../../shared/query/targets/targets.ts';

/** Returns a limit for devices that had their pushes of today; none for a push that is sent later than today (UTC). */
export async function deviceCapTexts(
  tx: Handle,
  app: App,
  push: { pushOrder: PushOrder; pushTime: Date | null; nowMs: number },
): Promise<ForecastText[]> {
  const { pushOrder, pushTime, nowMs } = push;
  const cap = deviceCapOf(pushOrder, app.options);
  if (cap === null || (pushTime !== null && dayOf(pushTime) !== dayOf(new Date(nowMs)))) return [];
  const params = new Params();
  const text = targetCondition(app, pushOrder, { params, nowMs });
  const over = await countCappedDevices(tx, { text, values: params.values }, { appId: app.appId, cap });
  return over === 0 ? [] : [textOf('deviceCap', { over, cap })];
}

const dayOf = (time: Date): string => time.toISOString().slice(0, 10);
