/** Prometheus alert. Its runbook is the section with its name in docs/operate/alerts.md. */
export interface Alert {
  name: string;
  /** `page` wakes someone. `ticket` waits for working hours. */
  severity: 'page' | 'ticket';
  expr: string;
  /**
   * Threshold, if `expr` compares the age of a fault with a threshold. The fault must last for this
   * time, unless a scene makes it look old.
   */
  lastsSeconds?: number;
  /** Time for which the expression must be true. */
  for: string;
  summary: string;
}

const calls = 'route!~"/healthz|/readyz|/metrics|none"';

const processes: Alert[] = [
  {
    name: 'CarillonDown',
    severity: 'page',
    expr: 'up{job=~"carillon-.+"} == 0',
    for: '2m',
    summary: '{{ $labels.job }} {{ $labels.instance }} does not answer',
  },
  {
    name: 'CarillonNoDispatcher',
    severity: 'page',
    expr: 'absent(up{job="carillon-dispatcher"} == 1)',
    for: '1m',
    summary: 'No dispatcher runs: nothing is sent',
  },
  {
    name: 'CarillonSchemaPending',
    severity: 'page',
    expr: 'max by (job, instance) (carillon_schema_pending) > 0',
    for: '5m',
    summary: '{{ $labels.instance }} needs migrations that the database lacks',
  },
  {
    name: 'CarillonVersionsMixed',
    severity: 'ticket',
    expr: 'count(count by (version) (carillon_build_info)) > 1',
    for: '1h',
    summary: 'Processes of {{ $value }} versions run',
  },
  {
    name: 'CarillonEventLoopSlow',
    severity: 'ticket',
    expr: 'max by (job, instance) (nodejs_eventloop_lag_p99_seconds{job=~"carillon-.+"}) > 0.5',
    for: '10m',
    summary: 'The event loop of {{ $labels.instance }} is {{ $value }} s late',
  },
  {
    name: 'CarillonOpenFiles',
    severity: 'page',
    expr: 'max by (job, instance) (process_open_fds{job=~"carillon-.+"} / process_max_fds{job=~"carillon-.+"}) > 0.8',
    for: '5m',
    summary: '{{ $labels.instance }} soon reaches its limit of open files',
  },
  {
    name: 'CarillonDispatcherMemory',
    severity: 'ticket',
    expr: 'max by (instance) (process_resident_memory_bytes{job="carillon-dispatcher"}) > 450e6',
    for: '15m',
    summary: 'The dispatcher {{ $labels.instance }} uses {{ $value | humanize1024 }}B',
  },
];

const callers: Alert[] = [
  {
    name: 'CarillonApiErrors',
    severity: 'page',
    expr: `(sum(rate(carillon_http_request_seconds_count{status=~"5..",${calls}}[5m])) or vector(0)) / sum(rate(carillon_http_request_seconds_count{${calls}}[5m])) > 0.01`,
    for: '5m',
    summary: '{{ $value | humanizePercentage }} of the calls fail',
  },
  {
    name: 'CarillonApiSlow',
    severity: 'ticket',
    expr: 'histogram_quantile(0.95, sum by (le) (rate(carillon_http_request_seconds_bucket{route=~"/1.1/.*",route!~".*(login|users).*"}[5m]))) > 1',
    for: '10m',
    summary: '5 % of the calls take longer than {{ $value }} s',
  },
  {
    name: 'CarillonChannelDrop',
    severity: 'page',
    expr: 'sum(carillon_channel_connections{job="carillon-api"}) < 0.5 * sum(carillon_channel_connections{job="carillon-api"} offset 10m) and sum(carillon_channel_connections{job="carillon-api"} offset 10m) > 100',
    for: '5m',
    summary: 'More than half of the connected devices are gone',
  },
  {
    name: 'CarillonSmsPumping',
    severity: 'page',
    expr: 'max by (app, prefix) (carillon_sms_breaker_open) == 1',
    for: '1m',
    summary:
      'Messages of {{ $labels.app }} to {{ $labels.prefix }} are refused: hardly any code is used',
  },
  {
    name: 'CarillonMessagesFail',
    severity: 'page',
    expr: 'sum by (kind) (rate(carillon_messages_total{outcome="failed"}[10m])) / sum by (kind) (rate(carillon_messages_total[10m])) > 0.1',
    for: '10m',
    summary: '{{ $value | humanizePercentage }} of the messages of kind {{ $labels.kind }} fail',
  },
];

