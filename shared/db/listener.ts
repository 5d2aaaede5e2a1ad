import pg from 'pg';
import type { z } from 'zod';
import { connectionUrl } from '../config/environment.ts';
import type { Logger } from '../process/logging.ts';
import { keepAlive } from './limits/client-pool.ts';

/**
 * Returns the name of a process's LISTEN connection in pg_stat_activity. Each process has one such
 * connection.
 */
export const listenerName = (process?: string): string =>
  process === undefined ? 'carillon listener' : `carillon listener (${process})`;

type Handler = (payload: string) => void;

/**
 * A LISTEN connection. After a lost connection it reconnects, and then calls every handler once
 * with an empty payload, because PostgreSQL does not repeat notifications.
 */
export class Listener {
  readonly #url: string;
  readonly #log: Logger;
  readonly #name: string;
  readonly #handlers = new Map<string, Set<Handler>>();
  #client: pg.Client | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;
  #delayMs = 100;

  /**
   * `process` is the kind of process. `doctor` counts processes by this name in pg_stat_activity.
   */
  constructor(url: string, log: Logger, process?: string) {
    this.#url = url;
    this.#log = log;
    this.#name = listenerName(process);
  }

  async start(): Promise<void> {
    await this.#connect();
  }

  /** Calls `handler` for each notification on a channel. Returns a function that unsubscribes. */
  async listen(channel: string, handler: Handler): Promise<() => void> {
    const existing = this.#handlers.get(channel);
    const handlers = existing ?? new Set<Handler>();
    this.#handlers.set(channel, handlers.add(handler));
    if (!existing) await this.#client?.query(`LISTEN ${pg.escapeIdentifier(channel)}`);
    return () => handlers.delete(handler);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.#client?.end().catch(() => undefined);
  }

  async #connect(): Promise<void> {
    const client = new pg.Client({
      connectionString: connectionUrl(this.#url),
      application_name: this.#name,
      ...keepAlive,
      connectionTimeoutMillis: 5000,
    });
    client.on('error', (error) => this.#lost(client, error));
    client.on('end', () => this.#lost(client, new Error('connection ended')));
    client.on('notification', ({ channel, payload }) => this.#deliver(channel, payload ?? ''));
    await client.connect();
    for (const channel of this.#handlers.keys())
      await client.query(`LISTEN ${pg.escapeIdentifier(channel)}`);
    this.#client = client;
    this.#delayMs = 100;
  }

  #deliver(channel: string, payload: string): void {
    for (const handler of this.#handlers.get(channel) ?? []) handler(payload);
  }

  #lost(client: pg.Client, error: Error): void {
    if (this.#isClosed || (this.#client && this.#client !== client)) return;
    this.#client = undefined;
    this.#log.warn({ err: error }, 'LISTEN connection lost');
    client.removeAllListeners('end');
    client.end().catch(() => undefined);
    this.#reconnectLater();
  }

  #reconnectLater(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#reconnect(), this.#delayMs);
    this.#delayMs = Math.min(this.#delayMs * 2, 2000);
  }

  async #reconnect(): Promise<void> {
    if (this.#isClosed) return;
    try {
      await this.#connect();
      for (const channel of this.#handlers.keys()) this.#deliver(channel, '');
    } catch {
      this.#reconnectLater();
    }
  }
}

/**
 * Parses the payload of a NOTIFY. Returns undefined if it is invalid, because any database client
 * can send a NOTIFY.
 */
export function parseNotification<T>(shape: z.ZodType<T>, payload: string): T | undefined {
  try {
    return shape.safeParse(JSON.parse(payload)).data;
  } catch {
    return undefined;
  }
}
