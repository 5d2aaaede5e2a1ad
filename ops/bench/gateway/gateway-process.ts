/**
 * The APNs of a benchmark, in a process of its own: it counts, writes down when what came, and remembers no
 * request, so that it can take millions. It is the measuring instrument: where the machine lets it, it has
 * processor time before those that it measures, as a gateway elsewhere would.
 */
import { setPriority } from 'node:os';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { z } from 'zod';
import { HeaderDecoder } from '../../../connectors/http2/hpack/decoder.ts';
import { ClosingStack, closeOnSignals, notifySupervisor } from '../../../shared/process/lifecycle.ts';
import { createLogger } from '../../../shared/process/logging.ts';
import { createApnsCredentials, startApnsGateway } from '../../sandbox/apns/server.ts';
import { startQuickPeer } from '../http2/quick-peer.ts';
import { Arrivals, numberOfToken, SeenNumbers } from './arrivals.ts';
import { firstDevices, type Observation } from './gateway.ts';

process.title = 'carillon bench gateway';

const question = z.object({ ask: z.number(), forget: z.boolean() });
const instrumentPriority = -10;

const log = createLogger({ level: 'warn', name: 'bench gateway' });
const stack = new ClosingStack(log);
closeOnSignals({ log, stack });
try {
  setPriority(instrumentPriority);
} catch {
  // Only root may; the figures say how long the gateway stood still.
}
const delay = monitorEventLoopDelay({ resolution: 5 });
delay.enable();
const seen = new SeenNumbers();
const arrivals = new Arrivals();
/** When the devices with the lowest numbers were reached first. */
const firstSeenMs = new Map<number, number>();

function arrived(token: string): void {
  const atMs = performance.timeOrigin + performance.now();
  const number = numberOfToken(token);
  seen.add(number);
  arrivals.add(atMs);
  if (number <= firstDevices && !firstSeenMs.has(number)) firstSeenMs.set(number, atMs);
}

/** Reads of every request to whom it goes, and takes it. */
function startQuickGateway(maxStreams: number) {
  return startQuickPeer(maxStreams, () => {
    const headers = new HeaderDecoder();
    let token = '';
    const onField = (name: string, value: string) => {
      if (name === ':path') token = value;
    };
    return {
      onHeaders: (bytes, start, end) => void headers.decode(bytes, start, end, onField),
      onRequest: () => arrived(token),
    };
  });
}

const maxStreams = Number(process.env.BENCH_STREAMS ?? 1000);
const credentials = createApnsCredentials();
const gateway =
  process.env.BENCH_GATEWAY === 'quick'
    ? await startQuickGateway(maxStreams)
    : await startApnsGateway({
        keys: [credentials],
        maxStreams,
        onRequest: ({ token }) => arrived(token),
      });
stack.add('apns gateway', () => gateway.close());

function observe(): Observation {
  return {
    total: arrivals.count,
    distinct: seen.distinct,
    repeats: seen.repeats,
    firstMs: arrivals.firstMs,
    lastMs: arrivals.lastMs,
    buckets: [...arrivals.buckets],
    firstSeenMs: [...firstSeenMs],
    stallMs: delay.max / 1e6,
  };
}

process.on('message', (message) => {
  const parsed = question.safeParse(message);
  if (!parsed.success) return;
  notifySupervisor({ answer: parsed.data.ask, observation: observe() });
  if (!parsed.data.forget) return;
  seen.clear();
  arrivals.clear();
  firstSeenMs.clear();
  delay.reset();
});

const { publicKey: _, ...shown } = credentials;
notifySupervisor({ apns: { url: gateway.url, ca: gateway.ca, ...shown } });
