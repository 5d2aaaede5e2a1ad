import { retriedCode } from '../domain/outcome.ts';
import { serviceOwner, webhookLimits } from '../domain/webhooks/endpoint.ts';
import {
  type EventData,
  type EventTypeName,
  recipientsPerEvent,
} from '../domain/webhooks/event-types.ts';
import { PendingCounts } from '../pending-counts.ts';
import type { AppCache } from './app-cache.ts';
import type { Database, Handle } from './pool.ts';
import type { DeletedDevices } from './tables/invalid-tokens.ts';
import { insertDeliveries, type NewEvent } from './tables/webhook-deliveries.ts';
import {
  addDropped,
  type EndpointKey,
  listSubscribers,
  shareEndpoints,
  updateFull,
  wakeEndpoints,
} from './tables/webhooks.ts';

/** An event of a webhook. */
export interface WebhookEvent<T extends EventTypeName> {
  /** App of the event; null for an event of the whole service. */
  appId: string | null;
  type: T;
  data: EventData<T>;
  /** A second event with the same key is not sent. For findings that are read again and again. */
  onceKey?: string;
}

/** A settled batch whose outcomes are sent. */
export interface SettledRecipients {
  appId: string;
  id: number;
  /** One byte for each recipient (`RecipientStates`). */
  bytes: Uint8Array;
}

/** Splits recipients into the parts of single events. */
export function inParts<T>(recipients: readonly T[]): T[][] {
  const parts: T[][] = [];
  for (let first = 0; first < recipients.length; first += recipientsPerEvent)
    parts.push(recipients.slice(first, first + recipientsPerEvent));
  return parts;
}

/** An endpoint that subscribes to an event. */
type Subscriber = EndpointKey & { isFull: boolean };

/** Returns the events of the recipients of a batch, except of those that moved to a retry batch. */
function outcomeEvents({ appId, id, bytes }: SettledRecipients): NewEvent[] {
  const events: NewEvent[] = [];
  for (let first = 0; first < bytes.length; first += recipientsPerEvent) {
    const part = bytes.subarray(first, first + recipientsPerEvent);
    if (part.some((code) => code !== retriedCode))
      events.push({
        type: 'recipients.outcome',
        sourceApp: appId,
        batchId: id,
        firstIndex: first,
      });
  }
  return events;
}

/**
 * Returns the key of an event for the endpoints of an owner. Endpoints of the service get the events
 * of all apps, whose keys may be equal.
 */
const onceKeyOf = (owner: string, { onceKey, sourceApp }: NewEvent): string | undefined =>
  owner === serviceOwner && onceKey !== undefined ? `${sourceApp} ${onceKey}` : onceKey;

/** Interval at which dropped events are written. */
const writeDroppedMs = 1000;

/**
 * Writes the events of webhooks, in the transaction of the change that they report. A dispatcher
 * sends them (`dispatcher/webhooks`). An app without webhooks pays for a look-up in a cache.
 */
export class WebhookEvents {
  readonly #db: Database;
  readonly #appCache: Pick<AppCache, 'webhooks'>;
  /** Number of dropped events by endpoint. */
  readonly #dropped: PendingCounts<EndpointKey>;
  #timer: NodeJS.Timeout | undefined;

  constructor(db: Database, appCache: Pick<AppCache, 'webhooks'>) {
    this.#db = db;
    this.#appCache = appCache;
    this.#dropped = new PendingCounts((key, [events = 0]) => addDropped(db, key, events));
  }

  /**
   * Returns whether an endpoint of the app or of the service subscribes to a type. A change counts
   * within one second.
   */
  async isWanted(db: Handle, appId: string, type: EventTypeName): Promise<boolean> {
    return (await this.#subscribers(db, appId, type)).length > 0;
  }

  /** Writes events in `tx`. Events that nobody subscribes to cost nothing. */
  async emit<T extends EventTypeName>(
    tx: Handle,
    ...events: readonly WebhookEvent<T>[]
  ): Promise<void> {
    await this.#write(
      tx,
      events.map(({ appId, ...event }) => ({ ...event, sourceApp: appId ?? serviceOwner })),
    );
  }

