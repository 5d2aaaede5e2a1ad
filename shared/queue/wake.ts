import type { Handle } from '../db/pool.ts';

/** NOTIFY topic that wakes consumers; the payload is the name that they listen for, as a rule that of their queue. */
export const wakeTopic = 'carillon_queue';

/** Changes a statement that writes jobs so that it also wakes consumers when it commits. */
export const wakingText =
  (wakeName: string) =>
  (text: string): string =>
    `WITH jobs AS (${text}) SELECT pg_notify('${wakeTopic}', '${wakeName}')`;

/**
 * Wakes the consumers of queues when `db` commits. A statement of its own: in a database that is spread, one over a table of an app
 * notifies on another server.
 */
export async function wakeQueues(db: Handle, queues: string[]): Promise<void> {
  if (queues.length > 0)
    await db.query('SELECT pg_notify($1, name) FROM unnest($2::text[]) AS queue (name)', [wakeTopic, queues]);
}
