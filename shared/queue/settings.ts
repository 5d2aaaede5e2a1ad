/** Seconds without a heartbeat after which a job is handed out again; pg-boss allows no fewer than 10. */
const heartbeatSeconds = 10;

/** Settings of every queue. Only the expiry of a push bounds its retries. */
export const queueSettings = {
  heartbeatSeconds,
  expireInSeconds: 3600,
  retryLimit: 100_000,
  retryDelay: 1,
  retryBackoff: true,
  retryDelayMax: 30,
  retentionSeconds: 60 * 60 * 24 * 30,
  deleteAfterSeconds: 300,
} as const;

/** Version of pg-boss's tables that the installed library needs; it starts with no other. */
export const queueSchemaVersion = 43;
