import { chargeDevices, countCappedDevices, readDeviceDay } from '../db/tables/recipients.ts';
import { deviceCapOf } from '../domain/pushes/push-class.ts';
import { reason } from '../domain/reasons.ts';
import { forecast } from '../domain/texts/texts.ts';
import { endUnsent, type PageOfBatches, type PushRule, recipientsOf } from './rule.ts';

/**
 * Limits the pushes per device and day (protocol/push.md#pushes-per-device-and-day). A page is
 * counted in the transaction that writes it, so a repeat after a crash counts no page twice.
 * Recipients over the limit end as `capped`.
 */
export const deviceCap: PushRule = {
  of({ app: { appId, options }, push: { pushOrder }, nowMs }) {
    const cap = deviceCapOf(pushOrder, options);
    if (cap === null) return undefined;
    const capped = reason('deviceCap', { cap });
    return {
      async batches(tx, push, page) {
        if (page.batches.length === 0) return page;
        const ids = page.batches.flatMap(({ recipients }) => recipients);
        const granted = new Set(await chargeDevices(tx, push.appId, { ids, cap }));
        return granted.size === ids.length ? page : withoutCapped(page, granted, capped);
      },

      tally({ unsent }) {
        const batches = unsent
          .filter(({ outcome }) => outcome === 'capped')
          .map(({ batch }) => batch);
        return [{ metric: 'deviceCapped', labels: {}, recipients: recipientsOf(batches) }];
      },

      /**
       * Counts the devices that have reached their limit today. Counts none if the push is on a
       * later day (UTC).
       */
      async forecast({ tx, targets, pushTime }) {
        if (pushTime !== null && dayOf(pushTime) !== dayOf(new Date(nowMs))) return {};
        const over = await countCappedDevices(tx, targets, { appId, cap });
        return { limits: over === 0 ? [] : [forecast('deviceCap', { over, cap })] };
      },

      async explain({ db, device, isAhead }) {
        const isReached = device && isAhead && (await readDeviceDay(db, appId, device.id)) >= cap;
        return { texts: isReached ? [{ code: 'deviceCapReached', params: { cap } }] : [] };
      },
    };
  },
};

const dayOf = (time: Date): string => time.toISOString().slice(0, 10);

function withoutCapped(
  { batches, unsent }: PageOfBatches,
  granted: ReadonlySet<number>,
  why: string,
): PageOfBatches {
  const page: PageOfBatches = { batches: [], unsent: [...unsent] };
  for (const batch of batches) {
    const [kept, beyond] = [true, false].map((isGranted) =>
      batch.recipients.filter((id) => granted.has(id) === isGranted),
    );
    if (kept?.length) page.batches.push({ ...batch, recipients: kept });
    if (beyond?.length)
      page.unsent.push(endUnsent({ ...batch, recipients: beyond }, 'capped', why));
  }
  return page;
}
