import { calls, type Panel, quantile, rate } from '../grafana.ts';

const acceptedPushes: Panel = {
  title: 'Pushes accepted per second',
  unit: 'reqps',
  queries: [{ expr: rate('carillon_push_accepted_total'), legend: 'accepted' }],
};
const recipients: Panel = {
  title: 'Recipients per second by outcome',
  unit: 'ops',
  queries: [{ expr: rate('carillon_recipients_total', 'outcome'), legend: '{{outcome}}' }],
};
const recipientsByConnector: Panel = {
  title: 'Recipients per second by connector',
  unit: 'ops',
  queries: [{ expr: rate('carillon_recipients_total', 'connector'), legend: '{{connector}}' }],
};
const firstSend: Panel = {
  title: 'Time to the first send',
  unit: 's',
  queries: [0.5, 0.95].map((q) => ({
    expr: quantile(q, 'carillon_push_first_send_seconds'),
    legend: `p${q * 100}`,
  })),
};
const oldest: Panel = {
  title: 'Oldest job by queue',
  unit: 's',
  queries: [{ expr: 'max by (queue) (carillon_queue_oldest_seconds)', legend: '{{queue}}' }],
};
const breakers: Panel = {
  title: 'Breakers (2: open)',
  unit: 'none',
  queries: [
    {
      expr: 'max by (connector, app, profile) (carillon_breaker_state) or vector(0)',
      legend: '{{connector}} {{profile}}',
    },
  ],
};
const apiRate: Panel = {
  title: 'Calls per second',
  unit: 'reqps',
  queries: [
    { expr: rate('carillon_http_request_seconds_count', 'status', calls), legend: '{{status}}' },
  ],
};
const apiErrors: Panel = {
  title: 'Share of calls that fail',
  unit: 'percentunit',
  queries: [
    {
      expr: `(${rate('carillon_http_request_seconds_count', undefined, `status=~"5..",${calls}`)} or vector(0)) / ${rate('carillon_http_request_seconds_count', undefined, calls)}`,
      legend: '5xx',
    },
  ],
};
const versions: Panel = {
  title: 'Processes by version',
  unit: 'none',
  queries: [
    {
      expr: 'count by (process, version) (carillon_build_info)',
      legend: '{{process}} {{version}}',
    },
  ],
};
const openPushes: Panel = {
  title: 'Open pushes',
  unit: 'none',
  queries: [
    { expr: 'max by (state) (carillon_pushes_open)', legend: '{{state}}' },
    { expr: 'max(carillon_scheduled_pushes)', legend: 'scheduled' },
  ],
};

/** Panels of the first overview: are pushes and calls being served? */
export const overview: readonly Panel[] = [
  recipients,
  recipientsByConnector,
  firstSend,
  acceptedPushes,
  oldest,
  breakers,
  apiRate,
  apiErrors,
  versions,
  openPushes,
];