const delivery: Alert[] = [
  {
    name: 'CarillonFirstSendSlow',
    severity: 'page',
    expr: 'histogram_quantile(0.95, sum by (le) (rate(carillon_push_first_send_seconds_bucket[10m]))) > 5',
    for: '10m',
    summary: '5 % of the pushes wait longer than {{ $value }} s for their first send',
  },
  {
    name: 'CarillonQueueOld',
    severity: 'page',
    // Excludes a draining queue: the batches of a push to millions may wait for minutes.
    expr: 'max by (queue) (carillon_queue_oldest_seconds) > 60 unless deriv((max by (queue) (carillon_queue_depth))[5m:15s]) < 0',
    for: '2m',
    summary: 'The oldest job of {{ $labels.queue }} waits for {{ $value }} s',
  },
  {
    name: 'CarillonQueueGrows',
    severity: 'ticket',
    expr: 'deriv((max by (queue) (carillon_queue_depth))[30m:1m]) > 0 and max by (queue) (carillon_queue_depth) > 10000',
    for: '30m',
    summary: '{{ $labels.queue }} grows: add dispatchers',
  },
  {
    name: 'CarillonSchedulerLate',
    severity: 'page',
    // The second part covers a locked table or failing statements, because the lag is unknown then.
    expr: 'max(carillon_scheduled_lag_seconds) > 10 or time() - max(carillon_duty_last_success_timestamp_seconds{duty="scheduler"}) > 60',
    for: '1m',
    summary: 'Scheduled pushes are {{ $value }} s late, or their scheduler has stood for so long',
  },
  {
    name: 'CarillonBreakerOpen',
    severity: 'page',
    expr: 'max by (connector, app, profile) (carillon_breaker_state) == 2',
    for: '5m',
    summary:
      'The gateway of {{ $labels.connector }} fails for profile {{ $labels.profile }} of {{ $labels.app }}',
  },
  {
    name: 'CarillonDeliveryFalls',
    severity: 'page',
    expr: 'sum by (connector) (rate(carillon_recipients_total{outcome="sent"}[15m])) / sum by (connector) (rate(carillon_recipients_total[15m])) < 0.5 and sum by (connector) (increase(carillon_recipients_total[15m])) > 1000',
    for: '15m',
    summary:
      'Only {{ $value | humanizePercentage }} of the recipients of {{ $labels.connector }} are sent to',
  },
  {
    name: 'CarillonCredentialsRefused',
    severity: 'page',
    expr: 'sum by (connector) (rate(carillon_gateway_responses_total{status=~"401|403"}[10m])) / sum by (connector) (rate(carillon_gateway_responses_total[10m])) > 0.5',
    for: '5m',
    summary: 'The gateway of {{ $labels.connector }} refuses credentials',
  },
  {
    name: 'CarillonInvalidTokensJump',
    severity: 'ticket',
    expr: 'sum by (app) (rate(carillon_recipients_total{outcome="invalid_token"}[1h])) / sum by (app) (rate(carillon_recipients_total[1h])) > 0.3 and sum by (app) (increase(carillon_recipients_total[1h])) > 1000',
    for: '15m',
    summary: '{{ $value | humanizePercentage }} of the tokens of {{ $labels.app }} are invalid',
  },
  {
    name: 'CarillonTokensKept',
    severity: 'ticket',
    expr: 'max by (connector, app, profile) (carillon_tokens_kept) > 0',
    for: '1m',
    summary:
      'Most tokens of {{ $labels.connector }} are called invalid, and devices are kept: profile {{ $labels.profile }} of {{ $labels.app }}',
  },
  {
    name: 'CarillonCertificateEnds',
    severity: 'ticket',
    expr: 'min by (connector, app, profile) (carillon_gateway_credential_expiry_timestamp_seconds) - time() < 30 * 86400',
    for: '1h',
    summary:
      'Credentials of {{ $labels.connector }} end in {{ $value | humanizeDuration }}: profile {{ $labels.profile }} of {{ $labels.app }}',
  },
  {
    name: 'CarillonQuotaUsedUp',
    severity: 'ticket',
    expr: 'max by (connector, app, profile) (carillon_gateway_quota_used_up) == 1',
    for: '5m',
    summary:
      'The gateway of {{ $labels.connector }} takes no more messages today: profile {{ $labels.profile }} of {{ $labels.app }}',
  },
  {
    name: 'CarillonCapNear',
    severity: 'ticket',
    expr: 'max by (app) (carillon_app_cap_used_ratio) > 0.9',
    for: '5m',
    summary: '{{ $labels.app }} used {{ $value | humanizePercentage }} of its daily recipient cap',
  },
  {
    name: 'CarillonWebhookBehind',
    severity: 'ticket',
    expr: 'max by (app) (carillon_webhook_oldest_seconds) > 3600',
    lastsSeconds: 3600,
    for: '10m',
    summary: 'Events for a webhook of {{ $labels.app }} wait for {{ $value | humanizeDuration }}',
  },
  {
    name: 'CarillonWebhookOff',
    severity: 'ticket',
    expr: 'max by (app) (carillon_webhooks_off) > 0',
    for: '5m',
    summary: '{{ $value }} webhooks of {{ $labels.app }} were switched off, because they failed',
  },
];

