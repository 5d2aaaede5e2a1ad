import type { Database } from '../../shared/db/pool.ts';
import {
  addGatewayUse,
  type GatewayUse,
  type ProfileKey,
} from '../../shared/db/tables/gateway-limits.ts';

/**
 * Requests and recipients of each gateway since the last write. They are written once per second
 * and profile, because the batches of a large push would otherwise wait for each other on one row.
 * A crash loses the last second.
 */
export class GatewayUsage {
  readonly #db: Database;
  #entries = new Map<string, { key: ProfileKey; use: GatewayUse }>();

  constructor(db: Database) {
    this.#db = db;
  }

  add(key: ProfileKey, { requests, recipients }: GatewayUse): void {
    if (requests === 0 && recipients === 0) return;
    const id = JSON.stringify([key.appId, key.connector, key.profile]);
    const entry = this.#entries.get(id) ?? { key, use: { requests: 0, recipients: 0 } };
    entry.use.requests += requests;
    entry.use.recipients += recipients;
    this.#entries.set(id, entry);
  }

  /**
   * Writes the usage that was added. If the database is unavailable, rejects and keeps the
   * unwritten usage.
   */
  async flush(): Promise<void> {
    const entries = this.#entries;
    this.#entries = new Map();
    for (const [id, { key, use }] of entries) {
      try {
        await addGatewayUse(this.#db, key, use);
        entries.delete(id);
      } catch (error) {
        for (const unwritten of entries.values()) this.add(unwritten.key, unwritten.use);
        throw error;
      }
    }
  }
}
