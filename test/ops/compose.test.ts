import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseYaml } from '@redocly/openapi-core';
import { describe, expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { connectionsOf } from '../../ops/cli/doctor/connections.ts';
import { isCarillon, readCompose } from '../../ops/deploy/compose/read.ts';
import { serverVariables } from '../../ops/local/postgres/server.ts';
import { dashboards } from '../../ops/monitoring/files.ts';
import { readConfig } from '../../shared/config/config.ts';
import { processVariables } from '../../shared/config/environment.ts';

const folder = new URL('../../ops/deploy/compose/', import.meta.url);
const promtool = ['/usr/bin/promtool', '/usr/local/bin/promtool'].find(existsSync);
/** Variables in the file `.env` that the documentation tells operators to write. */
const variables = {
  POSTGRES_PASSWORD: 'abc123',
  CARILLON_SECRET: Buffer.alloc(32).toString('base64'),
  CARILLON_ADMIN_TOKEN: 'a token of the operator',
  GRAFANA_PASSWORD: 'abc',
  METRICS_TOKEN: 'a token of Prometheus',
};

const scraped = z.object({
  rule_files: z.array(z.string()),
  scrape_configs: z.array(
    z.object({
      job_name: z.string(),
      static_configs: z.tuple([z.object({ targets: z.array(z.string()) })]),
    }),
  ),
});

async function yaml(url: URL): Promise<unknown> {
  return parseYaml(await readFile(url, 'utf8'));
}

/** Returns the services that run Carillon's image, by name. */
async function carillonServices() {
  const { services } = await readCompose(variables);
  return Object.entries(services).filter(([, one]) => isCarillon(one));
}

describe('the compose file', () => {
  test('names a missing required variable, and the documentation explains each', async () => {
    for (const name of Object.keys(variables))
      await expect(readCompose({ ...variables, [name]: '' })).rejects.toThrow(`set ${name}`);
    const page = await readFile(new URL('../../../docs/operate/deploy.md', folder), 'utf8');
    expect(page.match(/^[A-Z_]+(?==)/gm)?.toSorted()).toEqual(Object.keys(variables).toSorted());
  });

  test('runs two of each process, with existing commands and variables', async () => {
    const services = await carillonServices();
    expect(services.map(([, { command }]) => command)).toEqual([
      ['migrate'],
      ['api'],
      ['api'],
      ['dispatcher'],
      ['dispatcher'],
    ]);
    for (const [, { environment = {} }] of services) {
      expect(Object.keys(processVariables.shape)).toEqual(
        expect.arrayContaining(Object.keys(environment)),
      );
      const config = readConfig(environment);
      // Prometheus and the published port connect to the processes from other containers.
      expect(config).toMatchObject({
        host: '0.0.0.0',
        metricsHost: '0.0.0.0',
        dispatcherThreads: 2,
      });
      expect(new URL(config.databaseUrl)).toMatchObject({
        hostname: 'postgres',
        pathname: '/carillon',
      });
    }
  });

  test('passes the settings of mail, SMS, proxies and private hosts to every process', async () => {
    const set = {
      TRUSTED_PROXIES: '1',
      SMTP_URL: 'smtp://mail.example',
      SMS_URL: 'https://sms.example',
      SMS_WEBHOOK_URL: 'https://sms.example',
      OIDC_ISSUER: 'https://id.example',
      OIDC_CLIENT_ID: 'carillon',
      OIDC_CLIENT_SECRET: 'a secret',
      OIDC_ROLES: '{"a":{"role":"owner"}}',
      OPERATOR_MAIL: 'ops@example.com',
      CARILLON_PRIVATE_HOSTS: '10.0.0.0/8',
    };
    const { services } = await readCompose({ ...variables, ...set });
    for (const one of Object.values(services).filter(isCarillon))
      expect(readConfig(one.environment)).toMatchObject({
        trustedProxies: 1,
        smtpUrl: set.SMTP_URL,
        sms: { provider: 'webhook', url: set.SMS_URL },
        oidc: { issuer: set.OIDC_ISSUER, roles: { a: { role: 'owner' } } },
        operatorMail: set.OPERATOR_MAIL,
        privateHosts: set.CARILLON_PRIVATE_HOSTS,
        metricsToken: variables.METRICS_TOKEN,
      });
    for (const [, { environment }] of await carillonServices())
      expect(readConfig(environment)).toMatchObject({
        trustedProxies: 0,
        smtpUrl: undefined,
        privateHosts: '',
      });
  });

  test('mounts existing files, and keeps the data of each volume', async () => {
    const { services, volumes } = await readCompose(variables);
    const sources = Object.values(services).flatMap((one) =>
      (one.volumes ?? []).map((mount) => mount.split(':')[0] ?? ''),
    );
    const [files, names] = [true, false].map((isFile) =>
      sources.filter((source) => source.startsWith('.') === isFile),
    );
    expect(files?.filter((path) => !existsSync(new URL(path, folder)))).toEqual([]);
    expect(names?.toSorted()).toEqual(Object.keys(volumes).toSorted());
  });

  test('publishes each port once, and only on this machine', async () => {
    const { services } = await readCompose(variables);
    const ports = Object.values(services).flatMap((one) => one.ports ?? []);
    const published = ports.map((port) => /^127\.0\.0\.1:(\d+):\d+$/.exec(port)?.[1]);
    expect(published).not.toContain(undefined);
    expect(new Set(published).size).toBe(published.length);
  });

  test('gives Prometheus every process as a target, at its port', async () => {
    const { scrape_configs } = scraped.parse(
      await yaml(new URL('../../monitoring/prometheus.yml', folder)),
    );
    const services = (await carillonServices()).filter(
      ([, { command }]) => command?.[0] !== 'migrate',
    );
    const targets = services.map(([name, { command, environment }]) => {
      const { port, metricsPort } = readConfig(environment);
      return [`carillon-${command?.[0]}`, `${name}:${command?.[0] === 'api' ? port : metricsPort}`];
    });
    const given = scrape_configs.flatMap(({ job_name, static_configs: [{ targets }] }) =>
      targets.map((target) => [job_name, target]),
    );
    expect(given).toEqual(targets);
  });

  test('gives PostgreSQL the variables of the embedded server', async () => {
    const { services } = await readCompose(variables);
    expect(services.postgres?.environment).toMatchObject(serverVariables);
  });

  test('gives PostgreSQL enough connections for the pools of all processes', async () => {
    const { services } = await readCompose(variables);
    const needs = (await carillonServices()).map(([, { command, environment }]) => {
      const { api, dispatcher } = connectionsOf(readConfig(environment));
      return command?.[0] === 'api' ? api : command?.[0] === 'dispatcher' ? dispatcher : 0;
    });
    const maxConnections = Number(
      /max_connections=(\d+)/.exec(services.postgres?.command?.join(' ') ?? '')?.[1],
    );
    // Three connections are reserved for superusers. An operator needs some too.
    expect(needs.reduce((sum, need) => sum + need)).toBeLessThan(maxConnections - 10);
  });

  test('starts everything again after a restart of the machine, but migrates once', async () => {
    const { services } = await readCompose(variables);
    for (const [name, { restart }] of Object.entries(services))
      expect([name, restart]).toEqual([name, name === 'migrate' ? 'on-failure' : 'unless-stopped']);
  });

  test('publishes the ports on which the processes listen', async () => {
    for (const [, { command, environment, ports = [] }] of await carillonServices())
      for (const port of ports) {
        expect(command).toEqual(['api']);
        expect(Number(port.split(':').at(-1))).toBe(readConfig(environment).port);
      }
  });

  test.skipIf(promtool === undefined)(
    'has a configuration and rules that Prometheus accepts',
    async () => {
      const monitoring = new URL('../../monitoring/', folder);
      const given = await readFile(new URL('prometheus.yml', monitoring), 'utf8');
      const copy = await mkdtemp(join(tmpdir(), 'carillon-prometheus-'));
      onTestFinished(() => rm(copy, { recursive: true }));
      const token = join(copy, 'token');
      await writeFile(token, variables.METRICS_TOKEN);
      await symlink(fileURLToPath(new URL('rules', monitoring)), join(copy, 'rules'));
      const file = join(copy, 'prometheus.yml');
      // The container creates the token file.
      await writeFile(file, given.replaceAll('/prometheus/carillon-metrics-token', token));
      const text = execFileSync(promtool ?? '', ['check', 'config', file], { encoding: 'utf8' });
      expect(text).toMatch(/rule files found/);
      expect(text).not.toMatch(/FAILED/);
    },
  );
});

describe('Grafana of the compose file', () => {
  test('has the Prometheus of the file as default, as the dashboards need', async () => {
    const { services } = await readCompose(variables);
    const [source] = z
      .object({ datasources: z.tuple([z.record(z.string(), z.unknown())]) })
      .parse(await yaml(new URL('grafana/datasource.yaml', folder))).datasources;
    expect(source).toMatchObject({ type: 'prometheus', isDefault: true });
    const { hostname, port } = new URL(String(source?.url));
    expect(services[hostname]?.ports?.map((one) => one.split(':').at(-1))).toEqual([port]);
    for (const dashboard of dashboards)
      expect(dashboard.templating.list).toContainEqual(
        expect.objectContaining({ type: 'datasource', query: 'prometheus' }),
      );
  });

  test('reads every dashboard from the mounted folder', async () => {
    const { services } = await readCompose(variables);
    const mounts = (services.grafana?.volumes ?? []).map((mount) => mount.split(':'));
    const [provider] = z
      .object({ providers: z.tuple([z.object({ options: z.object({ path: z.string() }) })]) })
      .parse(await yaml(new URL('grafana/dashboards.yaml', folder))).providers;
    const [source = ''] = mounts.find(([, target]) => target === provider?.options.path) ?? [];
    const files = await readdir(new URL(`${source}/`, folder));
    expect(files.toSorted()).toEqual(dashboards.map(({ uid }) => `${uid}.json`).toSorted());
    const provisioned = mounts.filter(([, target]) =>
      target?.startsWith('/etc/grafana/provisioning/'),
    );
    expect(provisioned.map(([from]) => basename(from ?? ''))).toEqual([
      'datasource.yaml',
      'dashboards.yaml',
    ]);
  });
});
