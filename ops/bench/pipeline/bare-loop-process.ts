/**
 * A bare loop over `node:http2`, as public APNs clients for Node send: one connection, the payload rendered once, and per
 * token a stream with events and a promise. It stores nothing, retries nothing and has its tokens in memory.
 */
import { createHash } from 'node:crypto';
import { type ClientHttp2Session, connect } from 'node:http2';
import { z } from 'zod';
import { ClosingStack, closeOnSignals, notifySupervisor } from '../../../shared/process/lifecycle.ts';
import { createLogger } from '../../../shared/process/logging.ts';

process.title = 'carillon bench loop';

const order = z.object({ url: z.string(), ca: z.string(), topic: z.string(), devices: z.number() });

/** Streams of the connection, as APNs allows. */
const streams = 1000;

const payload = JSON.stringify({ aps: { alert: 'Benchmark' } });

/** Returns the token of device `number` (gateway/arrivals.ts). */
const tokenOf = (number: number): string =>
  createHash('sha256').update(String(number)).digest('hex').slice(0, 56) +
  number.toString(16).padStart(8, '0');

/** Sends one notification; resolves with the status of the answer. */
function sendOne(session: ClientHttp2Session, token: string, topic: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const stream = session.request({
      ':method': 'POST',
      ':path': `/3/device/${token}`,
      'apns-topic': topic,
      'apns-push-type': 'alert',
      'apns-expiration': '0',
      authorization: 'bearer benchmark',
    });
    let status = 0;
    let body = '';
    stream.setEncoding('utf8');
    stream.on('response', (headers) => {
      status = headers[':status'] ?? 0;
    });
    stream.on('data', (chunk: string) => {
      body += chunk;
    });
    stream.on('end', () => (status === 200 && body === '' ? resolve(status) : reject(new Error(body))));
    stream.on('error', reject);
    stream.end(payload);
  });
}

/** Sends to all tokens, as many at a time as there are streams. */
async function sendAll(session: ClientHttp2Session, tokens: string[], topic: string): Promise<void> {
  let next = 0;
  const lane = async () => {
    while (next < tokens.length) {
      const token = tokens[next] ?? '';
      next += 1;
      await sendOne(session, token, topic);
    }
  };
  await Promise.all(Array.from({ length: streams }, lane));
}

let session: ClientHttp2Session | undefined;
let tokens: string[] = [];

async function run({ url, ca, topic, devices }: z.infer<typeof order>): Promise<number> {
  if (tokens.length !== devices) tokens = Array.from({ length: devices }, (_, i) => tokenOf(i + 1));
  const startedAtMs = performance.now();
  session ??= connect(url, { ca });
  await sendAll(session, tokens, topic);
  return (performance.now() - startedAtMs) / 1000;
}

const log = createLogger({ level: 'warn', name: 'bare loop' });
const stack = new ClosingStack(log);
stack.add('connection', () => session?.close());
closeOnSignals({ log, stack });
process.on('message', (message) => {
  const parsed = order.safeParse(message);
  if (!parsed.success) return;
  run(parsed.data).then(
    (seconds) => notifySupervisor({ seconds }),
    (error: unknown) => log.error({ err: error }, 'the loop failed'),
  );
});
notifySupervisor({ ready: true });