const database: Alert[] = [
  {
    name: 'CarillonPoolFull',
    severity: 'page',
    expr: 'min_over_time((max by (instance, pool) (carillon_db_pool_connections{state="waiting"}))[5m:30s]) > 0',
    for: '5m',
    summary: 'Calls of {{ $labels.instance }} wait for connections of the pool {{ $labels.pool }}',
  },
  {
    name: 'CarillonDatabaseErrors',
    severity: 'page',
    expr: 'sum by (kind) (rate(carillon_db_errors_total{kind=~"unreachable|other"}[5m])) > 0.1',
    for: '5m',
    summary: 'Statements fail: {{ $labels.kind }}',
  },
  {
    name: 'CarillonDutyStands',
    severity: 'ticket',
    expr: 'time() - max by (duty) (carillon_duty_last_success_timestamp_seconds) > 1800',
    lastsSeconds: 1800,
    for: '5m',
    summary:
      'The background job {{ $labels.duty }} has not succeeded on any dispatcher for half an hour',
  },
  {
    name: 'CarillonStandbyLag',
    severity: 'ticket',
    expr: 'max(carillon_standby_lag_seconds) > 30',
    for: '5m',
    summary: 'The standby is {{ $value }} s behind; the primary serves its scans',
  },
  {
    name: 'CarillonReadingOld',
    severity: 'ticket',
    expr: 'min(carillon_shared_reading_age_seconds) > 120',
    lastsSeconds: 120,
    for: '5m',
    summary: 'The gauges of the queues are {{ $value }} s old',
  },
];

/** All alerts by group. */
export const alertGroups: Readonly<Record<string, readonly Alert[]>> = {
  processes,
  callers,
  delivery,
  database,
};

/** Expressions that dashboards and reports use often, by the name of the recorded series. */
export const recordings: Readonly<Record<string, string>> = {
  'carillon:http_requests:rate5m': `sum by (route, status) (rate(carillon_http_request_seconds_count{${calls}}[5m]))`,
  'carillon:recipients:rate5m': 'sum by (connector, outcome) (rate(carillon_recipients_total[5m]))',
  'carillon:first_send_seconds:p95_10m':
    'histogram_quantile(0.95, sum by (le) (rate(carillon_push_first_send_seconds_bucket[10m])))',
  'carillon:queue_oldest_seconds:max': 'max by (queue) (carillon_queue_oldest_seconds)',
  'carillon:cpu_seconds_per_1000_recipients:rate5m':
    '1000 * sum(rate(process_cpu_seconds_total{job="carillon-dispatcher"}[5m])) / sum(rate(carillon_recipients_total[5m]))',
};
