import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import type { RunningDispatcher } from '../../dispatcher/start.ts';
import { freePort } from '../../ops/local/ports.ts';
import { dashboards } from '../../ops/monitoring/files.ts';
import type { App } from '../../shared/domain/apps/app.ts';
import { useTestService } from '../support/service.ts';

const program = ['/usr/bin/prometheus', '/usr/local/bin/prometheus'].find(existsSync);
const rules = fileURLToPath(new URL('../../ops/monitoring/rules/', import.meta.url));
/** Interval of the scrapes, and the interval of rates that replaces Grafana's own. */
const scrapeSeconds = 1;
const rateInterval = '30s';

/**
 * Returns the query of the KEDA overlay as Kubernetes gets it. If kubectl is installed, it renders
 * the overlay.
 */
function scalingQuery(): string {
  const overlay = fileURLToPath(
    new URL('../../ops/deploy/kubernetes/overlays/keda/', import.meta.url),
  );
  const canRender = spawnSync('kubectl', ['version', '--client']).status === 0;
  const text = canRender
    ? execFileSync('kubectl', ['kustomize', overlay], { encoding: 'utf8' })
    : readFileSync(`${overlay}scaled-dispatcher.yaml`, 'utf8');
  const [, query] = text.match(/^ +query: (\S.*)$/m) ?? [];
  if (query === undefined) throw new Error(`the overlay has no query: ${text}`);
  return query;
}

const service = useTestService();
/** The only value of an expression, as KEDA requires. */
const single = z.tuple([z.object({ value: z.tuple([z.number(), z.coerce.number()]) })]);
const answer = z.object({
  status: z.literal('success'),
  data: z.object({ result: z.array(z.unknown()) }),
});

describe.skipIf(program === undefined)(
  'a Prometheus that scrapes a service under load',
  { timeout: 120_000 },
  () => {
    let url: string;
    let folder: string;
    let stop: () => Promise<unknown>;
    let app: App;
    let dispatcher: RunningDispatcher;

    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), 'carillon-prometheus-'));
      dispatcher = await service.dispatch();
      const targets = {
        'carillon-api': new URL(service.api.url).host,
        'carillon-dispatcher': `127.0.0.1:${dispatcher.metricsPort}`,
      };
      const port = await freePort();
      url = `http://127.0.0.1:${port}`;
      const file = join(folder, 'prometheus.json');
      await writeFile(file, JSON.stringify(configFor(targets)));
      const flags = [
        `--config.file=${file}`,
        `--storage.tsdb.path=${folder}/data`,
        `--web.listen-address=127.0.0.1:${port}`,
      ];
      const child = spawn(program ?? '', flags, { stdio: 'ignore' });
      stop = () =>
        new Promise((resolve) => {
          child.once('exit', resolve);
          child.kill('SIGKILL');
        });
      app = await service.api.createApp();
      await service.addApnsProfile(app);
      await service.addIosInstallations(app, 3000);
      await vi.waitUntil(async () => (await query('up == 1').catch(() => [])).length === 2, {
        timeout: 60_000,
      });
    });
    afterAll(async () => {
      await stop?.();
      await rm(folder, { recursive: true, force: true });
    });

    /** Returns the result of an expression. */
    async function query(expr: string): Promise<unknown[]> {
      const reply = await fetch(`${url}/api/v1/query?${new URLSearchParams({ query: expr })}`);
      const text = await reply.text();
      const parsed = answer.safeParse(JSON.parse(text));
      if (!parsed.success) throw new Error(`${expr}: ${text}`);
      return parsed.data.data.result;
    }

    /** Causes calls, refusals and pushes once. */
    async function work(): Promise<void> {
      const body = { data: { alert: 'Hello' } };
      const pushed = await service.api.request('POST', '/1.1/push', { app, master: true, body });
      await service.api.request('GET', '/1.1/users/none', { app });
      await service.untilDone(app, pushed.body.objectId);
    }

    test('has data for every panel', async () => {
      const exprs = dashboards.flatMap(({ title, panels }) =>
        panels.flatMap((panel) =>
          panel.targets.map(({ expr }) => ({
            panel: `${title}: ${panel.title}`,
            expr: expr.replaceAll('$__rate_interval', rateInterval),
          })),
        ),
      );
      let empty = exprs;
      // A rate needs two scrapes with the series, and load between them.
      for (let round = 0; empty.length > 0 && round < 30; round += 1) {
        await work();
        const answers = await Promise.all(
          empty.map(async (one) => ({ ...one, rows: await query(one.expr) })),
        );
        empty = answers.filter(({ rows }) => rows.length === 0);
      }
      expect(empty).toEqual([]);
    });

    test('loads the rules, and no alert fires for this service', async () => {
      const reply = await fetch(`${url}/api/v1/rules`);
      expect(await reply.text()).not.toContain('"health":"err"');
      expect(await query('ALERTS{alertstate="firing"}')).toEqual([]);
    });

    test("has one value for KEDA's query, which rises while jobs wait", async () => {
      const expr = scalingQuery();
      const waited = async () => single.parse(await query(expr))[0].value[1];
      await work();
      await expect.poll(waited, pollOptions).toBeLessThan(1);
      await dispatcher.stack.close();
      const body = { data: { alert: 'Hello' } };
      const pushed = await service.api.request('POST', '/1.1/push', { app, master: true, body });
      await expect.poll(waited, pollOptions).toBeGreaterThan(1);
      const before = await waited();
      await expect.poll(waited, pollOptions).toBeGreaterThan(before + 1);
      await service.dispatch();
      await service.untilDone(app, pushed.body.objectId);
      await expect.poll(waited, pollOptions).toBeLessThan(before);
    });
  },
);

/** Scrapes and samples of the queues are seconds apart on a slow machine. */
const pollOptions = { timeout: 60_000, interval: 200 };

/** Returns the configuration of Prometheus. JSON is valid YAML. */
const configFor = (targets: Record<string, string>) => ({
  global: { scrape_interval: `${scrapeSeconds}s`, evaluation_interval: '1s' },
  rule_files: [`${rules}*.yml`],
  scrape_configs: Object.entries(targets).map(([job, target]) => ({
    job_name: job,
    static_configs: [{ targets: [target] }],
  })),
});
