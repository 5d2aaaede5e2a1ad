/** Limits on the work that one dispatcher does at the same time. */

/**
 * Maximum pushes that are planned at the same time, and maximum of one fetch. The planning job of a
 * small push also delivers it.
 */
export const freshPlansAtOnce = 128;

/** Maximum single-device pushes that are being sent, in addition to `freshPlansAtOnce`. */
export const singlesAtOnce = 256;

/**
 * Maximum continued plannings at the same time. They have their own concurrency slots, so that they
 * never delay a new push.
 */
export const continuedPlansAtOnce = 2;

/**
 * Maximum concurrent scans of one app. `DATABASE_CONNECTIONS_SCANS` limits the scans of all apps.
 * The difference leaves CPUs of a small database to other apps.
 */
export const scansPerApp = 3;

/**
 * Timeout of a statement that reads the devices of a push, in ms. It may be long, because the
 * statement holds no locks.
 */
export const maxScanMs = 3_600_000;

/** Connections for scans that stay open while there is nothing to plan. */
export const warmScans = 2;

/** Batches of one connector in work per thread. Each connector has its own limit (bulkhead). */
export const batchesPerThread = 4;

/**
 * Maximum batches per thread, over all connectors, that have released their concurrency slot. They
 * wait for a slow gateway or for their time slot.
 */
export const waitingPerThread = 32;
