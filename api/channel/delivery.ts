import type { Clock } from '../../shared/clock.ts';
import type { Database } from '../../shared/db/pool.ts';
import { QueryBatcher } from '../../shared/db/query-batcher.ts';
import {
  type DeviceMessage,
  devicesWithMessages,
  findMessages,
  havePendingMessages,
  messagesForNode,
  type NodePage,
  readInbox,
} from '../../shared/db/tables/channel/inbox.ts';
import {
  type Acknowledgement,
  acknowledgeMessages,
  type InboxNotification,
} from '../../shared/db/tables/channel/messages.ts';
import type { DeviceSession } from '../../shared/db/tables/channel/sessions.ts';
import type { Logger } from '../../shared/process/logging.ts';
import { ConcurrencyLimiter } from './concurrency-limiter.ts';
import type { Connection } from './connection.ts';
import type { Authenticated } from './connection-state.ts';
import type { ChannelLimits } from './limits.ts';
import { parseInboxNotification } from './notifications.ts';
import type { Presence } from './presence.ts';
import { WriteBuffer } from './write-buffer.ts';

export interface DeliveryDeps {
  db: Database;
  clock: Clock;
  log: Logger;
  limits: ChannelLimits;
  presence: Presence;
}

/** Inbox rows read at a time for a notification. */
const notificationPage = 1000;
/** Messages cached in memory: a push to a million devices is one message in a thousand notifications. */
const messagesCached = 256;
/** Devices whose inboxes are read at the same time. */
const concurrentPulls = 3;
/** Devices checked by one query after their login; most have an empty inbox. */
const devicesPerCheck = 100;

/** Sends messages from the database to the connections of this process, and stores their acknowledgements. */
export class Delivery {
  readonly #deps: DeliveryDeps;
  readonly #pulls = new ConcurrencyLimiter(concurrentPulls);
  readonly #havePending: QueryBatcher<DeviceSession, boolean>;
  readonly #messages = new Map<string, DeviceMessage>();
  readonly #acknowledgements: WriteBuffer<Acknowledgement>;
  /** Notifications to process, one per app: further ones extend its range. */
  readonly #notifications = new Map<string, InboxNotification>();
  #isProcessing = false;

  constructor(deps: DeliveryDeps) {
    this.#deps = deps;
    this.#havePending = new QueryBatcher({
      concurrency: 1,
      size: devicesPerCheck,
      keyOf: ({ sessionId }) => String(sessionId),
      run: (sessions) => havePendingMessages(deps.db, sessions),
    });
    this.#acknowledgements = new WriteBuffer({
      name: 'acknowledgements',
      delayMs: deps.limits.writeDelayMs,
      write: (acknowledgements) => this.#storeAcknowledgements(acknowledgements),
      log: deps.log,
    });
  }

  /** Sends new messages to the devices of this node. */
  onNotification(payload: string): void {
    const notification = parseInboxNotification(payload);
    if (!notification) return;
    const waiting = this.#notifications.get(notification.appId);
    this.#notifications.set(notification.appId, waiting ? merge(waiting, notification) : notification);
    if (!this.#isProcessing) void this.#processNotifications();
  }

  ack({ appId, installation }: DeviceSession, pushIds: number[]): void {
    for (const pushId of pushIds) this.#acknowledgements.add({ appId, installation, pushId });
  }

  /** Sends the pending messages of a device that logged in. Never throws. */
  onLogin(connection: Connection): Promise<void> {
    return this.#whilePulling(connection, async (state) => {
      const hasPending = await this.#havePending.load(state.session);
      if (hasPending || state.hasBacklog) await this.#pulls.run(() => this.#pullPages(connection));
    });
  }

  /** Sends pending messages until none is left or the device cannot take more. Never throws. */
  pull(connection: Connection): Promise<void> {
    return this.#whilePulling(connection, () => this.#pulls.run(() => this.#pullPages(connection)));
  }

  /** Pulls for every device of this node that has messages it was not sent: covers missed notifications. */
  async pullAll(): Promise<void> {
    const { db, presence } = this.#deps;
    const devices = await devicesWithMessages(db, presence.nodeId);
    await Promise.all(
      devices.map(async ({ appId, installation, messages }) => {
        const connection = presence.find(appId, installation);
        const state = connection?.authenticated;
        if (connection && state && state.unacknowledgedCount < messages) await this.pull(connection);
      }),
    );
  }

  /** Stores the buffered acknowledgements. */
  close(): Promise<void> {
    return this.#acknowledgements.drain();
  }

  async #whilePulling(connection: Connection, read: (state: Authenticated) => Promise<void>): Promise<void> {
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

  async #processNotifications(): Promise<void> {
    this.#isProcessing = true;
    for (let next = this.#nextNotification(); next; next = this.#nextNotification()) {
      try {
        await this.#deliver(next);
      } catch (error) {
        // The periodic sweep finds these messages.
        this.#deps.log.warn({ err: error }, 'could not read new messages');
      }
    }
    this.#isProcessing = false;
  }

  #nextNotification(): InboxNotification | undefined {
    const [notification] = this.#notifications.values();
    if (notification) this.#notifications.delete(notification.appId);
    return notification;
  }

  async #deliver({ appId, fromId, toId }: InboxNotification): Promise<void> {
    const { db, presence, clock } = this.#deps;
    for (let nextId: number | undefined = fromId; nextId !== undefined; ) {
      const page: NodePage = await messagesForNode(
        db,
        presence.nodeId,
        { appId, fromId: nextId, toId },
        notificationPage,
      );
      const messages = await this.#messagesById(appId, page.messageIds);
      const nowMs = clock.now();
      page.installations.forEach((installation, i) => {
        const message = messages.get(page.messageIds[i] ?? 0);
        if (message && message.expiresAtMs > nowMs) presence.find(appId, installation)?.offer(message);
      });
      nextId = page.nextId;
    }
  }

  async #messagesById(appId: string, ids: number[]): Promise<Map<number, DeviceMessage>> {
    const found = new Map<number, DeviceMessage>();
    const missing = new Set<number>();
    for (const id of ids) {
      const cached = this.#messages.get(`${appId}/${id}`);
      if (cached) found.set(id, cached);
      else missing.add(id);
    }
    if (missing.size === 0) return found;
    for (const [id, message] of await findMessages(this.#deps.db, appId, [...missing])) {
      found.set(id, message);
      this.#cache(`${appId}/${id}`, message);
    }
    return found;
  }

  #cache(key: string, message: DeviceMessage): void {
    this.#messages.set(key, message);
    const [oldest] = this.#messages.keys();
    if (this.#messages.size > messagesCached && oldest !== undefined) this.#messages.delete(oldest);
  }

  async #storeAcknowledgements(acknowledgements: Acknowledgement[]): Promise<void> {
    const { db, presence } = this.#deps;
    await acknowledgeMessages(db, acknowledgements);
    for (const { appId, installation, pushId } of acknowledgements)
      presence.find(appId, installation)?.onAcknowledged(pushId);
  }
}

function merge(a: InboxNotification, b: InboxNotification): InboxNotification {
  return { appId: a.appId, fromId: Math.min(a.fromId, b.fromId), toId: Math.max(a.toId, b.toId) };
}
