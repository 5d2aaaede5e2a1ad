import { Agent, request } from 'node:http';
import { parentPort, workerData } from 'node:worker_threads';
import { z } from 'zod';
import { type Answers, attackOrder } from './bench.ts';
import type { HostileCall } from './patterns.ts';

const order = attackOrder.parse(workerData);
const hostileCalls = z.array(
  z.object({
    method: z.enum(['GET', 'PUT', 'POST']),
    path: z.string(),
    body: z.string().optional(),
  }),
);

/** Aborts the calls of the running attack. */
let running = new AbortController();
let seen: Answers = {};

parentPort?.on('message', (message: unknown) => {
  const calls = hostileCalls.parse(message);
  running.abort();
  if (calls.length === 0) parentPort?.postMessage(seen);
  else begin(calls);
});

function begin(calls: HostileCall[]): void {
  running = new AbortController();
  seen = {};
  const agent = new Agent({ keepAlive: true });
  const { signal } = running;
  signal.addEventListener('abort', () => agent.destroy());
  for (let client = 0; client < order.clients; client += 1)
    void repeat(calls, { agent, signal, client });
}

async function repeat(
  calls: HostileCall[],
  { agent, signal, client }: { agent: Agent; signal: AbortSignal; client: number },
): Promise<void> {
  for (let i = client; !signal.aborted; i += 1) {
    const call = calls[i % calls.length];
    const status = call ? await send(call, { agent, signal }) : 'none';
    if (!signal.aborted) seen[status] = (seen[status] ?? 0) + 1;
  }
}

/** Sends a call, discards the body of the response, and returns the status. */
function send(
  { method, path, body }: HostileCall,
  { agent, signal }: { agent: Agent; signal: AbortSignal },
): Promise<string> {
  return new Promise((resolve) => {
    const sent = request(
      `${order.url}${path}`,
      { method, agent, signal, headers: order.headers },
      (response) => {
        response.on('end', () => resolve(String(response.statusCode)));
        response.on('error', () => resolve('broken'));
        response.resume();
      },
    );
    sent.on('error', () => resolve('broken'));
    sent.end(body);
  });
}
