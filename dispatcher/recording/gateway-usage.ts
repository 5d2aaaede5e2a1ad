import type { Database } from '../../shared/db/pool.ts';
import {
  addGatewayUse,
  type GatewayUse,
  type ProfileKey,
} from '../../shared/db/tables/gateways/daily-use.ts';

/**
 * What was handed to gateways since it was last written down: one row per profile and second in place of one per
 * batch, which would make the batches of a large push wait for each other. A crash loses that second.
 */
export class GatewayUsage {
  readonly #db: Database;
  #entries = new Map<string, { key: ProfileKey; handed: GatewayUse }>();

  constructor(db: Database) {
    this.#db = db;
  }

  add(key: ProfileKey, { requests, recipients }: GatewayUse): void {
    if (requests === 0 && recipients === 0) return;
    const id = JSON.stringify([key.appId, key.connector, key.profile]);
    const entry = this.#entries.get(id) ?? { key, handed: { requests: 0, recipients: 0 } };
    entry.handed.requests += requests;
    entry.handed.recipients += recipients;
    this.#entries.set(id, entry);
  }

  /** Writes down what was added. Rejects when the database cannot be asked; what was not written is kept. */
  async flush(): Promise<void> {
    const entries = this.#entries;
    this.#entries = new Map();
    for (const [id, { key, handed }] of entries) {
      try {
        await addGatewayUse(this.#db, key, handed);
        entries.delete(id);
      } catch (error) {
        for (const left of entries.values()) this.add(left.key, left.handed);
        throw error;
      }
    }
  }
}
