import type { Handle } from '../../../pool.ts';

// The files of this folder have the statements of the channel for a spread database (operate/distributed.md): a transaction of one
// app with a statement for each step. The coordinator draws ids and sends notifications; inside a statement over tables a
// server of the app would do it, where nobody listens.

/** Sends notifications when `tx` commits. */
export async function notify(tx: Handle, topic: string, payloads: object[]): Promise<void> {
  if (payloads.length === 0) return;
  await tx.query('SELECT pg_notify($1, payload) FROM unnest($2::text[]) AS payload', [
    topic,
    payloads.map((payload) => JSON.stringify(payload)),
  ]);
}
