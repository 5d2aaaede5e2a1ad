import {
  AggregatorRegistry,
  Counter,
  collectDefaultMetrics,
  Gauge,
  Histogram,
  type MetricObjectWithValues,
  type MetricValue,
  Registry,
} from 'prom-client';
import { isBearer } from './crypto.ts';
import { isLoopback } from './domain/addresses.ts';
import { connectorIds } from './domain/labels.ts';
import {
  appCounter,
  DurationHistogram,
  gatewayBuckets,
  type OperationMetrics,
  operationMetricsIn,
} from './process/operation-metrics.ts';

/**
 * All metrics (protocol/operation.md#metrics). The connector is a label, not part of a name. Worker
 * threads count some of the metrics (`ThreadMetrics`). Labels never contain a token, phone number
 * or address.
 */
export interface Metrics extends OperationMetrics, Omit<ThreadMetrics, 'registry'> {
  registry: Registry;
  /** When the metrics of this process were last read, in epoch ms; null before the first read. */
  lastScrape: { scrapedAtMs: number | null };
  pushAccepted: Counter<'app'>;
  recipients: Counter<'app' | 'connector' | 'outcome'>;
  recipientsRepeated: Counter<'connector' | 'reason'>;
  redrivenRecipients: Counter<'app'>;
  gatewayRequestSeconds: DurationHistogram<'connector'>;
  gatewayResponses: Counter<'connector' | 'status' | 'reason'>;
  receipts: Counter<'connector' | 'event'>;
  pushEvents: Counter<'type'>;
  messages: Counter<'kind' | 'outcome'>;
  messageSettingErrors: Counter<'kind' | 'reason'>;
  smsReceipts: Counter<'outcome'>;
  webhookDeliveries: Counter<'outcome'>;
  webhookWaiting: Gauge<'app'>;
  webhookOldestSeconds: Gauge<'app'>;
  webhooksOff: Gauge<'app'>;
  hooks: Counter<'hook' | 'outcome'>;
  smsBreakerOpen: Gauge<'app' | 'prefix'>;
  breakerState: Gauge<'connector' | 'app' | 'profile'>;
  queueDepth: Gauge<'queue'>;
  queueOldestSeconds: Gauge<'queue'>;
  pushFirstSendSeconds: Histogram;
  pushCompleteSeconds: Histogram;
  workerThreads: Gauge<'state'>;
  httpRequestSeconds: Histogram<'route' | 'method' | 'status'>;
  bodyBytes: Gauge;
  channelConnections: Gauge;
}

/** Metrics that each worker thread counts in its own registry. */
export type ThreadMetrics = ReturnType<typeof createThreadMetrics>;

/** Values of a registry as plain data, which can cross threads. */
export type MetricValues = MetricObjectWithValues<MetricValue<string>>[];

const firstSendBuckets = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];
const completeBuckets = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 14_400];
const httpBuckets = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/**
 * Interval at which the lag of the event loop is measured. Each measurement wakes an idle process;
 * the 10 ms of prom-client would cost 0.5 % of a core. A measured lag includes the interval, and
 * the alert fires at ten times this value.
 */
const lagSampleMs = 50;

/** Kind and version of a process, for `carillon_build_info`. */
export interface BuildInfo {
  process: 'api' | 'dispatcher';
  version: string;
}

/** Creates the metrics of one process. */
export function createMetrics(build?: BuildInfo): Metrics {
  const metrics = openMetrics();
  if (build) metrics.buildInfo.set({ ...build, node: process.version }, 1);
  // Creates each series with the value 0. Otherwise `rate` would miss the first event of a series.
  for (const kind of ['mail', 'sms', 'voice']) {
    for (const outcome of ['sent', 'kept', 'retried', 'failed'])
      metrics.messages.inc({ kind, outcome }, 0);
    metrics.redrivenMessages.inc({ kind }, 0);
  }
  for (const outcome of ['delivered', 'retried', 'failed'])
    metrics.webhookDeliveries.inc({ outcome }, 0);
  for (const event of ['sent', 'acknowledged', 'displaced', 'expired'])
    metrics.channelMessages.inc({ event }, 0);
  for (const outcome of ['started', 'caught_up', 'missed', 'held_back'])
    metrics.recurringStarts.inc({ outcome }, 0);
  for (const database of ['primary', 'standby']) metrics.scans.inc({ database }, 0);
  for (const connector of connectorIds) metrics.recipientsRetried.inc({ connector }, 0);
  return metrics;
}

