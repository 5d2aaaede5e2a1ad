import type { Clock } from '../../shared/clock.ts';
import type { Database } from '../../shared/db/pool.ts';
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
import { QueryBatcher } from './query-batcher.ts';
import { WriteBuffer } from './write-buffer.ts';

export interface DeliveryDeps {
  db: Database;
  clock: Clock;
  log: Logger;
  limits: ChannelLimits;
  presence: Presence;
}

/** Letters of a notice that are read at a time. */
const noticePage = 1000;
/** Messages kept in memory: a push to a million is a thousand notices of one message. */
const messagesKept = 256;
/** Devices that are read for at the same time. */
const pullLanes = 3;
/** Devices that logged in are asked for together whether they have letters: most have none. */
const askedTogether = 100;

/** Brings letters from the database to the connections of this process, and acknowledgements back. */
export class Delivery {
  readonly #deps: DeliveryDeps;
  readonly #lanes = new ConcurrencyLimiter(pullLanes);
  readonly #haveLetters: QueryBatcher<DeviceSession, boolean>;
  readonly #messages = new Map<string, DeviceMessage>();
  readonly #receipts: WriteBuffer<Acknowledgement>;
  /** Notices not looked at yet, one per app: further ones widen it. */
  readonly #notices = new Map<string, InboxNotification>();
  #isReading = false;

  constructor(deps: DeliveryDeps) {
    this.#deps = deps;
    this.#haveLetters = new QueryBatcher({
      concurrency: 1,
      size: askedTogether,
      keyOf: ({ sessionId }) => String(sessionId),
      run: (seats) => havePendingMessages(deps.db, seats),
    });
    this.#receipts = new WriteBuffer({
      name: 'acknowledgements',
      delayMs: deps.limits.writeDelayMs,
      write: (receipts) => this.#settle(receipts),
      log: deps.log,
    });
  }

  /** Letters were deposited: those for devices of this node are sent. */
  onNotice(payload: string): void {
    const told = parseInboxNotification(payload);
    if (!told) return;
    const known = this.#notices.get(told.appId);
    this.#notices.set(told.appId, known ? widen(known, told) : told);
    if (!this.#isReading) void this.#readNotices();
  }

  ack({ appId, installation }: DeviceSession, pushIds: number[]): void {
    for (const pushId of pushIds) this.#receipts.add({ appId, installation, pushId });
  }

  /** Sends what waits for a device that logged in. Never throws. */
  welcome(connection: Connection): Promise<void> {
    return this.#whilePulling(connection, async (member) => {
      const hasLetters = await this.#haveLetters.load(member.session);
      if (hasLetters || member.hasBacklog) await this.#lanes.run(() => this.#pullPages(connection));
    });
  }

  /** Reads what waits for a device until it has all, is clogged, or owes acknowledgements. Never throws. */
  pull(connection: Connection): Promise<void> {
    return this.#whilePulling(connection, () => this.#lanes.run(() => this.#pullPages(connection)));
  }

  /** Looks after every device of this node that has letters it was not given: for missed notices. */
  async pullAll(): Promise<void> {
    const { db, presence } = this.#deps;
    const devices = await devicesWithMessages(db, presence.nodeId);
    await Promise.all(
      devices.map(async ({ appId, installation, letters }) => {
        const connection = presence.find(appId, installation);
        if (connection?.authenticated && connection.authenticated.unacknowledgedCount < letters)
          await this.pull(connection);
      }),
    );
  }

  /** Stores the acknowledgements that wait. */
  close(): Promise<void> {
    return this.#receipts.drain();
  }

  async #whilePulling(connection: Connection, read: (member: Authenticated) => Promise<void>): Promise<void> {
    const member = connection.authenticated;
    if (!member) return;
    if (connection.isPulling) {
      member.hasBacklog = true;
      return;
    }
    connection.isPulling = true;
    try {
      await read(member);
    } catch (error) {
      member.hasBacklog = true;
      this.#deps.log.warn({ err: error }, 'letters could not be read');
    } finally {
      connection.isPulling = false;
    }
  }

  async #pullPages(connection: Connection): Promise<void> {
    const { db, clock, limits } = this.#deps;
    for (let member = connection.authenticated; member; member = connection.authenticated) {
      member.hasBacklog = connection.isBackpressured || !member.canTakeMessages;
      if (member.hasBacklog) return;
      const { appId, installation } = member.session;
      const page = await readInbox(db, appId, installation, {
        except: member.unacknowledged,
        now: new Date(clock.now()),
        limit: limits.pageMessages,
      });
      connection.deliverWaiting(page);
      if (page.length < limits.pageMessages && !member.hasBacklog) return;
    }
  }

  async #readNotices(): Promise<void> {
    this.#isReading = true;
    for (let notice = this.#nextNotice(); notice; notice = this.#nextNotice()) {
      try {
        await this.#deliver(notice);
      } catch (error) {
        // The look after all devices, every few seconds, finds these letters.
        this.#deps.log.warn({ err: error }, 'new letters could not be read');
      }
    }
    this.#isReading = false;
  }

  #nextNotice(): InboxNotification | undefined {
    const [notice] = this.#notices.values();
    if (notice) this.#notices.delete(notice.appId);
    return notice;
  }

  async #deliver({ appId, fromId, toId }: InboxNotification): Promise<void> {
    const { db, presence, clock } = this.#deps;
    for (let nextId: number | undefined = fromId; nextId !== undefined; ) {
      const page: NodePage = await messagesForNode(
        db,
        presence.nodeId,
        { appId, fromId: nextId, toId },
        noticePage,
      );
      const messages = await this.#messagesOf(appId, page.messageIds);
      const nowMs = clock.now();
      page.installations.forEach((installation, i) => {
        const letter = messages.get(page.messageIds[i] ?? 0);
        if (letter && letter.expiresAtMs > nowMs) presence.find(appId, installation)?.offer(letter);
      });
      nextId = page.nextId;
    }
  }

  async #messagesOf(appId: string, ids: number[]): Promise<Map<number, DeviceMessage>> {
    const found = new Map<number, DeviceMessage>();
    const missing = new Set<number>();
    for (const id of ids) {
      const known = this.#messages.get(`${appId}/${id}`);
      if (known) found.set(id, known);
      else missing.add(id);
    }
    if (missing.size === 0) return found;
    for (const [id, letter] of await findMessages(this.#deps.db, appId, [...missing])) {
      found.set(id, letter);
      this.#keep(`${appId}/${id}`, letter);
    }
    return found;
  }

  #keep(key: string, letter: DeviceMessage): void {
    this.#messages.set(key, letter);
    const [oldest] = this.#messages.keys();
    if (this.#messages.size > messagesKept && oldest !== undefined) this.#messages.delete(oldest);
  }

  async #settle(receipts: Acknowledgement[]): Promise<void> {
    const { db, presence } = this.#deps;
    await acknowledgeMessages(db, receipts);
    for (const { appId, installation, pushId } of receipts)
      presence.find(appId, installation)?.onAcknowledged(pushId);
  }
}

function widen(a: InboxNotification, b: InboxNotification): InboxNotification {
  return { appId: a.appId, fromId: Math.min(a.fromId, b.fromId), toId: Math.max(a.toId, b.toId) };
}
