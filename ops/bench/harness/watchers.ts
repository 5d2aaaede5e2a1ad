import type { Bench } from './bench-service.ts';
import type { BenchApp } from './client.ts';

/** Tabs of the console that watch a push. */
export interface Watchers {
  /** Ends the streams and returns the number of events that each got on average. */
  stop(): Promise<number>;
}

/** Opens streams of live updates of a push, as so many tabs do. Throws when the api refuses one. */
export async function watchPush(
  { url, adminToken }: Bench,
  { appId }: BenchApp,
  { objectId, count }: { objectId: string; count: number },
): Promise<Watchers> {
  const end = new AbortController();
  const streams = Array.from({ length: count }, async () => {
    const response = await fetch(`${url}/console/api/events?topics=push:${appId}/${objectId}`, {
      headers: { Authorization: `Bearer ${adminToken}` },
      signal: end.signal,
    });
    if (response.status !== 200 || !response.body) throw new Error(`a stream is ${response.status}`);
    return response.body;
  });
  const reading = (await Promise.all(streams)).map(countEvents);
  return {
    async stop() {
      end.abort();
      const events = await Promise.all(reading);
      return count === 0 ? 0 : events.reduce((sum, n) => sum + n, 0) / count;
    },
  };
}

/** Counts the events of a stream until it ends. */
async function countEvents(body: ReadableStream<Uint8Array>): Promise<number> {
  let events = 0;
  try {
    for await (const chunk of body)
      events += Buffer.from(chunk).toString('latin1').split('\nevent: ').length - 1;
  } catch {
    // The watcher has ended it.
  }
  return events;
}