function openMetrics(): Metrics {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: lagSampleMs });
  return {
    registry,
    lastScrape: { scrapedAtMs: null },
    ...countersIn(registers),
    ...gaugesIn(registers),
    ...operationMetricsIn(registers),
    ...threadMetricsIn(registers),
    gatewayRequestSeconds: new DurationHistogram({
      name: 'carillon_gateway_request_seconds',
      help: 'Time from a request to a gateway until its response',
      label: 'connector',
      registers,
    }),
    pushFirstSendSeconds: new Histogram({
      name: 'carillon_push_first_send_seconds',
      help: 'Time from the acceptance of a push, its push_time or the end of its last requested wait until its first send',
      buckets: firstSendBuckets,
      registers,
    }),
    pushCompleteSeconds: new Histogram({
      name: 'carillon_push_complete_seconds',
      help: 'Time from the acceptance of a push or its push_time until it is done, including all waits',
      buckets: completeBuckets,
      registers,
    }),
    httpRequestSeconds: new Histogram({
      name: 'carillon_http_request_seconds',
      help: 'Time until a request is answered',
      labelNames: ['route', 'method', 'status'],
      buckets: httpBuckets,
      registers,
    }),
  };
}

/** Creates the metrics of a worker thread. */
export function createThreadMetrics() {
  const registry = new Registry();
  return { registry, ...threadMetricsIn([registry]) };
}

/**
 * The main thread has these metrics too, so that their names are visible before a thread has
 * counted anything.
 */
const threadMetricsIn = (registers: Registry[]) => ({
  http2Connections: new Gauge({
    name: 'carillon_http2_connections',
    help: 'Open HTTP/2 connections to gateways in all threads',
    labelNames: ['connector'],
    registers,
  }),
  http2Streams: new Gauge({
    name: 'carillon_http2_streams',
    help: 'HTTP/2 requests in flight to gateways in all threads',
    labelNames: ['connector'],
    registers,
  }),
  http2Events: new Counter({
    name: 'carillon_http2_events_total',
    help: 'Events of HTTP/2 connections and streams to gateways',
    labelNames: ['connector', 'event'],
    registers,
  }),
  http2RoundTripSeconds: new Histogram({
    name: 'carillon_http2_round_trip_seconds',
    help: 'Time from our SETTINGS to their acknowledgement, once per HTTP/2 connection',
    labelNames: ['connector'],
    buckets: gatewayBuckets,
    registers,
  }),
  poolWaitSeconds: new DurationHistogram({
    name: 'carillon_db_pool_wait_seconds',
    help: 'Time that calls waited for a database connection of a pool, including the wait for the turn of their app',
    label: 'pool',
    registers,
  }),
});

/** Returns the sums of several registries. */
export const mergedMetrics = (values: MetricValues[]): Promise<MetricValues> =>
  AggregatorRegistry.aggregate(values).getMetricsAsJSON();

/** Returns the metrics of a registry as text for a scrape. The values of threads are added. */
export async function textOfMetrics(registry: Registry, threads: MetricValues[]): Promise<string> {
  const names = new Set(threads.flatMap((values) => values.map(({ name }) => name)));
  const own = (await registry.getMetricsAsJSON()).filter(({ name }) => names.has(name));
  const merged = AggregatorRegistry.aggregate([own, ...threads]);
  const texts = registry
    .getMetricsAsArray()
    .map(({ name }) => (names.has(name) ? merged : registry).getSingleMetricAsString(name));
  return `${(await Promise.all(texts)).join('\n\n')}\n`;
}

