import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { alertGroups, recordings } from '../../ops/monitoring/alerts.ts';
import { scenes } from '../../ops/monitoring/faults/scenes.ts';
import { dashboards } from '../../ops/monitoring/files.ts';
import { createMetrics } from '../../shared/metrics.ts';

const promtool = ['/usr/bin/promtool', '/usr/local/bin/promtool'].find(existsSync);
const rules = fileURLToPath(new URL('../../ops/monitoring/rules/', import.meta.url));
const alerts = Object.values(alertGroups).flat();

/**
 * Series by name and labels, in promtool's notation with an interval of one minute, and the time of
 * the evaluation.
 */
interface Case {
  series: Record<string, string>;
  at: string;
}

const up = (value: string) => ({
  'up{job="carillon-api",instance="a"}': '1x60',
  'up{job="carillon-dispatcher",instance="d"}': value,
});
const http = (ok: number, failed: number) => ({
  'carillon_http_request_seconds_count{route="/1.1/push",status="200"}': `0+${ok}x60`,
  ...(failed > 0
    ? { 'carillon_http_request_seconds_count{route="/1.1/push",status="503"}': `0+${failed}x60` }
    : {}),
  'carillon_http_request_seconds_count{route="/readyz",status="503"}': '0+600x60',
});
const histogram = (name: string, labels: string, [fast, slow]: [number, number]) => ({
  [`${name}_bucket{${labels}le="0.5"}`]: `0+${fast}x60`,
  [`${name}_bucket{${labels}le="10"}`]: `0+${fast + slow}x60`,
  [`${name}_bucket{${labels}le="+Inf"}`]: `0+${fast + slow}x60`,
});
const recipients = (sent: number, failed: number) => ({
  'carillon_recipients_total{app="x",connector="apns",outcome="sent"}': `0+${sent}x120`,
  'carillon_recipients_total{app="x",connector="apns",outcome="failed"}': `0+${failed}x120`,
});
const tokens = (sent: number, invalid: number) => ({
  'carillon_recipients_total{app="x",connector="apns",outcome="sent"}': `0+${sent}x120`,
  'carillon_recipients_total{app="x",connector="apns",outcome="invalid_token"}': `0+${invalid}x120`,
});
const answers = (ok: number, refused: number) => ({
  'carillon_gateway_responses_total{connector="apns",status="200"}': `0+${ok}x60`,
  'carillon_gateway_responses_total{connector="apns",status="403"}': `0+${refused}x60`,
});
const messages = (sent: number, failed: number) => ({
  'carillon_messages_total{kind="sms",outcome="sent"}': `0+${sent}x60`,
  'carillon_messages_total{kind="sms",outcome="failed"}': `0+${failed}x60`,
});
const build = (...versions: string[]) =>
  Object.fromEntries(
    versions.map((v, i) => [`carillon_build_info{instance="${i}",version="${v}"}`, '1x120']),
  );
const one = (series: string, values: string, at: string): Case => ({
  series: { [series]: values },
  at,
});

const profile = 'connector="apns",app="x",profile="_default"';

