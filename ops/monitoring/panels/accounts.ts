import { calls, orZero, type Panel, quantile, rate } from '../grafana.ts';

/** Panels of the api, accounts and the device channel. */
export const accounts: readonly Panel[] = [
  {
    title: 'Time of calls by route, p95',
    unit: 's',
    queries: [
      {
        expr: quantile(0.95, 'carillon_http_request_seconds', 'route', calls),
        legend: '{{route}}',
      },
    ],
  },
  {
    title: 'Refusals by code',
    unit: 'reqps',
    queries: [{ expr: rate('carillon_http_refusals_total', 'code'), legend: '{{code}}' }],
  },
  {
    title: 'Calls in flight',
    unit: 'none',
    queries: [
      {
        expr: 'sum by (instance) (carillon_http_in_flight{job="carillon-api"})',
        legend: '{{instance}}',
      },
    ],
  },
  {
    title: 'Request bodies in memory',
    unit: 'bytes',
    queries: [
      {
        expr: 'sum by (instance) (carillon_body_bytes{job="carillon-api"})',
        legend: '{{instance}}',
      },
    ],
  },
  {
    title: 'SMS asked for and verified',
    unit: 'ops',
    queries: [
      { expr: orZero(rate('carillon_sms_requests_total', 'outcome')), legend: 'asked {{outcome}}' },
      {
        expr: orZero(rate('carillon_sms_verifications_total', 'outcome')),
        legend: 'tried {{outcome}}',
      },
    ],
  },
  {
    title: 'Mail and SMS sent',
    unit: 'ops',
    queries: [
      { expr: rate('carillon_messages_total', 'kind, outcome'), legend: '{{kind}} {{outcome}}' },
    ],
  },
  {
    title: 'Deliveries to webhooks',
    unit: 'ops',
    queries: [
      { expr: rate('carillon_webhook_deliveries_total', 'outcome'), legend: '{{outcome}}' },
    ],
  },
  {
    title: 'Oldest event that waits for a webhook',
    unit: 's',
    queries: [
      { expr: orZero('max by (app) (carillon_webhook_oldest_seconds)'), legend: '{{app}}' },
    ],
  },
  {
    title: 'Hooks',
    unit: 'ops',
    queries: [{ expr: orZero(rate('carillon_hooks_total', 'outcome')), legend: '{{outcome}}' }],
  },
  {
    title: 'Connected devices',
    unit: 'none',
    queries: [
      {
        expr: 'sum by (instance) (carillon_channel_connections{job="carillon-api"})',
        legend: '{{instance}}',
      },
    ],
  },
  {
    title: 'Messages on the channel',
    unit: 'ops',
    queries: [{ expr: rate('carillon_channel_messages_total', 'event'), legend: '{{event}}' }],
  },
  {
    title: 'Event loop delay, p99',
    unit: 's',
    queries: [
      {
        expr: 'max by (instance) (nodejs_eventloop_lag_p99_seconds{job=~"carillon-.+"})',
        legend: '{{instance}}',
      },
    ],
  },
  {
    title: 'Resident memory',
    unit: 'bytes',
    queries: [
      {
        expr: 'max by (instance) (process_resident_memory_bytes{job=~"carillon-.+"})',
        legend: '{{instance}}',
      },
    ],
  },
];