function countersIn(registers: Registry[]) {
  return {
    pushAccepted: appCounter({
      name: 'carillon_push_accepted_total',
      help: 'Pushes accepted',
      labelNames: ['app'],
      registers,
    }),
    recipients: appCounter({
      name: 'carillon_recipients_total',
      help: 'Recipients by outcome',
      labelNames: ['app', 'connector', 'outcome'],
      registers,
    }),
    recipientsRepeated: new Counter({
      name: 'carillon_recipients_repeated_total',
      help: 'Recipients that are sent to again because a request got no response, by the reason of the failed request',
      labelNames: ['connector', 'reason'],
      registers,
    }),
    redrivenRecipients: appCounter({
      name: 'carillon_recipients_redriven_total',
      help: 'Recipients of redrives, which an earlier push did not reach',
      labelNames: ['app'],
      registers,
    }),
    gatewayResponses: new Counter({
      name: 'carillon_gateway_responses_total',
      help: 'Responses of gateways; status 0 means no response',
      labelNames: ['connector', 'status', 'reason'],
      registers,
    }),
    receipts: new Counter({
      name: 'carillon_receipts_total',
      help: 'Receipts of gateways for single devices, including repeated receipts',
      labelNames: ['connector', 'event'],
      registers,
    }),
    pushEvents: new Counter({
      name: 'carillon_push_events_total',
      help: 'Events of pushes that apps reported: received, opened, dismissed; including repeated events',
      labelNames: ['type'],
      registers,
    }),
    messages: new Counter({
      name: 'carillon_messages_total',
      help: 'Mail and SMS by outcome: sent, kept (no provider is configured), retried, failed',
      labelNames: ['kind', 'outcome'],
      registers,
    }),
    messageSettingErrors: new Counter({
      name: 'carillon_message_setting_errors_total',
      help: 'Messages that a provider refused because of a setting of the operator, by the code of the reason: credentials, balance, signature, template and others',
      labelNames: ['kind', 'reason'],
      registers,
    }),
    smsReceipts: new Counter({
      name: 'carillon_sms_receipts_total',
      help: 'SMS by the receipt of the provider: delivered, undelivered',
      labelNames: ['outcome'],
      registers,
    }),
    webhookWaiting: new Gauge({
      name: 'carillon_webhook_waiting',
      help: 'Deliveries that wait for webhooks that are switched on, by app (empty for the service). All processes show the same sample',
      labelNames: ['app'],
      registers,
    }),
    webhookOldestSeconds: new Gauge({
      name: 'carillon_webhook_oldest_seconds',
      help: 'Age of the oldest of these deliveries',
      labelNames: ['app'],
      registers,
    }),
    webhooksOff: new Gauge({
      name: 'carillon_webhooks_off',
      help: 'Webhooks that the service switched off, because they answered 410 or failed for a day',
      labelNames: ['app'],
      registers,
    }),
    webhookDeliveries: new Counter({
      name: 'carillon_webhook_deliveries_total',
      help: 'Attempts to deliver events to webhooks by outcome: delivered, retried, failed',
      labelNames: ['outcome'],
      registers,
    }),
    hooks: new Counter({
      name: 'carillon_hooks_total',
      help: 'Calls of user hooks at function hosts by outcome: ok, refused, failed, dropped (too many at the same time)',
      labelNames: ['hook', 'outcome'],
      registers,
    }),
  } as const;
}

function gaugesIn(registers: Registry[]) {
  return {
    smsBreakerOpen: new Gauge({
      name: 'carillon_sms_breaker_open',
      help: '1 if messages to a country are refused because almost no code sent to it was used',
      labelNames: ['app', 'prefix'],
      registers,
    }),
    breakerState: new Gauge({
      name: 'carillon_breaker_state',
      help: 'State of a circuit breaker: 0 closed, 1 half-open, 2 open',
      labelNames: ['connector', 'app', 'profile'],
      registers,
    }),
    queueDepth: new Gauge({
      name: 'carillon_queue_depth',
      help: 'Jobs that are ready to run',
      labelNames: ['queue'],
      registers,
    }),
    queueOldestSeconds: new Gauge({
      name: 'carillon_queue_oldest_seconds',
      help: 'Waiting time of the oldest job that is ready to run',
      labelNames: ['queue'],
      registers,
    }),
    workerThreads: new Gauge({
      name: 'carillon_worker_threads',
      help: 'Worker threads of this dispatcher',
      labelNames: ['state'],
      registers,
    }),
    bodyBytes: new Gauge({
      name: 'carillon_body_bytes',
      help: 'Bytes of request bodies in memory',
      registers,
    }),
    channelConnections: new Gauge({
      name: 'carillon_channel_connections',
      help: 'Devices connected to this process',
      registers,
    }),
  } as const;
}

/** Caller of a scrape. */
export interface Scrape {
  headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** Address of the peer; undefined for a Unix socket. */
  socketAddress: string | undefined;
}

/**
 * True if a caller may read `/metrics`. If METRICS_TOKEN is set, the caller must send it. Otherwise
 * only callers on this machine may read it. A call with forwarding headers is refused then, because
 * a proxy on this machine may forward calls from elsewhere.
 */
export function mayReadMetrics(
  { headers, socketAddress }: Scrape,
  token: string | undefined,
): boolean {
  const { authorization } = headers;
  if (token !== undefined)
    return typeof authorization === 'string' && isBearer(authorization, token);
  const isForwarded = ['x-forwarded-for', 'forwarded', 'x-real-ip', 'via'].some(
    (name) => headers[name] !== undefined,
  );
  return !isForwarded && (socketAddress === undefined || isLoopback(socketAddress));
}

/** Returns the error text if a caller may not read the metrics. */
export const metricsRefusal = (token: string | undefined): string =>
  token === undefined
    ? 'Without METRICS_TOKEN, only callers on the same machine may read the metrics.'
    : 'Unauthorized.';
