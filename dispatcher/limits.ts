/** Numbers of jobs that one dispatcher has in work. */

/**
 * Pushes that are planned at a time, and the most of one fetch; the same job delivers a small one.
 */
export const freshPlansAtOnce = 64;

/** Pushes to one device in work beyond the permits of `freshPlansAtOnce`. */
export const singlesAtOnce = 256;

/** Continued plannings have job permits of their own, so that they never delay a new push. */
export const continuedPlansAtOnce = 2;

/**
 * Scans of one app at a time (DATABASE_CONNECTIONS_SCANS of all apps), which leaves cores of a
 * small database to other apps.
 */
export const scansPerApp = 3;

/**
 * Time limit of a statement that reads the devices of a push; it may be long, since such a
 * statement holds no locks.
 */
export const longestScanMs = 3_600_000;

/** Connections for scans that stay open while there is nothing to plan. */
export const warmScans = 2;

/**
 * Batches of one connector in work per thread: a bulkhead, since each connector has its own count.
 */
export const batchesPerThread = 4;

/**
 * Batches per thread, of all connectors, that have released their job permit: they wait for a slow
 * gateway or their slot.
 */
export const parkedPerThread = 32;
