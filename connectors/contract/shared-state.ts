/** State that senders share across threads and dispatchers. The worker provides it; connectors know no database. */

/** Access token, stored for all threads and dispatchers. */
export interface StoredToken {
  value: string;
  /** Epoch milliseconds. */
  madeAtMs: number;
  expiresAtMs: number;
  /** Fetched because the gateway had refused the previous token. */
  isReplacement: boolean;
}

/**
 * Stores the access tokens of one app and connector for all threads and dispatchers
 * (develop/architecture.md#access-tokens). `credential` is any text that differs between credentials; only a digest of it
 * is stored. Rejects if the database is unreachable.
 */
export interface TokenStore {
  read(credential: string): Promise<StoredToken | null>;
  /** Resolves to true if the caller alone may renew the token, for `leaseMs` at most. */
  claim(credential: string, leaseMs: number): Promise<boolean>;
  /** Stores a token and ends the claim. */
  keep(credential: string, token: StoredToken): Promise<void>;
  /** Ends the claim without a new token. */
  release(credential: string): Promise<void>;
}

/**
 * Day quotas of one profile: once the gateway says that the quota of a message class is used up, no thread of any
 * dispatcher sends in this class before midnight China time. Rejects if the database is unreachable.
 */
export interface DayQuota {
  /** Resolves to the reason why this class is closed for today, or null. */
  closed(messageClass: string): Promise<string | null>;
  close(messageClass: string, reason: string): Promise<void>;
}
