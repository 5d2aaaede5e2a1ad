import { setImmediate } from 'node:timers/promises';
import { z } from 'zod';
import type { Clock } from '../../shared/clock.ts';
import { parseNotification } from '../../shared/db/listener.ts';
import type { Database } from '../../shared/db/pool.ts';
import type {
  GroupNotification,
  InboxNotification,
} from '../../shared/db/tables/channel-enqueue.ts';
import { type MessageGroup, readGroups } from '../../shared/db/tables/channel-groups.ts';
import {
  type DeviceMessage,
  findMessages,
  messagesForNode,
} from '../../shared/db/tables/channel-messages.ts';
import type { Logger } from '../../shared/process/logging.ts';
import { TtlCache } from '../../shared/ttl-cache.ts';
import type { Connection } from './connection.ts';
import type { Offer } from './connection-state.ts';
import type { ChannelLimits } from './limits.ts';
import type { Presence } from './presence.ts';

const inboxNotification: z.ZodType<InboxNotification | GroupNotification> = z.union([
  z.object({ appId: z.string(), groupId: z.number() }),
  z.object({ appId: z.string(), fromId: z.number(), toId: z.number() }),
]);

export interface NewMessagesDeps {
  db: Database;
  clock: Clock;
  log: Logger;
  limits: ChannelLimits;
  presence: Presence;
  /** Called if notifications were dropped. */
  onMissed(): void;
}

/** Maximum number of inbox rows that one read returns. */
const rowsPerRead = 1000;
/**
 * Maximum number of groups that one read returns. A device gets the messages of all these groups in
 * one frame.
 */
const groupsPerRead = 16;
/**
 * Maximum number of messages in the cache. A push to a million devices is one message in a thousand
 * notifications.
 */
const messagesCached = 256;

/** Reads the messages of notifications and offers them to the devices of this process. */
export class NewMessages {
  readonly #deps: NewMessagesDeps;
  readonly #messages = new TtlCache<string, DeviceMessage>({ maxEntries: messagesCached });
  /** Ranges of inbox rows to read, by app. A further notification extends the range. */
  readonly #ranges = new Map<string, InboxNotification>();
  /** Groups to read, by app, oldest first. */
  readonly #groups = new Map<string, number[]>();
  #groupsWaiting = 0;
  #isProcessing = false;

  constructor(deps: NewMessagesDeps) {
    this.#deps = deps;
  }

  onNotification(payload: string): void {
    const notification = parseNotification(inboxNotification, payload);
    if (!notification) return;
    if ('groupId' in notification) this.#addGroup(notification.appId, notification.groupId);
    else this.#addRange(notification);
    if (!this.#isProcessing) void this.#process();
  }

  #addRange(range: InboxNotification): void {
    const waiting = this.#ranges.get(range.appId);
    this.#ranges.set(range.appId, waiting ? merge(waiting, range) : range);
  }

