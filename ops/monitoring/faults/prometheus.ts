import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { sleep } from '../../../shared/clock.ts';
import { freePort } from '../../local/ports.ts';
import { guardPrefix } from '../../local/postgres/server.ts';
import type { Alert } from '../alerts.ts';
import { alertRules } from '../files.ts';

/** Path of the program from Debian's package or a download. */
export const prometheusPath = ['/usr/bin/prometheus', '/usr/local/bin/prometheus'].find(existsSync);

const answer = z.object({
  status: z.literal('success'),
  data: z.object({ result: z.array(z.object({ metric: z.record(z.string(), z.string()) })) }),
});
/** Longer than the stalls of `CarillonEventLoopSlow`, so that no scrape is missed. */
const scrapeInterval = '1s';

/** Prometheus that evaluates every alert with seconds instead of minutes. */
export interface FastPrometheus {
  /** Returns the labels of the firing alerts, including `alertname`. */
  firing(): Promise<Record<string, string>[]>;
  stop(): Promise<void>;
}

/**
 * Returns an alert with every time divided by 60. Other thresholds stay, because the scene produces
 * their values.
 */
export function shortened(alert: Alert): Alert {
  const shorten = (text: string) =>
    text
      .replace(
        /\b(\d+)s\b/g,
        (_, seconds: string) => `${Math.ceil(Number(seconds) * (1000 / 60))}ms`,
      )
      .replace(/\b(\d+)m\b/g, '$1s')
      .replace(/\b(\d+)h\b/g, '$1m');
  const inRanges = (text: string) => text.replace(/\[[^\]]+\]|offset \w+/g, shorten);
  const { lastsSeconds = 0 } = alert;
  const expr = inRanges(alert.expr).replace(`> ${lastsSeconds}`, `> ${lastsSeconds / 60}`);
  return { ...alert, expr, for: shorten(alert.for) };
}

/**
 * Starts Prometheus with its targets by job and with its data in `folder`. Resolves when it is
 * ready.
 */
export async function startFastPrometheus(
  folder: string,
  targets: Record<string, string[]>,
): Promise<FastPrometheus> {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const config = {
    global: {
      scrape_interval: scrapeInterval,
      scrape_timeout: scrapeInterval,
      evaluation_interval: '500ms',
    },
    rule_files: ['alerts.yml'],
    scrape_configs: Object.entries(targets).map(([job_name, of]) => ({
      job_name,
      static_configs: [{ targets: of }],
    })),
  };
  await writeFile(join(folder, 'alerts.yml'), alertRules(shortened));
  await writeFile(join(folder, 'prometheus.yml'), JSON.stringify(config));
  const flags = [
    `--config.file=${folder}/prometheus.yml`,
    `--storage.tsdb.path=${folder}/data`,
    `--web.listen-address=127.0.0.1:${port}`,
  ];
  // The kernel ends Prometheus when this process exits.
  const [file = '', ...args] = [...((await guardPrefix()) ?? []), prometheusPath ?? '', ...flags];
  const child = spawn(file, args, { stdio: 'ignore' });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const isReady = () =>
    fetch(`${url}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    );
  while (!(await isReady())) {
    if (child.exitCode !== null) throw new Error(`Prometheus ended with code ${child.exitCode}`);
    await sleep(100);
  }
  return {
    async firing() {
      const query = new URLSearchParams({ query: 'ALERTS{alertstate="firing"}' });
      const reply = answer.parse(await (await fetch(`${url}/api/v1/query?${query}`)).json());
      return reply.data.result.map(({ metric }) => metric);
    },
    async stop() {
      child.kill('SIGKILL');
      await ended;
    },
  };
}
