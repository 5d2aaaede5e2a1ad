import { Batcher } from '../../../shared/batcher.ts';
import { againAfterDeadlock } from '../../../shared/db/limits/database-errors.ts';
import { findInstallationsOfDevice } from '../../../shared/db/tables/installations.ts';
import {
  countReceipts,
  type DeviceReceipt,
  findSentPairs,
  lockPushes,
  type NewReceipt,
  type PushDevice,
} from '../../../shared/db/tables/receipts.ts';
import { inParts } from '../../../shared/db/webhook-events.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { Refusal, refuse } from '../../../shared/domain/errors/errors.ts';
import {
  type PushEventsBody,
  type PushEventType,
  pushEventTypes,
} from '../../../shared/domain/pushes/push-events.ts';
import { detail } from '../../../shared/domain/texts/texts.ts';
import type { EventData } from '../../../shared/domain/webhooks/event-types.ts';
import { QueueFull } from '../../../shared/semaphore.ts';
import type { ApiDeps } from '../deps.ts';

/**
 * Limits of batches. `size` is the number of events that share a transaction. Events of an app wait
 * `delayMs` for others, because each transaction reads the recipients of the pushes again.
 * `maxWaiting` is the number of events of one app that may wait.
 */
const batchLimits = { size: 2000, concurrency: 2, maxWaiting: 50_000, delayMs: 50 };

/** Event that a device reported. */
interface ReportedEvent {
  appId: string;
  installation: number;
  /** Public id of the push. */
  push: string;
  type: PushEventType;
  /** Time of the event: ISO 8601 in UTC. */
  at: string;
}

/** Counts the events that apps report about their messages (protocol/push-records.md#events). */
export class PushEventService {
  readonly #deps: ApiDeps;
  readonly #batcher: Batcher<ReportedEvent>;

  constructor(deps: ApiDeps) {
    this.#deps = deps;
    this.#batcher = new Batcher({
      ...batchLimits,
      fairBy: ({ appId }) => appId,
      isApart: () => true,
      run: async (events) => {
        await againAfterDeadlock(() => this.#count(events));
        return [];
      },
    });
  }

  /**
   * Counts events of a device. Each type counts once for each device and push. Events of pushes
   * that are unknown, have expired, or were not sent to the device do not count. Throws error 119
   * if the app has no `reportOpens`, error 101 (status 404) if the installation does not exist, 429
   * if too many events of the app wait.
   */
  async report(app: App, { installationId, objectId, events }: PushEventsBody): Promise<void> {
    if (!app.options.reportOpens) throw refuse('notForClients', detail('reportOpensOff'));
    const [found] = await findInstallationsOfDevice(this.#deps.db, app.appId, {
      objectId: objectId ?? undefined,
      installationId: installationId ?? undefined,
      deviceToken: undefined,
      registrationId: undefined,
    });
    const [device] = found ?? [];
    if (!device) throw refuse('objectNotFound');
    const { appId } = app;
    for (const { type } of events) this.#deps.metrics.pushEvents.inc({ type });
    const now = new Date(this.#deps.clock.now()).toISOString();
    const reported = events.map(({ push, type, at }) => ({
      appId,
      installation: device.id,
      push,
      type,
      at: at?.toISOString() ?? now,
    }));
    try {
      await Promise.all(reported.map((event) => this.#batcher.run(event)));
    } catch (error) {
      if (!(error instanceof QueueFull)) throw error;
      throw new Refusal('tooManyRequests', { retryAfterSeconds: 1 });
    }
  }

  /** Counts events of one app. */
  async #count(events: readonly ReportedEvent[]): Promise<void> {
    const appId = events[0]?.appId ?? '';
    await this.#deps.db.transaction(async (tx) => {
      const pushes = await lockPushes(tx, appId, [...new Set(events.map(({ push }) => push))]);
      const ids = new Map(pushes.map(({ objectId, id }) => [objectId, id]));
      const reported = receiptsOf(events, ids);
      const sent = new Set((await findSentPairs(tx, appId, reported)).map(keyOf));
      const receipts = reported.filter((one) => sent.has(keyOf(one)));
      if (receipts.length === 0) return;
      const source = { appId, connector: 'app' as const };
      const isListed = await this.#deps.webhooks.isWanted(tx, appId, 'recipients.opened');
      const { fresh } = await countReceipts(tx, source, receipts, { isListed });
      const times = timesOf(events);
      const opened = pushes.flatMap(({ id, objectId: push }) =>
        inParts(
          fresh
            .filter(({ pushId }) => pushId === id)
            .flatMap((receipt) => openedOf(receipt, push, times)),
        ).map((recipients) => ({
          appId,
          type: 'recipients.opened' as const,
          data: { push, recipients },
        })),
      );
      await this.#deps.webhooks.emit(tx, ...opened);
    });
  }
}

const keyOf = ({ pushId, installation }: PushDevice): string => `${pushId} ${installation}`;

/** Returns one receipt for each push and device, with all events of the pair. */
function receiptsOf(
  events: readonly ReportedEvent[],
  ids: ReadonlyMap<string, number>,
): DeviceReceipt[] {
  const receipts = new Map<string, DeviceReceipt>();
  for (const { installation, push, type } of events) {
    const pushId = ids.get(push);
    if (pushId === undefined) continue;
    const key = keyOf({ pushId, installation });
    const receipt = receipts.get(key) ?? {
      pushId,
      installation,
      isDelivered: false,
      isClicked: false,
      isDismissed: false,
    };
    receipt[flags[type]] = true;
    receipts.set(key, receipt);
  }
  return [...receipts.values()];
}

const timeKeyOf = ({
  push,
  installation,
  type,
}: Pick<ReportedEvent, 'push' | 'installation' | 'type'>): string =>
  `${push} ${installation} ${type}`;

/** Returns the times of events. The first report of an event counts. */
const timesOf = (events: readonly ReportedEvent[]): ReadonlyMap<string, string> =>
  new Map(events.toReversed().map((event) => [timeKeyOf(event), event.at]));

/** Returns the newly counted events of a device in the form of webhooks. */
const openedOf = (
  { objectId, installation, ...marks }: NewReceipt,
  push: string,
  times: ReadonlyMap<string, string>,
): EventData<'recipients.opened'>['recipients'] =>
  pushEventTypes.flatMap((type) => {
    const at = times.get(timeKeyOf({ push, installation, type }));
    return marks[flags[type]] && at !== undefined ? [{ installation: objectId, type, at }] : [];
  });

const flags = { received: 'isDelivered', opened: 'isClicked', dismissed: 'isDismissed' } as const;
