import { once } from 'node:events';
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { z } from 'zod';
import { sleep } from '../../../shared/clock.ts';
import type { Bench } from '../harness/bench-service.ts';
import { adminHeaders, type BenchApp, call } from '../harness/client.ts';

/** A receiver of `recipients.outcome`, in the process of the benchmark. */
export interface OutcomeReceiver {
  /** Waits until every recipient has arrived. Throws after a minute. */
  untilReceived(devices: number): Promise<void>;
  /** Deletes the endpoint and ends the receiver. */
  close(): Promise<void>;
}

const event = z.object({ data: z.object({ recipients: z.array(z.unknown()) }) });
/** A change of endpoints counts on all processes after this time. */
const countedMs = 1000;
const patienceMs = 60_000;

/**
 * Subscribes an app to `recipients.outcome`. `isDown`: the receiver never answers.
 */
export async function openOutcomeReceiver(
  bench: Bench,
  app: BenchApp,
  { isDown }: { isDown: boolean },
): Promise<OutcomeReceiver> {
  let received = 0;
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      received += event.parse(JSON.parse(body)).data.recipients.length;
      if (!isDown) response.writeHead(204).end();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  const path = `${bench.url}/console/api/apps/${app.appId}/webhooks/outcomes`;
  const headers = adminHeaders(bench);
  const body = JSON.stringify({ url: `http://127.0.0.1:${port}`, events: ['recipients.outcome'] });
  await call(path, { method: 'PUT', headers, body }, z.unknown());
  await sleep(countedMs);
  return {
    async untilReceived(devices) {
      const endsAtMs = performance.now() + patienceMs;
      while (received < devices && performance.now() < endsAtMs) await sleep(10);
      if (received !== devices)
        throw new Error(`${devices} devices: ${received} outcomes received`);
    },
    async close() {
      await call(path, { method: 'DELETE', headers }, z.unknown());
      await sleep(countedMs);
      server.close();
      server.closeAllConnections();
    },
  };
}
