import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import { appCounter } from './metric-kinds.ts';

const planningBuckets = [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900];

/** Metrics of how processes, their database and their duties fare. */
export type OperationMetrics = ReturnType<typeof operationMetricsIn>;

/** Creates these metrics; their labels have small sets of values, and counters by app those of `appCounter`. */
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
    ...dutyMetrics(gauge, counter),
    ...threadMetrics(gauge, counter),
    ...recurringCounters(counter),
    ...smsCounters(counter),
    channelMessages: counter(
      'channel_messages_total',
      'Messages on the device channel: sent (as often as they were), acknowledged, displaced (dropped for newer ones), expired (deleted without an acknowledgement)',
      ['event'],
    ),
    scans: counter('scans_total', 'Scans for the devices of pushes, by the database that served them', [
      'database',
    ]),
    plannedRecipients: counter('planned_recipients_total', 'Recipients written into batches'),
    planningSeconds: new Histogram({
      name: 'carillon_planning_seconds',
      help: 'Time of one turn of planning',
      buckets: planningBuckets,
      registers,
    }),
    recipientsRetried: counter(
      'recipients_retried_total',
      'Recipients that wait for another attempt because the gateway was busy or did not answer',
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

type MakeGauge = <L extends string = never>(name: string, help: string, labelNames?: L[]) => Gauge<L>;
type MakeCounter = <L extends string = never>(name: string, help: string, labelNames?: L[]) => Counter<L>;

function processMetrics(gauge: MakeGauge, counter: MakeCounter) {
  return {
    buildInfo: gauge('build_info', '1; the labels name the kind of process and its versions', [
      'process',
      'version',
      'node',
    ]),
    schemaPending: gauge('schema_pending', 'Migrations that this process needs and the database lacks'),
    schemaNewer: gauge('schema_newer', 'Migrations of a newer version that the database has'),
    poolConnections: gauge(
      'db_pool_connections',
      'Database connections by pool: used, idle, limit; waiting are calls without one',
      ['pool', 'state'],
    ),
    databaseErrors: counter('db_errors_total', 'Statements that failed, by kind', ['kind']),
    standbyLag: gauge('standby_lag_seconds', 'Time by which the standby is behind; 0 without one'),
    httpInFlight: gauge('http_in_flight', 'Requests that are being answered'),
    refusals: counter('http_refusals_total', 'Refused calls by error code', ['code']),
  };
}

/** Gauges of the 100 apps or profiles each that an operator has to look at first; shared state too. */
function accountGauges(gauge: MakeGauge) {
  const profile = ['connector', 'app', 'profile'] as const;
  return {
    credentialExpiry: gauge(
      'gateway_credential_expiry_timestamp_seconds',
      'When credentials of a profile end; only those that say so, the 100 that end first',
      [...profile],
    ),
    profileRotations: gauge(
      'profile_rotation',
      '1 for the state of each rotation of credentials that is open or ended within a day (100 at most)',
      [...profile, 'state'],
    ),
    oldSecretValues: gauge(
      'secret_old_values',
      'Encrypted values that are not under the first key of CARILLON_SECRET, while it has several keys',
      ['column'],
    ),
    quotaUsedUp: gauge(
      'gateway_quota_used_up',
      '1 if a gateway takes no more messages of a profile today (in China), else 0; for the profiles of carillon_gateway_day_recipients',
      [...profile],
    ),
    gatewayDayRecipients: gauge(
      'gateway_day_recipients',
      'Recipients that a gateway accepted today (in China); of 100 profiles, those with a used-up quota first',
      [...profile],
    ),
    keptTokens: gauge(
      'tokens_kept',
      'Invalid tokens that a push of the last day kept because most of a profile were called so; of the 100 newest such pushes',
      [...profile],
    ),
    capUsed: gauge(
      'app_cap_used_ratio',
      'Used part of the daily recipient cap (1 is all of it), of the 100 apps that used most',
      ['app'],
    ),
  };
}

/** Gauges of people and their decisions; shared state too. */
function peopleGauges(gauge: MakeGauge) {
  return {
    approvalsWaiting: gauge(
      'approvals_waiting',
      'Pushes that wait for the approval of a second person; of 100 apps, those that wait longest',
      ['app'],
    ),
    consoleTokens: gauge(
      'console_tokens',
      'Tokens of the admin API: valid, of those ending (within 30 days), and expired',
      ['state'],
    ),
  };
}

/** Gauges of state that all processes share: each shows the same reading, so `max` is right and `sum` is not. */
function sharedStateGauges(gauge: MakeGauge) {
  return {
    freezes: gauge('freezes', 'Freezes that hold pushes, by scope: of the whole service, and of apps', [
      'scope',
    ]),
    queueJobs: gauge('queue_jobs', 'Jobs of a queue: ready, delayed (not yet due), active', [
      'queue',
      'state',
    ]),
    pushesOpen: gauge('pushes_open', 'Pushes that are not done', ['state']),
    pushOldestOpen: gauge(
      'push_oldest_open_seconds',
      'Age of the oldest push that is queued or being sent, with all its waits (local time, quiet hours, a freeze)',
    ),
    scheduledPushes: gauge('scheduled_pushes', 'Pushes that wait for their push_time'),
    scheduledLag: gauge('scheduled_lag_seconds', 'Time by which the next scheduled push is late'),
    sharedReadingAge: gauge(
      'shared_reading_age_seconds',
      'Age of the reading that the gauges of queues and pushes show',
    ),
  };
}

/** Recurring pushes, and recipients whose own time and limits decide. */
const recurringCounters = (counter: MakeCounter) => ({
  recurringStarts: counter(
    'recurring_starts_total',
    'Times of recurring pushes: started, caught_up (late), missed, held_back (too many open pushes)',
    ['outcome'],
  ),
  deviceCapped: counter(
    'device_capped_recipients_total',
    'Recipients that had their pushes of the day (`devicePushesPerDay`)',
    ['app'],
  ),
  quietRecipients: counter(
    'quiet_hours_recipients_total',
    'Recipients within their quiet hours: `waiting` for the end, or `expired` since their push expires before it',
    ['app', 'outcome'],
  ),
  localRecipients: counter(
    'local_time_recipients_total',
    'Recipients of pushes at local time: `due` at the time of their zone, `late` where it had passed before the call',
    ['app', 'timing'],
  ),
});

/** Their ratio is the share of codes that are used; SMS pumping lowers it. */
const smsCounters = (counter: MakeCounter) => ({
  smsRequests: counter(
    'sms_requests_total',
    'SMS and voice messages asked for, by what they are for and accepted or the kind of refusal',
    ['app', 'type', 'outcome'],
  ),
  smsVerifications: counter('sms_verifications_total', 'Codes that were tried: right or wrong', [
    'app',
    'outcome',
  ]),
  smsBreakerTrips: counter(
    'sms_breaker_trips_total',
    'How often messages to a country were broken off because hardly any code sent there was used',
    ['app', 'prefix'],
  ),
});

/** What was undeliverable: sent again, and kept to be processed again. */
const redriveCounters = (counter: MakeCounter) => ({
  redrivenMessages: counter(
    'messages_redriven_total',
    'Mail and SMS that an operator had sent again together',
    ['kind'],
  ),
  refusedReceiptCalls: counter(
    'receipt_calls_refused_total',
    'Calls of gateways that were no receipts or had a wrong signature; kept: they can be processed again',
    ['connector', 'kept'],
  ),
});

const dutyMetrics = (gauge: MakeGauge, counter: MakeCounter) => ({
  dutyLastSuccess: gauge(
    'duty_last_success_timestamp_seconds',
    'When a background duty of this dispatcher last succeeded; its start before that',
    ['duty'],
  ),
  dutyFailures: counter('duty_failures_total', 'Passes of background duties that failed', ['duty']),
  dutyRows: counter('duty_rows_total', 'Rows that background duties handled', ['duty']),
});

const threadMetrics = (gauge: MakeGauge, counter: MakeCounter) => ({
  workerBusySeconds: counter(
    'worker_busy_seconds_total',
    'Time that event loops of worker threads were busy',
  ),
  workerHeapBytes: gauge(
    'worker_heap_bytes',
    'Heap of worker threads: used by all of them, used by the largest one, and the limit of one',
    ['kind'],
  ),
});