  /**
   * Writes an event that goes with no other change, in a transaction of its own. Does nothing if
   * nobody subscribes to it.
   */
  async emitAlone<T extends EventTypeName>(
    event: WebhookEvent<T> & { appId: string },
  ): Promise<void> {
    if (await this.isWanted(this.#db, event.appId, event.type))
      await this.#db.transaction((tx) => this.emit(tx, event));
  }

  /**
   * Writes `recipients.outcome` of batches that `tx` has settled: one event for up to 500 recipients.
   * Stores only the position in the batch. The sender reads the outcomes from it.
   */
  async emitOutcomes(tx: Handle, batches: readonly SettledRecipients[]): Promise<void> {
    const events: NewEvent[] = [];
    for (const [appId, ofApp] of Map.groupBy(batches, (batch) => batch.appId))
      if (await this.isWanted(tx, appId, 'recipients.outcome'))
        events.push(...ofApp.flatMap(outcomeEvents));
    await this.#write(tx, events);
  }

  /** Writes `installation.invalid` for the installations that `tx` has deleted. */
  async emitInvalid(
    tx: Handle,
    { appId, push, devices }: { appId: string; push: string; devices: DeletedDevices },
  ): Promise<void> {
    const events = Object.entries(devices).flatMap(([connector, installations]) =>
      inParts(installations).map((part) => ({
        appId,
        type: 'installation.invalid' as const,
        data: { push, connector, installations: part },
      })),
    );
    await this.emit(tx, ...events);
  }

  /** Updates which endpoints are full, and writes the dropped events. A background job calls it. */
  async maintain(): Promise<void> {
    await updateFull(this.#db, webhookLimits.waiting);
    await this.#dropped.flush();
  }

  /** Writes the dropped events. */
  async close(): Promise<void> {
    clearTimeout(this.#timer);
    await this.#dropped.flush();
  }

  /** Returns the endpoints of an app and of the service that subscribe to a type. */
  async #subscribers(db: Handle, sourceApp: string, type: EventTypeName): Promise<Subscriber[]> {
    if (sourceApp === serviceOwner) return listSubscribers(db, type);
    const found: Subscriber[] = [];
    for (const appId of [sourceApp, serviceOwner])
      for (const { name, isFull, events } of await this.#appCache.webhooks(db, appId))
        if (events.includes(type)) found.push({ appId, name, isFull });
    return found;
  }

  async #write(tx: Handle, events: readonly NewEvent[]): Promise<void> {
    const taken: (Subscriber & { event: NewEvent })[] = [];
    for (const event of events)
      for (const subscriber of await this.#subscribers(tx, event.sourceApp, event.type))
        if (subscriber.isFull) this.#drop(subscriber);
        else taken.push({ ...subscriber, event });
    // The same order in all transactions, so that they cannot deadlock.
    const owners = [...Map.groupBy(taken, ({ appId }) => appId)].sort(([a], [b]) =>
      a < b ? -1 : 1,
    );
    for (const [owner, ofOwner] of owners) {
      const names = [...new Set(ofOwner.map(({ name }) => name))];
      const endpoints = await shareEndpoints(tx, owner, names);
      const existing = new Set(endpoints.map(({ name }) => name));
      const rows = ofOwner.flatMap(({ name, event }) =>
        existing.has(name) ? [{ ...event, onceKey: onceKeyOf(owner, event), webhook: name }] : [],
      );
      if (rows.length === 0 || (await insertDeliveries(tx, owner, rows)) === 0) continue;
      const idle = endpoints.filter(({ mustWake }) => mustWake).map(({ name }) => name);
      if (idle.length > 0) await wakeEndpoints(tx, owner, idle);
    }
  }

  #drop({ appId, name }: EndpointKey): void {
    this.#dropped.add({ appId, name }, 1);
    this.#writeLater();
  }

  #writeLater(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#dropped.flush().catch(() => this.#writeLater());
    }, writeDroppedMs).unref();
  }
}
