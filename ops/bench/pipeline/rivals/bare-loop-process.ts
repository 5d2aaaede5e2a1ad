/**
 * Sends with a plain loop over `node:http2`, as public APNs clients for Node do. It uses one
 * connection, renders the payload once, and opens a stream with events and a promise for each
 * token. It stores nothing and retries nothing. Its tokens are in memory.
 */
import { type ClientHttp2Session, connect } from 'node:http2';
import { type RivalOrder, runRival, tokensOf } from './rival-process.ts';

/** Concurrent streams of the connection, as APNs allows. */
const streams = 1000;

const payload = JSON.stringify({ aps: { alert: 'Benchmark' } });

/** Sends one notification. Resolves with the status of the response. */
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
    stream.on('end', () =>
      status === 200 && body === '' ? resolve(status) : reject(new Error(body)),
    );
    stream.on('error', reject);
    stream.end(payload);
  });
}

/** Sends to all tokens. Keeps one request in flight for each stream. */
async function sendAll(
  session: ClientHttp2Session,
  tokens: string[],
  topic: string,
): Promise<void> {
  let next = 0;
  const sendTokens = async () => {
    while (next < tokens.length) {
      const token = tokens[next] ?? '';
      next += 1;
      await sendOne(session, token, topic);
    }
  };
  await Promise.all(Array.from({ length: streams }, sendTokens));
}

let session: ClientHttp2Session | undefined;
let tokens: string[] = [];

async function push({ url, ca, topic, devices }: RivalOrder): Promise<number> {
  if (tokens.length !== devices) tokens = tokensOf(devices);
  const startedAtMs = performance.now();
  session ??= connect(url, { ca });
  await sendAll(session, tokens, topic);
  return (performance.now() - startedAtMs) / 1000;
}

runRival({ name: 'bare loop', push, close: () => session?.close() });
