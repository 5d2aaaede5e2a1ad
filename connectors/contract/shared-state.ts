/** What senders share over threads and dispatchers; the worker hands it in, and connectors know no database. */

/** An access token as it is kept for all threads and dispatchers. */
export interface StoredToken {
  value: string;
  /** Epoch milliseconds. */
  madeAtMs: number;
  expiresAtMs: number;
  /** Made because the gateway had refused the one before. */
  isReplacement: boolean;
}

/**
 * Keeps the access tokens of one app and connector for all threads and dispatchers
 * (develop/architecture.md#access-tokens). `credential` is any text that differs where the credentials do; only a digest of it is stored.
 * Rejects when the database cannot be asked.
 */
export interface TokenStore {
  read(credential: string): Promise<StoredToken | null>;
  /** True when the caller alone may renew the token, for `leaseMs` at most. */
  claim(credential: string, leaseMs: number): Promise<boolean>;
  /** Keeps a token and ends the claim. */
  keep(credential: string, token: StoredToken): Promise<void>;
  /** Ends the claim without a new token. */
  release(credential: string): Promise<void>;
}

/**
 * Day quotas of one profile, in shared state: once the gateway has said that a class of messages is used up, no
 * thread of any dispatcher asks again before midnight China time. Rejects when the database cannot be asked.
 */
export interface DayQuota {
  /** Why this class is closed for today, or null. */
  closed(messageClass: string): Promise<string | null>;
  close(messageClass: string, reason: string): Promise<void>;
}
