import { failPush } from '../db/tables/push-progress.ts';
import { parseRoutingKey } from '../db/tables/routing-keys.ts';
import { askForApproval, findApproval } from '../db/tables/scheduled-pushes.ts';
import type { ConnectorId } from '../domain/labels.ts';
import type { ConnectorTotals, OpenPush } from '../domain/pushes/record.ts';
import { reasonText } from '../domain/reasons.ts';
import { forecast } from '../domain/texts/texts.ts';
import type { PushRule, Routing, Stop, TargetPage } from './rule.ts';

/**
 * Pauses a push to more devices than `approvalAboveDevices` of its app, before its first message is
 * sent. A second person must approve it (protocol/admin-api.md#approvals).
 */
export const approval: PushRule = {
  of({ app, push: { expiresAt, pushOrder }, nowMs }) {
    const { approvalAboveDevices: above } = app.options;
    // A recall without a replacement shows no new text to anybody.
    const needsNone = pushOrder.recall && !pushOrder.recall.hasReplacement;
    if (above === null || needsNone) return undefined;
    return {
      aboveDevices: above,

      async admit({ db, push, pages }) {
        // An expired push needs no approval, because it is not sent. Planning only counts its
        // devices.
        if (expiresAt.getTime() <= nowMs) return undefined;
        if ((await findApproval(db, push))?.givenAt || !(await isAbove(above, pages())))
          return undefined;
        const event = {
          type: 'push.waiting_approval',
          data: { push: push.objectId, above },
        } as const;
        return { write: (tx) => askForApproval(tx, push, above), event };
      },

      forecast: ({ devices }) => ({
        limits: devices > above ? [forecast('needsApproval', { above })] : [],
      }),
    };
  },
};

/** Returns whether the audience is larger than `limit`. Stops counting at the limit. */
async function isAbove(limit: number, pages: AsyncIterable<TargetPage>): Promise<boolean> {
  let devices = 0;
  for await (const { size } of pages) {
    devices += size;
    if (devices > limit) return true;
  }
  return false;
}

/** Devices of a push, counted before it is sent. */
interface Audience {
  byConnector: Map<ConnectorId, number>;
  byProfile: Map<string, number>;
}

/** Returns the key of a profile in counts. */
export const profileKey = (connector: string, profile: string): string => `${connector}/${profile}`;

/** Returns the stop of a push that cannot be sent at all. `message` is a stored reason. */
export const failedPush = (push: OpenPush, end: Parameters<typeof failPush>[2]): Stop => ({
  write: (tx) => failPush(tx, push, end),
  event: {
    type: 'push.failed',
    data: {
      push: push.objectId,
      reason: reasonText(end.message),
      connector: null,
      profile: null,
      connectors: end.totals,
    },
  },
});

/**
 * Ends a push to more devices than one of its profiles serves. The error of the profile becomes the
 * status of the push, and every device counts as `failed` (protocol/push.md#errors-of-a-push,
 * protocol/delivery.md#promise-2).
 */
export const massLimit: PushRule = {
  of({ router }) {
    const limits = router.massLimits();
    if (limits.length === 0) return undefined;
    const beyond = (byProfile: ReadonlyMap<string, number>) =>
      limits.filter(
        ({ connector, profile, devices }) =>
          (byProfile.get(profileKey(connector, profile)) ?? 0) > devices,
      );
    return {
      aboveDevices: Math.min(...limits.map(({ devices }) => devices)),

      async admit({ push, isFirstStart, pages }) {
        if (!isFirstStart) return undefined;
        const audience = await count(router, pages());
        const [over] = beyond(audience.byProfile);
        if (!over) return undefined;
        const totals: ConnectorTotals = {};
        for (const [connector, failed] of audience.byConnector) totals[connector] = { failed };
        const devices = [...audience.byConnector.values()].reduce((sum, n) => sum + n, 0);
        const stop = failedPush(push, { message: over.error, totals, devices });
        return { ...stop, failed: audience.byConnector };
      },

      forecast: ({ byProfile }) => ({
        limits: beyond(byProfile).map(({ connector, profile, devices, error }) =>
          forecast('profileLimit', { profile, id: connector, devices, why: error }),
        ),
      }),
    };
  },
};

async function count(router: Routing, pages: AsyncIterable<TargetPage>): Promise<Audience> {
  const audience: Audience = { byConnector: new Map(), byProfile: new Map() };
  for await (const page of pages)
    for (const [routingKey, { length }] of page.idsByRoutingKey) {
      const { connector, profile } = router.routeOf(routingKey, parseRoutingKey);
      raise(audience.byConnector, connector, length);
      raise(audience.byProfile, profileKey(connector, profile), length);
    }
  return audience;
}

function raise<K>(counts: Map<K, number>, key: K, by: number): void {
  counts.set(key, (counts.get(key) ?? 0) + by);
}