  #addGroup(appId: string, groupId: number): void {
    if (this.#groupsWaiting >= this.#deps.limits.groupsWaiting) {
      this.#deps.onMissed();
      return;
    }
    const waiting = this.#groups.get(appId);
    if (waiting) waiting.push(groupId);
    else this.#groups.set(appId, [groupId]);
    this.#groupsWaiting += 1;
  }

  async #process(): Promise<void> {
    this.#isProcessing = true;
    for (let read = this.#next(); read; read = this.#next()) {
      try {
        await read();
      } catch (error) {
        // The periodic sweep finds these messages.
        this.#deps.log.warn({ err: error }, 'could not read new messages');
      }
    }
    this.#isProcessing = false;
  }

  /** Returns the next read. Apps alternate, so that no app delays the others. */
  #next(): (() => Promise<void>) | undefined {
    const [range] = this.#ranges.values();
    if (range) {
      this.#ranges.delete(range.appId);
      return () => this.#readRange(range);
    }
    const [entry] = this.#groups;
    if (!entry) return undefined;
    const [appId, waiting] = entry;
    // A frame contains at most one inbox page of messages. This limits the memory that a slow
    // device uses.
    const ids = waiting.splice(0, Math.min(groupsPerRead, this.#deps.limits.pageMessages));
    this.#groupsWaiting -= ids.length;
    this.#groups.delete(appId);
    if (waiting.length > 0) this.#groups.set(appId, waiting);
    return () => this.#readGroups(appId, ids);
  }

  async #readGroups(appId: string, ids: number[]): Promise<void> {
    const { db, presence, clock } = this.#deps;
    const groups = await readGroups(db, appId, ids);
    const messages = await this.#messagesById(
      appId,
      groups.map(({ messageId }) => messageId),
    );
    const nowMs = clock.now();
    const offers = new Offers(presence.devicesOf(appId));
    for (const group of groups) {
      const message = messages.get(group.messageId);
      if (message && message.expiresAtMs > nowMs) offers.add(group, message);
    }
    await offers.send();
  }

  async #readRange({ appId, fromId, toId }: InboxNotification): Promise<void> {
    const { db, presence, clock } = this.#deps;
    for (let nextId: number | undefined = fromId; nextId !== undefined; ) {
      const page = await messagesForNode(
        db,
        presence.nodeId,
        { appId, fromId: nextId, toId },
        rowsPerRead,
      );
      const messages = await this.#messagesById(appId, page.messageIds);
      const nowMs = clock.now();
      const offers = new Map<number, Offer>();
      for (const [id, message] of messages)
        if (message.expiresAtMs > nowMs)
          offers.set(id, { messages: [message], groupIds: [undefined] });
      page.installations.forEach((installation, i) => {
        const offer = offers.get(page.messageIds[i] ?? 0);
        if (offer) presence.find(appId, installation)?.offer(offer);
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
      this.#messages.set(`${appId}/${id}`, message);
    }
    return found;
  }
}

function merge(a: InboxNotification, b: InboxNotification): InboxNotification {
  return { appId: a.appId, fromId: Math.min(a.fromId, b.fromId), toId: Math.max(a.toId, b.toId) };
}

/**
 * Messages that are offered together. Devices with the same messages of the same groups share one
 * node. They therefore share the offer and its frame.
 */
class OfferNode {
  readonly offer: Offer;
  readonly #next = new Map<number, OfferNode>();

  constructor(offer: Offer) {
    this.offer = offer;
  }

  /** Returns the node with one more message. */
  and(message: DeviceMessage, groupId: number): OfferNode {
    const cached = this.#next.get(groupId);
    if (cached) return cached;
    const { messages, groupIds } = this.offer;
    const next = new OfferNode({
      messages: [...messages, message],
      groupIds: [...groupIds, groupId],
    });
    this.#next.set(groupId, next);
    return next;
  }
}

/** Number of devices that are offered messages in one tick. */
const devicesPerTick = 256;

/**
 * Messages of several groups for the devices of an app. A device gets its messages of all groups in
 * one frame.
 */
class Offers {
  readonly #devices: ReadonlyMap<number, Connection>;
  readonly #root = new OfferNode({ messages: [], groupIds: [] });
  readonly #nodes = new Map<Connection, OfferNode>();

  constructor(devices: ReadonlyMap<number, Connection>) {
    this.#devices = devices;
  }

  add({ id, pending }: MessageGroup, message: DeviceMessage): void {
    for (const installation of pending) {
      const connection = this.#devices.get(installation);
      if (!connection) continue;
      const node = this.#nodes.get(connection) ?? this.#root;
      this.#nodes.set(connection, node.and(message, id));
    }
  }

  /**
   * Offers all messages. Yields to the event loop after every `devicesPerTick` devices, so that
   * other requests do not wait for all devices.
   */
  async send(): Promise<void> {
    let offered = 0;
    for (const [connection, { offer }] of this.#nodes) {
      connection.offer(offer);
      offered += 1;
      if (offered % devicesPerTick === 0) await setImmediate();
    }
  }
}
