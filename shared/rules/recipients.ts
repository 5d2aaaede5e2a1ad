import { utcDay } from '../clock.ts';
import { claimFailures } from '../db/tables/push-failures.ts';
import { findSentRoutes } from '../db/tables/recalls.ts';
import { chargeDevices, countCappedDevices, readDeviceDay } from '../db/tables/recipients.ts';
import { deviceCapOf } from '../domain/pushes/push-class.ts';
import { reason } from '../domain/reasons.ts';
import { forecast } from '../domain/texts/texts.ts';
import { profileKey } from './admission.ts';
import {
  endUnsent,
  idsOf,
  keepTargets,
  type PageOfBatches,
  type PushRule,
  recipientsOf,
} from './rule.ts';

/**
 * Returns the SQL for the object id of the user that an installation points to. NULL if the
 * installation has no user.
 */
const userOf = (table: string): string => `(${table}.fields -> 'user' ->> 'objectId')`;

/**
 * Sends to one device of each user. If several targets have the same `user`, only the target that
 * was saved last gets the push (protocol/push.md#last-active-device-only). All devices without a
 * user get it.
 */
export const lastActiveDevice: PushRule = {
  of: () => undefined,

  /**
   * In the inner query, columns of `targets` without a table name refer to `later`, which is the
   * innermost table.
   */
  narrow({ lastActiveDeviceOnly }, targets) {
    if (!lastActiveDeviceOnly) return undefined;
    const condition = `NOT EXISTS (
      SELECT FROM installation AS later
       WHERE ${targets()} AND ${userOf('later')} IS NOT NULL
         AND ${userOf('later')} = ${userOf('installation')}
         AND (later.updated_at, later.id) > (installation.updated_at, installation.id))`;
    return { text: 'lastActiveDeviceOnly', condition };
  },
};

/**
 * Claims the recipients of a redrive in the transaction that writes their batches. No other
 * redrive, and no repeat after a crash, can send to them again (protocol/admin-api.md#redrive).
 */
export const redrive: PushRule = {
  of({ push: { pushOrder } }) {
    const { redrive: selection } = pushOrder;
    if (!selection) return undefined;
    return {
      async claim(tx, push, page) {
        if (page.size === 0) return page;
        const claimed = new Set(
          await claimFailures(tx, { ...push, failedId: selection.pushId }, idsOf(page)),
        );
        return claimed.size === page.size ? page : keepTargets(page, (id) => claimed.has(id));
      },

      tally: (_page, size) => [{ metric: 'redrivenRecipients', labels: {}, recipients: size }],
    };
  },
};

/** Reason of recipients that are served by another gateway or profile than the earlier push was. */
const routeChanged = reason('routeChanged');

/**
 * Recalls messages through the gateway and profile that sent them (protocol/admin-api.md#recall).
 * Another gateway does not know the message.
 */
export const recall: PushRule = {
  of({ push: { pushOrder } }) {
    const { recall: earlier } = pushOrder;
    if (!earlier) return undefined;
    return {
      async batches(tx, { appId }, page) {
        const ids = page.batches.flatMap(({ recipients }) => recipients);
        if (ids.length === 0) return page;
        const routes = await findSentRoutes(tx, { appId, id: earlier.pushId }, ids);
        const changed: PageOfBatches = { batches: [], unsent: [...page.unsent] };
        for (const batch of page.batches) {
          const route = profileKey(batch.connector, batch.profile);
          const [same = [], others = []] = [true, false].map((isSame) =>
            batch.recipients.filter((id) => (routes.get(id) === route) === isSame),
          );
          if (same.length > 0) changed.batches.push({ ...batch, recipients: same });
          if (others.length > 0)
            changed.unsent.push(
              endUnsent({ ...batch, recipients: others }, 'dropped', routeChanged),
            );
        }
        return changed;
      },
    };
  },
};

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
        if (pushTime !== null && utcDay(pushTime.getTime()) !== utcDay(nowMs)) return {};
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
