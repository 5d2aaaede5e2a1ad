import {
  Counter,
  type CounterConfiguration,
  Gauge,
  Histogram,
  type LabelValues,
  type MetricObjectWithValues,
  type MetricValueWithName,
  type Registry,
} from 'prom-client';

/** Upper limits of the histogram buckets for requests to gateways, in seconds. */
export const gatewayBuckets = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** Durations counted by bucket. Plain data, because it crosses threads. */
export interface DurationCounts {
  /** Counts by bucket of `gatewayBuckets`. The last count is for longer durations. */
  counts: number[];
  sumSeconds: number;
}

export const noDurations = (): DurationCounts => ({
  counts: new Array<number>(gatewayBuckets.length + 1).fill(0),
  sumSeconds: 0,
});

/** Counts a duration. */
export function addDuration(durations: DurationCounts, seconds: number): void {
  let bucket = 0;
  while (bucket < gatewayBuckets.length && seconds > (gatewayBuckets[bucket] ?? 0)) bucket += 1;
  durations.counts[bucket] = (durations.counts[bucket] ?? 0) + 1;
  durations.sumSeconds += seconds;
}

/** Adds `more` to `durations` in place. */
function addDurations(durations: DurationCounts, more: DurationCounts): void {
  for (const [bucket, count] of more.counts.entries())
    durations.counts[bucket] = (durations.counts[bucket] ?? 0) + count;
  durations.sumSeconds += more.sumSeconds;
}

type Values = MetricObjectWithValues<MetricValueWithName<string>>;

/**
 * Histogram of durations that were counted elsewhere, for example in threads. A batch adds its sums
 * once, which is cheaper than an observation per request.
 */
export class DurationHistogram<Label extends string = string> extends Histogram<Label> {
  readonly #name: string;
  readonly #label: Label;
  /** Histogram without values. `get` copies its name, help text and type. */
  readonly #empty: Histogram;
  readonly #byLabel = new Map<string, DurationCounts>();

  constructor({
    label,
    ...options
  }: {
    name: string;
    help: string;
    label: Label;
    registers: ConstructorParameters<typeof Histogram>[0]['registers'];
  }) {
    const form = { labelNames: [label], buckets: gatewayBuckets };
    super({ ...options, ...form });
    this.#name = options.name;
    this.#label = label;
    this.#empty = new Histogram({ ...options, ...form, registers: [] });
  }

  /** Adds durations for a label value. */
  add(value: string, durations: DurationCounts): void {
    const existing = this.#byLabel.get(value) ?? noDurations();
    addDurations(existing, durations);
    this.#byLabel.set(value, existing);
  }

