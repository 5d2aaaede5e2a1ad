import { orZero, type Panel, quantile, rate } from '../grafana.ts';

/** Panels about gateways and their replies. */
export const delivery: readonly Panel[] = [
  {
    title: 'Answers of gateways',
    unit: 'reqps',
    queries: [
      {
        expr: rate('carillon_gateway_responses_total', 'connector, status, reason'),
        legend: '{{connector}} {{status}} {{reason}}',
      },
    ],
  },
  {
    title: 'Time of requests to gateways, p95',
    unit: 's',
    queries: [
      {
        expr: quantile(0.95, 'carillon_gateway_request_seconds', 'connector'),
        legend: '{{connector}}',
      },
    ],
  },
  {
    title: 'Recipients that are retried and repeated',
    unit: 'ops',
    queries: [
      {
        expr: rate('carillon_recipients_retried_total', 'connector'),
        legend: '{{connector}} retried',
      },
      {
        expr: orZero(rate('carillon_recipients_repeated_total', 'connector')),
        legend: '{{connector}} repeated',
      },
    ],
  },
  {
    title: 'HTTP/2 connections and streams',
    unit: 'none',
    queries: [
      {
        expr: 'sum by (connector) (carillon_http2_connections)',
        legend: '{{connector}} connections',
      },
      { expr: 'sum by (connector) (carillon_http2_streams)', legend: '{{connector}} streams' },
    ],
  },
  {
    title: 'HTTP/2 events',
    unit: 'ops',
    queries: [
      {
        expr: orZero(rate('carillon_http2_events_total', 'connector, event')),
        legend: '{{connector}} {{event}}',
      },
    ],
  },
  {
    title: 'HTTP/2 round trip, p95',
    unit: 's',
    queries: [
      {
        expr: quantile(0.95, 'carillon_http2_round_trip_seconds', 'connector'),
        legend: '{{connector}}',
      },
    ],
  },
  {
    title: 'Invalid tokens by app',
    unit: 'ops',
    queries: [
      {
        expr: rate('carillon_recipients_total', 'app', 'outcome="invalid_token"'),
        legend: '{{app}}',
      },
    ],
  },
  {
    title: 'Receipts of gateways',
    unit: 'ops',
    queries: [
      {
        expr: orZero(rate('carillon_receipts_total', 'connector, event')),
        legend: '{{connector}} {{event}}',
      },
    ],
  },
  {
    title: 'Events that apps report',
    unit: 'ops',
    queries: [{ expr: orZero(rate('carillon_push_events_total', 'type')), legend: '{{type}}' }],
  },
  {
    title: 'Time until credentials end',
    unit: 's',
    queries: [
      {
        expr: '(min by (connector, app, profile) (carillon_gateway_credential_expiry_timestamp_seconds) - time()) or vector(0)',
        legend: '{{connector}} {{app}} {{profile}}',
      },
    ],
  },
  {
    title: 'Used-up quotas of gateways',
    unit: 'none',
    queries: [
      {
        expr: 'max by (connector, app, profile) (carillon_gateway_quota_used_up) or vector(0)',
        legend: '{{connector}} {{app}} {{profile}}',
      },
    ],
  },
  {
    title: 'Used part of the daily cap',
    unit: 'percentunit',
    queries: [
      {
        expr: 'topk(10, max by (app) (carillon_app_cap_used_ratio)) or vector(0)',
        legend: '{{app}}',
      },
    ],
  },
  {
    title: 'Starts of recurring pushes',
    unit: 'ops',
    queries: [
      { expr: orZero(rate('carillon_recurring_starts_total', 'outcome')), legend: '{{outcome}}' },
    ],
  },
  {
    title: 'Recipients that wait or end for their own time and limits',
    unit: 'ops',
    queries: [
      {
        expr: orZero(rate('carillon_quiet_hours_recipients_total', 'outcome')),
        legend: 'quiet hours {{outcome}}',
      },
      {
        expr: orZero(rate('carillon_local_time_recipients_total', 'timing')),
        legend: 'local time {{timing}}',
      },
      { expr: orZero(rate('carillon_device_capped_recipients_total')), legend: 'limit per device' },
    ],
  },
  {
    title: 'Scans by database',
    unit: 'ops',
    queries: [{ expr: rate('carillon_scans_total', 'database'), legend: '{{database}}' }],
  },
  {
    title: 'Time to done, p95',
    unit: 's',
    queries: [{ expr: quantile(0.95, 'carillon_push_complete_seconds'), legend: 'p95' }],
  },
];
