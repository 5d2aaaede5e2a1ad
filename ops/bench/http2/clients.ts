/**
 * Request target of a client. Each client sends `count` requests on one connection, about 1000 at a
 * time.
 */

import { once } from 'node:events';
import { type ClientHttp2Stream, connect as connectHttp2 } from 'node:http2';
import http2wrapper from 'http2-wrapper';
import { Client } from 'undici';
import { openTransport } from '../../../connectors/http2/pooled-transport.ts';
import {
  defaultTiming,
  type RequestResult,
  type TransportRequest,
} from '../../../connectors/http2/transport.ts';
import { systemClock } from '../../../shared/clock.ts';
import { loopbackNetworks } from '../../../shared/config/private-hosts.ts';
import { setPrivateHosts } from '../../../shared/http/outbound-addresses.ts';
import {
  type BenchRecipient,
  badgeAt,
  body,
  headers,
  idPrefix,
  type Order,
  order,
  pathPrefix,
  recipients,
  requestHeaderName,
  sharedBody,
} from './compare.ts';

type Target = Pick<Order, 'url' | 'ca' | 'body'>;

interface Running {
  /** Resolves when every request has its result. Rejects if a request was not accepted. */
  send(requests: number): Promise<void>;
}

// The servers of this benchmark run on this machine.
setPrivateHosts(loopbackNetworks);

const streams = 1000;
const headText = body.toString('utf8', 0, badgeAt);
const tailText = body.toString('utf8', badgeAt);

/** Returns the request body for a client that cannot insert a badge into a shared template. */
const bodyOf = (target: Target, { badge }: BenchRecipient): string | Buffer =>
  target.body === 'shared' ? sharedBody : `${headText}${badge}${tailText}`;

const headersOf = (recipient: BenchRecipient) => ({
  ':method': 'POST',
  ':path': `${pathPrefix}${recipient.token}`,
  ...headers,
  [requestHeaderName]: recipient.id,
});

/** Sends batches as the dispatcher does: four concurrent batches of 1000 recipients each. */
async function overTransport(target: Target): Promise<Running> {
  const transport = openTransport({
    baseUrl: target.url,
    ca: target.ca,
    maxConnections: 1,
    timing: defaultTiming,
    clock: systemClock,
  });
  const isShared = target.body === 'shared';
  const requestOf = isShared
    ? ({ token, idEnd }: BenchRecipient): TransportRequest => ({ path: token, headerValue: idEnd })
    : ({ token, idEnd, badge }: BenchRecipient): TransportRequest => ({
        path: token,
        headerValue: idEnd,
        splice: badge,
      });
  const sendBatch = async () => {
    const outcomes = new Uint16Array(recipients.length);
    // Created per batch, because a connector renders each batch.
    const template = {
      pathPrefix,
      headers: { ...headers },
      batchHeaders: ['apns-expiration'],
      requestHeaderName,
      requestHeaderPrefix: idPrefix,
      ...(isShared
        ? { body: Buffer.from(sharedBody) }
        : { body: Buffer.from(body), spliceAt: badgeAt }),
    };
    await transport.sendMany(
      { template, requests: recipients.map(requestOf) },
      (index: number, reply: RequestResult) => {
        outcomes[index] = reply.kind === 'response' ? reply.status : 0;
        return undefined;
      },
    );
    if (outcomes.some((status) => status !== 200))
      throw new Error('not every request was accepted');
  };
  return {
    send: async (requests) => {
      let batches = Math.ceil(requests / recipients.length);
      const sendBatches = async () => {
        while (batches-- > 0) await sendBatch();
      };
      await Promise.all([sendBatches(), sendBatches(), sendBatches(), sendBatches()]);
    },
  };
}

/** Keeps one request in flight for each stream. */
function keepStreamsBusy(
  sendOne: (recipient: BenchRecipient, done: (status: number) => void) => void,
): Running {
  return {
    send: (requests) =>
      new Promise((resolve, reject) => {
        let begun = 0;
        let finished = 0;
        const next = () => {
          const recipient = recipients[begun % recipients.length];
          if (begun >= requests || !recipient) return;
          begun += 1;
          sendOne(recipient, (status) => {
            if (status !== 200) reject(new Error(`a request ended with ${status}`));
            finished += 1;
            if (finished === requests) resolve();
            else next();
          });
        };
        for (let i = 0; i < streams; i++) next();
      }),
  };
}

function listen(stream: ClientHttp2Stream, done: (status: number) => void): void {
  let status = 0;
  stream.on('response', (fields) => {
    status = fields[':status'] ?? 0;
  });
  stream.on('close', () => done(status));
  stream.resume();
}

async function overNodeHttp2(target: Target): Promise<Running> {
  const session = connectHttp2(target.url, { ca: target.ca });
  await new Promise((resolve) => session.once('remoteSettings', resolve));
  return keepStreamsBusy((recipient, done) => {
    const stream = session.request(headersOf(recipient));
    listen(stream, done);
    stream.end(bodyOf(target, recipient));
  });
}

async function overWrapper(target: Target): Promise<Running> {
  const agent = new http2wrapper.Agent({ maxEmptySessions: 1 });
  return keepStreamsBusy((recipient, done) => {
    const made = agent.request(target.url, { ca: target.ca }, headersOf(recipient));
    made.then(
      (stream) => {
        listen(stream, done);
        stream.end(bodyOf(target, recipient));
      },
      () => done(0),
    );
  });
}

async function overUndici(target: Target): Promise<Running> {
  const client = new Client(target.url, {
    allowH2: true,
    connect: { ca: target.ca },
    pipelining: streams,
    maxConcurrentStreams: streams,
  });
  return keepStreamsBusy((recipient, done) => {
    const made = client.request({
      method: 'POST',
      path: `${pathPrefix}${recipient.token}`,
      headers: { ...headers, [requestHeaderName]: recipient.id },
      body: bodyOf(target, recipient),
      // Without this option undici sends one POST after the other.
      idempotent: true,
    });
    made.then(
      async (response) => {
        await response.body.dump();
        done(response.statusCode);
      },
      () => done(0),
    );
  });
}

const clients: Readonly<Record<string, (target: Target) => Promise<Running>>> = {
  'our transport': overTransport,
  'node:http2': overNodeHttp2,
  'http2-wrapper': overWrapper,
  undici: overUndici,
};

// Runs one client of the comparison in a separate process, so that its CPU time is measured alone.
// The benchmark starts this process with an IPC channel.

const [message] = await once(process, 'message');
const { client, warmUp, requests, ...target } = order.parse(message);
const open = clients[client];
if (!open) throw new Error(`there is no client named ${client}`);
const running = await open(target);
await running.send(warmUp);
const startedAt = performance.now();
const before = process.cpuUsage();
await running.send(requests);
const { user, system } = process.cpuUsage(before);
const seconds = (performance.now() - startedAt) / 1000;
process.send?.({ seconds, cpuSeconds: (user + system) / 1_000_000 }, undefined, undefined, () =>
  process.exit(0),
);
