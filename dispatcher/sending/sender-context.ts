import type {
  DayQuota,
  GatewayCall,
  MessageStore,
  TokenStore,
} from '../../connectors/contract/connector.ts';
import { SealError, type Vault } from '../../shared/crypto.ts';
import type { Database } from '../../shared/db/pool.ts';
import { enqueueMessage } from '../../shared/db/tables/channel-messages.ts';
import {
  closeClass,
  closedReason,
  type ProfileKey,
} from '../../shared/db/tables/gateway-limits.ts';
import {
  claimGatewayToken,
  readGatewayToken,
  releaseGatewayToken,
  saveGatewayToken,
} from '../../shared/db/tables/gateways.ts';
import { reasonText } from '../../shared/domain/reasons.ts';
import {
  addDuration,
  type DurationCounts,
  noDurations,
} from '../../shared/process/operation-metrics.ts';
import type { CallCount } from './task.ts';

/** Returns the access tokens of one app and connector, which are stored in the database. */
export function tokenStore(
  db: Database,
  vault: Vault,
  owner: { appId: string; connector: string },
): TokenStore {
  const keyOf = (credential: string) => ({ ...owner, credential });
  return {
    async read(credential) {
      try {
        return await readGatewayToken(db, vault, keyOf(credential));
      } catch (error) {
        // The token was encrypted with a retired key. Treat it as missing.
        if (error instanceof SealError) return null;
        throw error;
      }
    },
    claim: (credential, leaseMs) => claimGatewayToken(db, vault, keyOf(credential), leaseMs),
    keep: (credential, token) => saveGatewayToken(db, vault, keyOf(credential), token),
    release: (credential) => releaseGatewayToken(db, vault, keyOf(credential)),
  };
}

/** Returns the message store of one app for the device channel, which writes to the database. */
export const messageStore = (db: Database, appId: string): MessageStore => ({
  enqueue: async ({ pushId, content, expiresAtMs, recipients }) => {
    await enqueueMessage(db, {
      appId,
      pushId,
      content,
      expiresAt: new Date(expiresAtMs),
      installations: recipients.map((recipient) => Number(recipient.id)),
    });
  },
});

/** Returns the daily quotas of one profile, which are stored in the database. */
export function dayQuota(db: Database, key: ProfileKey): DayQuota {
  return {
    closed: (messageClass) => closedReason(db, key, messageClass),
    close: (messageClass, reason) => closeClass(db, key, { messageClass, reason }),
  };
}

/** Answers and durations of the requests to one profile's gateway. */
export interface Calls {
  calls: CallCount[];
  durations: DurationCounts;
}

/** Collects the answers of one profile's gateway until the next drain. */
export class CallLog {
  #counts = new Map<string, CallCount>();
  /** The entry that was counted last. Nearly all answers are equal, so it saves a search. */
  #last: CallCount | undefined;
  #durations = noDurations();

  add({ status, reason, seconds }: GatewayCall): void {
    addDuration(this.#durations, seconds);
    if (this.#last?.status !== status || this.#last.reason !== reason)
      this.#last = this.#find(status, reason);
    this.#last.count += 1;
  }

  #find(status: number, reason: string): CallCount {
    const key = `${status} ${reason}`;
    const count = this.#counts.get(key) ?? { status, reason, count: 0 };
    this.#counts.set(key, count);
    return count;
  }

  drain(): Calls {
    const calls = [...this.#counts.values()].map((call) => ({
      ...call,
      reason: reasonText(call.reason),
    }));
    const drained = { calls, durations: this.#durations };
    this.#counts = new Map();
    this.#last = undefined;
    this.#durations = noDurations();
    return drained;
  }
}