/** For each alert: a fault that it must report, and a near miss that it must not report. */
const cases: Record<string, { fires: Case; silent: Case }> = {
  CarillonDown: {
    fires: { series: up('1x5 0x60'), at: '10m' },
    // A restart of less than two minutes.
    silent: { series: up('1x5 0 1x60'), at: '7m' },
  },
  CarillonNoDispatcher: {
    fires: { series: up('0x60'), at: '5m' },
    silent: {
      series: { ...up('0x60'), 'up{job="carillon-dispatcher",instance="e"}': '1x60' },
      at: '5m',
    },
  },
  CarillonSchemaPending: {
    fires: one('carillon_schema_pending{job="carillon-api",instance="a"}', '1x60', '10m'),
    silent: one('carillon_schema_pending{job="carillon-api",instance="a"}', '1x3 0x60', '10m'),
  },
  CarillonVersionsMixed: {
    fires: { series: build('1.0.0', '1.1.0'), at: '90m' },
    // State during an upgrade.
    silent: { series: build('1.0.0', '1.1.0'), at: '30m' },
  },
  CarillonEventLoopSlow: {
    fires: one(
      'nodejs_eventloop_lag_p99_seconds{job="carillon-api",instance="a"}',
      '0.7x60',
      '20m',
    ),
    silent: one(
      'nodejs_eventloop_lag_p99_seconds{job="carillon-api",instance="a"}',
      '0.4x60',
      '20m',
    ),
  },
  CarillonOpenFiles: {
    fires: {
      series: {
        'process_open_fds{job="carillon-api",instance="a"}': '900x60',
        'process_max_fds{job="carillon-api",instance="a"}': '1000x60',
      },
      at: '10m',
    },
    silent: {
      series: {
        'process_open_fds{job="carillon-api",instance="a"}': '700x60',
        'process_max_fds{job="carillon-api",instance="a"}': '1000x60',
      },
      at: '10m',
    },
  },
  CarillonDispatcherMemory: {
    fires: one(
      'process_resident_memory_bytes{job="carillon-dispatcher",instance="d"}',
      '5e8x60',
      '30m',
    ),
    // An api may use more memory.
    silent: one('process_resident_memory_bytes{job="carillon-api",instance="a"}', '5e8x60', '30m'),
  },
  CarillonApiErrors: {
    fires: { series: http(100, 5), at: '20m' },
    // Probes that are unready during a start do not count as calls.
    silent: { series: http(1000, 5), at: '20m' },
  },
  CarillonApiSlow: {
    fires: {
      series: histogram('carillon_http_request_seconds', 'route="/1.1/push",', [80, 20]),
      at: '30m',
    },
    // Logins are slow on purpose, because of password hashing.
    silent: {
      series: histogram('carillon_http_request_seconds', 'route="/1.1/login",', [80, 20]),
      at: '30m',
    },
  },
  CarillonChannelDrop: {
    fires: one(
      'carillon_channel_connections{job="carillon-api",instance="a"}',
      '1000x20 200x40',
      '28m',
    ),
    silent: one(
      'carillon_channel_connections{job="carillon-api",instance="a"}',
      '90x20 2x40',
      '28m',
    ),
  },
  CarillonSmsPumping: {
    fires: one('carillon_sms_breaker_open{app="x",prefix="+88"}', '1x60', '5m'),
    silent: one('carillon_sms_breaker_open{app="x",prefix="+88"}', '0x60', '5m'),
  },
  CarillonMessagesFail: {
    fires: { series: messages(10, 3), at: '30m' },
    silent: { series: messages(100, 3), at: '30m' },
  },
  CarillonFirstSendSlow: {
    fires: { series: histogram('carillon_push_first_send_seconds', '', [5, 5]), at: '30m' },
    // Without pushes there is no quantile.
    silent: { series: histogram('carillon_push_first_send_seconds', '', [0, 0]), at: '30m' },
  },
  CarillonQueueOld: {
    fires: {
      series: {
        'carillon_queue_oldest_seconds{queue="deliver-apns"}': '0 30 90 150x60',
        'carillon_queue_depth{queue="deliver-apns"}': '5x60',
      },
      at: '10m',
    },
    silent: {
      series: {
        'carillon_queue_oldest_seconds{queue="deliver-apns"}': '0 90 0 90 0 50x60',
        'carillon_queue_depth{queue="deliver-apns"}': '5x60',
        // A push to millions whose queue drains.
        'carillon_queue_oldest_seconds{queue="deliver-fcm"}': '0+30x60',
        'carillon_queue_depth{queue="deliver-fcm"}': '50000-300x60',
      },
      at: '10m',
    },
  },
  CarillonQueueGrows: {
    fires: one('carillon_queue_depth{queue="deliver-apns"}', '0+500x120', '90m'),
    // A large push whose queue drains.
    silent: one('carillon_queue_depth{queue="deliver-apns"}', '50000-300x120', '90m'),
  },
  CarillonSchedulerLate: {
    fires: one('carillon_scheduled_lag_seconds', '30x10', '5m'),
    silent: {
      series: {
        carillon_scheduled_lag_seconds: '1x10',
        // One of two schedulers is stuck.
        'carillon_duty_last_success_timestamp_seconds{duty="scheduler",instance="d"}': '0x10',
        'carillon_duty_last_success_timestamp_seconds{duty="scheduler",instance="e"}': '0+60x10',
      },
      at: '5m',
    },
  },
  CarillonBreakerOpen: {
    fires: one(
      'carillon_breaker_state{connector="apns",app="x",profile="_default"}',
      '2x20',
      '10m',
    ),
    silent: one(
      'carillon_breaker_state{connector="apns",app="x",profile="_default"}',
      '2 2 1 0x20',
      '10m',
    ),
  },
  CarillonDeliveryFalls: {
    // Nothing was sent since the dispatcher started.
    fires: { series: recipients(0, 500), at: '60m' },
    silent: { series: recipients(5, 10), at: '60m' },
  },
  CarillonCredentialsRefused: {
    fires: { series: answers(0, 20), at: '20m' },
    // Single devices of another sender.
    silent: { series: answers(100, 20), at: '20m' },
  },
  CarillonInvalidTokensJump: {
    fires: { series: tokens(50, 50), at: '100m' },
    silent: { series: tokens(90, 10), at: '100m' },
  },
  CarillonTokensKept: {
    fires: one(`carillon_tokens_kept{${profile}}`, '78x20', '10m'),
    // An operator deleted the devices.
    silent: one(`carillon_tokens_kept{${profile}}`, '78 0x20', '10m'),
  },
  CarillonWebhookBehind: {
    fires: one('carillon_webhook_oldest_seconds{app="a"}', '0+60x120', '90m'),
    // The receiver answers, so the oldest event is seconds old.
    silent: one('carillon_webhook_oldest_seconds{app="a"}', '5x120', '90m'),
  },
  CarillonWebhookOff: {
    fires: one('carillon_webhooks_off{app="a"}', '1x20', '10m'),
    silent: one('carillon_webhooks_off{app="a"}', '0x20', '10m'),
  },
  CarillonCertificateEnds: {
    fires: one(
      `carillon_gateway_credential_expiry_timestamp_seconds{${profile}}`,
      '864000x120',
      '90m',
    ),
    silent: one(
      `carillon_gateway_credential_expiry_timestamp_seconds{${profile}}`,
      '3024000x120',
      '90m',
    ),
  },
  CarillonQuotaUsedUp: {
    fires: one(`carillon_gateway_quota_used_up{${profile}}`, '1x20', '10m'),
    // Midnight in China.
    silent: one(`carillon_gateway_quota_used_up{${profile}}`, '1 1 0x20', '10m'),
  },
  CarillonCapNear: {
    fires: one('carillon_app_cap_used_ratio{app="x"}', '0.95x20', '10m'),
    silent: one('carillon_app_cap_used_ratio{app="x"}', '0.85x20', '10m'),
  },
  CarillonPoolFull: {
    fires: one(
      'carillon_db_pool_connections{instance="a",pool="api",state="waiting"}',
      '5x60',
      '20m',
    ),
    silent: one(
      'carillon_db_pool_connections{instance="a",pool="api",state="waiting"}',
      '5 0 5 5 0 5 5 0x60',
      '8m',
    ),
  },
  CarillonDatabaseErrors: {
    fires: one('carillon_db_errors_total{kind="unreachable"}', '0+30x60', '20m'),
    silent: one('carillon_db_errors_total{kind="timeout"}', '0+30x60', '20m'),
  },
  CarillonDutyStands: {
    fires: one(
      'carillon_duty_last_success_timestamp_seconds{duty="cleaner",instance="d"}',
      '0x120',
      '60m',
    ),
    // Another dispatcher runs the background job.
    silent: {
      series: {
        'carillon_duty_last_success_timestamp_seconds{duty="cleaner",instance="d"}': '0x120',
        'carillon_duty_last_success_timestamp_seconds{duty="cleaner",instance="e"}': '0+60x120',
      },
      at: '60m',
    },
  },
  CarillonStandbyLag: {
    fires: one('carillon_standby_lag_seconds{instance="d"}', '60x20', '10m'),
    silent: one('carillon_standby_lag_seconds{instance="d"}', '60 60 0x20', '10m'),
  },
  CarillonReadingOld: {
    fires: one('carillon_shared_reading_age_seconds{instance="a"}', '300x20', '10m'),
    silent: one('carillon_shared_reading_age_seconds{instance="a"}', '20x20', '10m'),
  },
};

