import { Batcher } from '../../shared/batcher.ts';
import type { Clock } from '../../shared/clock.ts';
import type { Database } from '../../shared/db/pool.ts';
import { type Acknowledgement, moveToInboxes } from '../../shared/db/tables/channel-groups.ts';
import {
  acknowledgeMessages,
  devicesWithMessages,
  evictOldest,
  findPendingStates,
  type PendingState,
  readInbox,
} from '../../shared/db/tables/channel-messages.ts';
import type { DeviceSession } from '../../shared/db/tables/channel-sessions.ts';
import type { Metrics } from '../../shared/metrics.ts';
import type { Logger } from '../../shared/process/logging.ts';
import { Semaphore } from '../../shared/semaphore.ts';
import type { Connection } from './connection.ts';
import type { Authenticated } from './connection-state.ts';
import { type ChannelLimits, writeBatches } from './limits.ts';
import type { Presence } from './presence.ts';

export interface DeliveryDeps {
  db: Database;
  clock: Clock;
  log: Logger;
  limits: ChannelLimits;
  presence: Presence;
  metrics: Metrics;
}

/**
 * Limits of inboxes that are read concurrently. The number of waiting reads is at most the number
 * of connected devices.
 */
const pullLimits = { concurrency: 3, maxWaiting: Number.POSITIVE_INFINITY };
/**
 * Maximum number of devices checked by one query after their login. Most of them have an empty
 * inbox.
 */
const devicesPerCheck = 100;

/** Sends pending messages to the connections of this process and stores their acknowledgements. */
export class Delivery {
  readonly #deps: DeliveryDeps;
  readonly #pulls = new Semaphore(pullLimits);
  readonly #pendingStates: Batcher<DeviceSession, PendingState>;
  readonly #acknowledgements: Batcher<Acknowledgement>;

  constructor(deps: DeliveryDeps) {
    this.#deps = deps;
    this.#pendingStates = new Batcher({
      concurrency: 1,
      size: devicesPerCheck,
      uniqueBy: ({ sessionId }) => String(sessionId),
      run: (sessions) => findPendingStates(deps.db, sessions),
    });
    this.#acknowledgements = new Batcher<Acknowledgement>({
      ...writeBatches('acknowledgements', deps.log),
      delayMs: deps.limits.acknowledgeDelayMs,
      run: (acknowledgements) => this.#storeAcknowledgements(acknowledgements),
    });
  }

  ack({ session, authenticated }: Connection, pushIds: number[]): void {
    if (!session) return;
    const { appId, installation } = session;
    for (const pushId of pushIds)
      this.#acknowledgements.add({
        appId,
        installation,
        pushId,
        groupId: authenticated?.groupOf(pushId),
      });
  }

  /** Sends the pending messages of a device that logged in. Never throws. */
  onLogin(connection: Connection): Promise<void> {
    return this.#whilePulling(connection, async (state) => {
      const pending = await this.#pendingStates.run(state.session);
      if (pending === 'too many') await this.#limitInbox(state.session);
      if (pending !== 'none' || state.hasBacklog)
        await this.#pulls.run(state.session.appId, () => this.#pullPages(connection));
    });
  }

  /** Sends pending messages until none is left or the device cannot take more. Never throws. */
  pull(connection: Connection): Promise<void> {
    return this.#whilePulling(connection, ({ session }) =>
      this.#pulls.run(session.appId, () => this.#pullPages(connection)),
    );
  }

  /**
   * Moves messages that are at least `ageMs` old from groups to inboxes. Then pulls for every
   * device of this node that has unsent messages. This covers missed notifications.
   */
  async pullAll(ageMs: number): Promise<void> {
    const { db, presence, metrics } = this.#deps;
    metrics.channelMessages.inc({ event: 'expired' }, await moveToInboxes(db, ageMs));
    const devices = await devicesWithMessages(db, presence.nodeId);
    await Promise.all(
      devices.map(async ({ appId, installation, pushIds }) => {
        const connection = presence.find(appId, installation);
        const state = connection?.authenticated;
        if (connection && state && !pushIds.every((pushId) => state.isUnacknowledged(pushId)))
          await this.pull(connection);
      }),
    );
  }

  /** Stores the buffered acknowledgements. */
  close(): Promise<void> {
    return this.#acknowledgements.drain();
  }

  /**
   * Evicts the oldest messages of a full inbox. Needed if the background job of the dispatchers has
   * not done so yet.
   */
  async #limitInbox({ appId, installation }: DeviceSession): Promise<void> {
    const { db, metrics } = this.#deps;
    const evicted = await evictOldest(db, appId, [installation]);
    metrics.channelMessages.inc({ event: 'displaced' }, evicted);
  }

  async #whilePulling(
    connection: Connection,
    read: (state: Authenticated) => Promise<void>,
  ): Promise<void> {
    const state = connection.authenticated;
    if (!state) return;
    if (connection.isPulling) {
      state.hasBacklog = true;
      return;
    }
    connection.isPulling = true;
    try {
      await read(state);
    } catch (error) {
      state.hasBacklog = true;
      this.#deps.log.warn({ err: error }, 'could not read the messages of a device');
    } finally {
      connection.isPulling = false;
    }
  }

  async #pullPages(connection: Connection): Promise<void> {
    const { db, clock, limits } = this.#deps;
    for (let state = connection.authenticated; state; state = connection.authenticated) {
      state.hasBacklog = connection.isBackpressured || !state.canTakeMessages;
      if (state.hasBacklog) return;
      const { appId, installation } = state.session;
      const page = await readInbox(db, appId, installation, {
        except: state.unacknowledged,
        now: new Date(clock.now()),
        limit: limits.pageMessages,
      });
      connection.deliverFromInbox(page);
      if (page.length < limits.pageMessages && !state.hasBacklog) return;
    }
  }

  async #storeAcknowledgements(acknowledgements: Acknowledgement[]): Promise<undefined[]> {
    const { db, presence, metrics } = this.#deps;
    const acknowledged = await acknowledgeMessages(db, acknowledgements);
    metrics.channelMessages.inc({ event: 'acknowledged' }, acknowledged);
    for (const { appId, installation, pushId } of acknowledgements)
      presence.find(appId, installation)?.onAcknowledged(pushId);
    return [];
  }
}