  override async get(): Promise<Values> {
    const values = [...this.#byLabel].flatMap(([value, durations]) =>
      this.#values(value, durations),
    );
    return { ...(await this.#empty.get()), values };
  }

  /** prom-client calls this method instead of `get` when it writes the metrics as text. */
  getForPromString(): Promise<Values> {
    return this.get();
  }

  #values(value: string, { counts, sumSeconds }: DurationCounts): MetricValueWithName<string>[] {
    const own = { [this.#label]: value };
    let total = 0;
    const buckets = counts.map((count, bucket) => {
      total += count;
      const labels = { le: gatewayBuckets[bucket] ?? '+Inf', ...own };
      return { labels, value: total, metricName: `${this.#name}_bucket` };
    });
    return [
      ...buckets,
      { labels: own, value: sumSeconds, metricName: `${this.#name}_sum` },
      { labels: own, value: total, metricName: `${this.#name}_count` },
    ];
  }
}

/**
 * Maximum number of apps with their own series. Each series needs memory in this process and in
 * Prometheus.
 */
const maxApps = 1000;
/** Label value for all other apps. */
const otherApps = 'other';

/**
 * Creates a counter with a label `app`. Only the first `maxApps` apps that the process counts get
 * their own value; all other apps share the value `other`.
 */
export function appCounter<T extends string>(options: CounterConfiguration<T>): Counter<T> {
  const counter = new Counter<T>(options);
  const inc: (labels: LabelValues<T>, value?: number) => void = counter.inc.bind(counter);
  const apps = new Set<unknown>();
  const hasOwn = (app: unknown): boolean => {
    if (apps.has(app)) return true;
    if (apps.size >= maxApps) return false;
    apps.add(app);
    return true;
  };
  const byApp = (labels: LabelValues<T> & { app?: unknown }, value?: number): void =>
    inc(hasOwn(labels.app) ? labels : { ...labels, app: otherApps }, value);
  // prom-client sets `inc` on each counter, so a subclass cannot override it.
  return Object.assign(counter, { inc: byApp });
}

const planningBuckets = [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900];

/** Metrics about processes, their database and their background jobs. */
export type OperationMetrics = ReturnType<typeof operationMetricsIn>;

/** Creates these metrics. Their labels have few values; counters by app use `appCounter`. */
export function operationMetricsIn(registers: Registry[]) {
  const gauge = <L extends string = never>(name: string, help: string, labelNames: L[] = []) =>
    new Gauge<L>({ name: `carillon_${name}`, help, labelNames, registers });
  const counter = makeCounterIn(registers);
  return {
    ...processMetrics(gauge, counter),
    ...sharedStateGauges(gauge),
    ...accountGauges(gauge),
    ...peopleGauges(gauge),
    ...redriveCounters(counter),
    ...backgroundJobMetrics(gauge, counter),
    ...threadMetrics(gauge, counter),
    ...recurringCounters(counter),
    ...smsCounters(counter),
    channelMessages: counter(
      'channel_messages_total',
      'Messages on the device channel: sent (including repeats), acknowledged, displaced (evicted by newer messages), expired (deleted without an acknowledgement)',
      ['event'],
    ),
    scans: counter('scans_total', 'Scans for the devices of pushes, by database', ['database']),
    plannedRecipients: counter('planned_recipients_total', 'Recipients written into batches'),
    planningSeconds: new Histogram({
      name: 'carillon_planning_seconds',
      help: 'Duration of one step of planning',
      buckets: planningBuckets,
      registers,
    }),
    recipientsRetried: counter(
      'recipients_retried_total',
      'Recipients that wait for another attempt because the gateway was busy or did not respond',
      ['connector'],
    ),
  } as const;
}

const makeCounterIn =
  (registers: Registry[]): MakeCounter =>
  <L extends string = never>(name: string, help: string, labelNames: L[] = []) => {
    const options = { name: `carillon_${name}`, help, labelNames, registers };
    return labelNames.some((label) => label === 'app') ? appCounter(options) : new Counter(options);
  };

type MakeGauge = <L extends string = never>(
  name: string,
  help: string,
  labelNames?: L[],
) => Gauge<L>;
type MakeCounter = <L extends string = never>(
  name: string,
  help: string,
  labelNames?: L[],
) => Counter<L>;

function processMetrics(gauge: MakeGauge, counter: MakeCounter) {
  return {
    buildInfo: gauge(
      'build_info',
      'Always 1; the labels contain the kind of process and its versions',
      ['process', 'version', 'node'],
    ),
    schemaPending: gauge(
      'schema_pending',
      'Migrations that this process needs but the database does not have',
    ),
    schemaNewer: gauge('schema_newer', 'Migrations of a newer version that the database has'),
    poolConnections: gauge(
      'db_pool_connections',
      'Database connections by pool: used, idle, limit; and the number of calls that wait for a connection',
      ['pool', 'state'],
    ),
    databaseErrors: counter('db_errors_total', 'Failed statements by kind', ['kind']),
    standbyLag: gauge(
      'standby_lag_seconds',
      'Replication lag of the standby; 0 if there is no standby',
    ),
    httpInFlight: gauge('http_in_flight', 'Requests that are being answered'),
    refusals: counter('http_refusals_total', 'Refused calls by error code', ['code']),
  };
}

/**
 * Gauges of the 100 apps or profiles that an operator should check first. They show state that all
 * processes share.
 */
function accountGauges(gauge: MakeGauge) {
  const profile = ['connector', 'app', 'profile'] as const;
  return {
    credentialExpiry: gauge(
      'gateway_credential_expiry_timestamp_seconds',
      'Expiry time of the credentials of a profile, if they contain one; the 100 profiles that expire first',
      [...profile],
    ),
    profileRotations: gauge(
      'profile_rotation',
      '1 for the state of each rotation of credentials that is open or ended within the last day (at most 100)',
      [...profile, 'state'],
    ),
    oldSecretValues: gauge(
      'secret_old_values',
      'Encrypted values that are not encrypted with the first key of CARILLON_SECRET, if it contains several keys',
      ['column'],
    ),
    quotaUsedUp: gauge(
      'gateway_quota_used_up',
      '1 if a gateway accepts no more messages of a profile today (China time), otherwise 0; for the profiles of carillon_gateway_day_recipients',
      [...profile],
    ),
    gatewayDayRecipients: gauge(
      'gateway_day_recipients',
      'Recipients that a gateway accepted today (China time); at most 100 profiles, profiles with a used-up quota first',
      [...profile],
    ),
    keptTokens: gauge(
      'tokens_kept',
      'Devices with invalid tokens that were kept because a gateway called most tokens of a push invalid; the 100 newest of these pushes within a day',
      [...profile],
    ),
    capUsed: gauge(
      'app_cap_used_ratio',
      'Used share of the daily recipient cap (1 means all of it), for the 100 apps with the highest share',
      ['app'],
    ),
  };
}

/** Gauges about people and their decisions. They show state that all processes share. */
function peopleGauges(gauge: MakeGauge) {
  return {
    approvalsWaiting: gauge(
      'approvals_waiting',
      'Pushes that wait for the approval of a second person, for the 100 apps that wait longest',
      ['app'],
    ),
    consoleTokens: gauge(
      'console_tokens',
      'Tokens of the admin API: valid, ending (valid tokens that expire within 30 days), expired',
      ['state'],
    ),
  };
}

/**
 * Gauges of state that all processes share. Each process reports the same sample, so aggregate with
 * `max`, not with `sum`.
 */
function sharedStateGauges(gauge: MakeGauge) {
  return {
    freezes: gauge('freezes', 'Active freezes by scope: of the whole service, and of apps', [
      'scope',
    ]),
    queueJobs: gauge('queue_jobs', 'Jobs of a queue: ready, delayed (not yet due), active', [
      'queue',
      'state',
    ]),
    pushesOpen: gauge('pushes_open', 'Pushes that are not done', ['state']),
    pushOldestOpen: gauge(
      'push_oldest_open_seconds',
      'Age of the oldest push that is queued or being sent, including all waits (local time, quiet hours, a freeze)',
    ),
    scheduledPushes: gauge('scheduled_pushes', 'Pushes that wait for their push_time'),
    scheduledLag: gauge('scheduled_lag_seconds', 'Delay of the next scheduled push that is due'),
    sharedSampleAge: gauge(
      'shared_reading_age_seconds',
      'Age of the sample that the gauges of queues and pushes report',
    ),
  };
}

/** Counters of recurring pushes, and of recipients with their own times and limits. */
const recurringCounters = (counter: MakeCounter) => ({
  recurringStarts: counter(
    'recurring_starts_total',
    'Runs of recurring pushes: started, caught_up (late), missed, held_back (too many open pushes)',
    ['outcome'],
  ),
  deviceCapped: counter(
    'device_capped_recipients_total',
    'Recipients that already had the maximum pushes of the day (`devicePushesPerDay`)',
    ['app'],
  ),
  quietRecipients: counter(
    'quiet_hours_recipients_total',
    'Recipients in their quiet hours: `waiting` for the end of the hours, or `expired` because the push expires before the end',
    ['app', 'outcome'],
  ),
  localRecipients: counter(
    'local_time_recipients_total',
    'Recipients of pushes at local time: `due` at the time in their zone, `late` if this time had passed before the call',
    ['app', 'timing'],
  ),
});

/** The ratio of the two counters is the share of codes that are used. SMS pumping lowers it. */
const smsCounters = (counter: MakeCounter) => ({
  smsRequests: counter(
    'sms_requests_total',
    'Requested SMS and voice messages, by purpose, and by outcome: accepted or the kind of refusal',
    ['app', 'type', 'outcome'],
  ),
  smsVerifications: counter('sms_verifications_total', 'Submitted codes: right or wrong', [
    'app',
    'outcome',
  ]),
  smsBreakerTrips: counter(
    'sms_breaker_trips_total',
    'Number of times that messages to a country were suspended because almost no code sent to it was used',
    ['app', 'prefix'],
  ),
});

/**
 * Counters of undeliverable messages that were sent again, and of refused receipts that were stored
 * for later.
 */
const redriveCounters = (counter: MakeCounter) => ({
  redrivenMessages: counter(
    'messages_redriven_total',
    'Mail and SMS that operators sent again in bulk',
    ['kind'],
  ),
  refusedReceiptCalls: counter(
    'receipt_calls_refused_total',
    'Calls of gateways that were no receipts or had a wrong signature; kept means that they can be processed again',
    ['connector', 'kept'],
  ),
});

const backgroundJobMetrics = (gauge: MakeGauge, counter: MakeCounter) => ({
  backgroundJobLastSuccess: gauge(
    'duty_last_success_timestamp_seconds',
    'Time when a background job of this dispatcher last succeeded; the start of the process before the first success',
    ['duty'],
  ),
  backgroundJobFailures: counter('duty_failures_total', 'Failed runs of background jobs', ['duty']),
  backgroundJobRows: counter('duty_rows_total', 'Rows that background jobs processed', ['duty']),
});

const threadMetrics = (gauge: MakeGauge, counter: MakeCounter) => ({
  workerBusySeconds: counter(
    'worker_busy_seconds_total',
    'Busy time of the event loops of worker threads',
  ),
  workerHeapBytes: gauge(
    'worker_heap_bytes',
    'Heap of worker threads: used by all threads, used by the largest thread, and limit per thread',
    ['kind'],
  ),
});
