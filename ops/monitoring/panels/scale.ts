import { type Panel, quantile, rate } from '../grafana.ts';

/** Panels that show which capacity is missing: dispatchers, threads or connections. */
export const scale: readonly Panel[] = [
  {
    title: 'Jobs by queue and state',
    unit: 'none',
    queries: [
      { expr: 'max by (queue, state) (carillon_queue_jobs)', legend: '{{queue}} {{state}}' },
    ],
  },
  {
    title: 'Jobs that could be taken',
    unit: 'none',
    queries: [{ expr: 'max by (queue) (carillon_queue_depth)', legend: '{{queue}}' }],
  },
  {
    title: 'Recipients planned per second',
    unit: 'ops',
    queries: [{ expr: rate('carillon_planned_recipients_total'), legend: 'planned' }],
  },
  {
    title: 'Turn of planning, p95',
    unit: 's',
    queries: [{ expr: quantile(0.95, 'carillon_planning_seconds'), legend: 'p95' }],
  },
  {
    title: 'Worker threads: busy cores',
    unit: 'none',
    queries: [
      { expr: rate('carillon_worker_busy_seconds_total', 'instance'), legend: '{{instance}} busy' },
      {
        expr: 'sum by (instance, state) (carillon_worker_threads)',
        legend: '{{instance}} {{state}}',
      },
    ],
  },
  {
    title: 'Heap of worker threads',
    unit: 'bytes',
    queries: [
      {
        expr: 'sum by (instance, kind) (carillon_worker_heap_bytes)',
        legend: '{{instance}} {{kind}}',
      },
    ],
  },
  {
    title: 'Recipients per second by dispatcher',
    unit: 'ops',
    queries: [{ expr: rate('carillon_recipients_total', 'instance'), legend: '{{instance}}' }],
  },
  {
    title: 'CPU time per 1,000 recipients',
    unit: 's',
    queries: [
      {
        expr: `1000 * ${rate('process_cpu_seconds_total', undefined, 'job="carillon-dispatcher"')} / ${rate('carillon_recipients_total')}`,
        legend: 'dispatchers',
      },
    ],
  },
  {
    title: 'Connections in use, and calls that wait for one',
    unit: 'none',
    queries: [
      {
        expr: 'sum by (pool) (carillon_db_pool_connections{state="used"})',
        legend: '{{pool}} used',
      },
      {
        expr: 'sum by (pool) (carillon_db_pool_connections{state="waiting"})',
        legend: '{{pool}} waiting',
      },
    ],
  },
  {
    title: 'Wait for a connection, p95',
    unit: 's',
    queries: [
      { expr: quantile(0.95, 'carillon_db_pool_wait_seconds', 'pool'), legend: '{{pool}}' },
    ],
  },
  {
    title: 'Failed statements by kind',
    unit: 'ops',
    queries: [{ expr: rate('carillon_db_errors_total', 'kind'), legend: '{{kind}}' }],
  },
  {
    title: 'Since the last success of a background job',
    unit: 's',
    queries: [
      {
        expr: 'time() - max by (duty) (carillon_duty_last_success_timestamp_seconds)',
        legend: '{{duty}}',
      },
    ],
  },
  {
    title: 'Lag of scheduled pushes and of the standby',
    unit: 's',
    queries: [
      { expr: 'max(carillon_scheduled_lag_seconds)', legend: 'scheduled' },
      { expr: 'max(carillon_standby_lag_seconds)', legend: 'standby' },
    ],
  },
];