test('every alert has a fault, a near miss, and a runbook', async () => {
  const names = alerts.map(({ name }) => name);
  expect(Object.keys(cases).toSorted()).toEqual(names.toSorted());
  const runbooks = await readFile(new URL('../../docs/operate/alerts.md', import.meta.url), 'utf8');
  expect(runbooks.match(/(?<=^## )Carillon.*$/gm)?.toSorted()).toEqual(names.toSorted());
});

test('a fault can be caused for each alert, and times in thresholds match the rules', () => {
  const created = new Set(scenes.flatMap((scene) => scene.alerts));
  expect([...created].toSorted()).toEqual(alerts.map(({ name }) => name).toSorted());
  for (const { expr, lastsSeconds } of alerts)
    if (lastsSeconds !== undefined) expect(expr).toMatch(new RegExp(`> ${lastsSeconds}$`));
});

test('rules and dashboards name existing metrics', async () => {
  const known = new Set(
    (await createMetrics().registry.getMetricsAsJSON()).map(({ name }) => name),
  );
  const exprs = [
    ...alerts.map(({ expr }) => expr),
    ...Object.values(recordings),
    ...dashboards.flatMap(({ panels }) =>
      panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)),
    ),
  ];
  const named = new Set(
    exprs.flatMap((expr) => expr.match(/\b(carillon|process|nodejs)_\w+/g) ?? []),
  );
  const missing = [...named].filter(
    (name) => !known.has(name) && !known.has(name.replace(/_(bucket|count|sum)$/, '')),
  );
  expect(missing).toEqual([]);
});

test('panels have ids, and dashboards have fixed URLs', () => {
  for (const { panels } of dashboards) {
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    expect(new Set(panels.map(({ title }) => title)).size).toBe(panels.length);
  }
  expect(new Set(dashboards.map(({ uid }) => uid)).size).toBe(4);
});

// Rules over two hours are evaluated sixty times. This takes seconds of CPU time, which a busy
// machine may not have.
describe.skipIf(promtool === undefined)('promtool', { timeout: 180_000 }, () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'carillon-alerts-'));
  });
  afterAll(() => rm(folder, { recursive: true }));

  const run = (args: string[]) =>
    execFileSync(promtool ?? '', args, { encoding: 'utf8', stdio: 'pipe' });

  test('accepts the rules', () => {
    expect(run(['check', 'rules', `${rules}alerts.yml`, `${rules}recordings.yml`])).not.toContain(
      'FAILED',
    );
  });

  test('fires each alert for its fault, and not for the near miss', async () => {
    const tests = Object.entries(cases).flatMap(([name, { fires, silent }]) => {
      const firing = `count(ALERTS{alertname="${name}",alertstate="firing"})`;
      return [
        testCase(`${name} fires`, fires, {
          expr: firing,
          eval_time: fires.at,
          exp_samples: [{ labels: '{}', value: 1 }],
        }),
        testCase(`${name} is silent`, silent, {
          expr: firing,
          eval_time: silent.at,
          exp_samples: [],
        }),
      ];
    });
    const file = join(folder, 'alerts.test.json');
    const document = { rule_files: [`${rules}alerts.yml`], evaluation_interval: '1m', tests };
    await writeFile(file, JSON.stringify(document));
    expect(run(['test', 'rules', file])).toContain('SUCCESS');
  });
});

/** Returns a promtool test. JSON is valid YAML. */
const testCase = (name: string, { series }: Case, question: object) => ({
  name,
  interval: '1m',
  input_series: Object.entries(series).map(([one_, values]) => ({ series: one_, values })),
  promql_expr_test: [question],
});
