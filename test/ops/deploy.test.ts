import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { parseYaml } from '@redocly/openapi-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { connectionsOf } from '../../ops/cli/doctor/connections.ts';
import { readConfig } from '../../shared/config/config.ts';

const run = promisify(execFile);
const counts = z.array(z.object({ name: z.string(), count: z.number() }));
/** Variables that are required to read any configuration. */
const required = {
  DATABASE_URL: 'postgresql://carillon@localhost/carillon',
  CARILLON_SECRET: Buffer.alloc(32).toString('base64'),
  CARILLON_ADMIN_TOKEN: 'a token of the operator',
};
const analyze = '/usr/bin/systemd-analyze';
const folder = new URL('../../ops/deploy/systemd/', import.meta.url);

/**
 * Maximum exposure of a unit in tenths, as systemd rates it from 0 to 100. Units without
 * restrictions have 96.
 */
const maxExposure = 15;

describe.skipIf(!existsSync(analyze))('the systemd units', () => {
  let copies: string;
  let units: string[];

  beforeAll(async () => {
    copies = await mkdtemp(join(tmpdir(), 'carillon-units-'));
    const names = (await readdir(folder)).filter((name) => name.endsWith('.service'));
    units = names.map((name) => join(copies, name.replace('@.', '@8080.')));
    // systemd requires that the program exists.
    for (const [i, name] of names.entries()) {
      const text = await readFile(new URL(name, folder), 'utf8');
      const program = /^ExecStart=(\S+)/m.exec(text)?.[1] ?? '';
      await writeFile(units[i] ?? '', text.replace(program, process.execPath));
    }
  });
  afterAll(() => rm(copies, { recursive: true, force: true }));

  test('are accepted by systemd without a warning', async () => {
    expect(units).toHaveLength(3);
    const { stdout, stderr } = await run(analyze, ['verify', '--man=no', ...units]);
    // Units of the machine on which our units depend may cause their own warnings.
    expect((stdout + stderr).split('\n').filter((line) => line.includes('carillon'))).toEqual([]);
  });

  test('are exposed to little of the machine', async () => {
    for (const unit of units)
      await run(analyze, ['security', '--offline=true', `--threshold=${maxExposure}`, unit]);
  });

  test('a misspelled line is detected', async () => {
    const [unit = ''] = units;
    await writeFile(
      unit,
      (await readFile(unit, 'utf8')).replace('NoNewPrivileges', 'NoNewPriveleges'),
    );
    const { stderr } = await run(analyze, ['verify', '--man=no', unit]).catch((error) => error);
    expect(stderr).toContain('NoNewPriveleges');
  });
});

test('the file of variables has the names that the processes read', async () => {
  const lines = (await readFile(new URL('carillon.env', folder), 'utf8')).split('\n');
  const env = Object.fromEntries(
    lines.filter((line) => /^\w+=/.test(line)).map((line) => line.split(/=(.*)/, 2)),
  );
  const filled = {
    ...env,
    DATABASE_URL: 'postgresql://carillon@db.example/carillon',
    CARILLON_SECRET: Buffer.alloc(32).toString('base64'),
    CARILLON_ADMIN_TOKEN: 'a token of the operator',
    PUBLIC_URL: 'https://push.example',
  };
  expect(readConfig(filled)).toMatchObject({
    host: '127.0.0.1',
    trustedProxies: 1,
    publicUrl: 'https://push.example',
  });
});

test('the image and the manifests run the processes as the same user', async () => {
  const deploy = new URL('../../ops/deploy/', import.meta.url);
  const dockerfile = await readFile(new URL('image/Dockerfile', deploy), 'utf8');
  expect(dockerfile).toMatch(/^USER \$\{RUN_AS\}:\$\{RUN_AS\}$/m);
  const user = /^ARG RUN_AS=(\d+)$/m.exec(dockerfile)?.[1];
  for (const name of ['api.yaml', 'dispatcher.yaml', 'migrate.yaml']) {
    const manifest = await readFile(new URL(`kubernetes/base/${name}`, deploy), 'utf8');
    expect(manifest.match(/(?<=runAs(User|Group): )\d+/g)).toEqual([user, user]);
  }
});

describe('the Kubernetes overlays', () => {
  const overlays = new URL('../../ops/deploy/kubernetes/overlays/', import.meta.url);
  const read = async (path: string) => parseYaml(await readFile(new URL(path, overlays), 'utf8'));

  test('give PostgreSQL enough connections for the large overlay and KEDA', async () => {
    const { api, dispatcher } = connectionsOf(readConfig({ ...required, DISPATCHER_THREADS: '2' }));
    const { replicas } = z
      .object({ replicas: counts })
      .parse(await read('large/kustomization.yaml'));
    const countOf = (name: string) => replicas.find((one) => one.name === name)?.count ?? 0;
    const scaled = z
      .object({ spec: z.object({ maxReplicaCount: z.number() }) })
      .parse(await read('keda/scaled-dispatcher.yaml'));
    const dispatchers = Math.max(countOf('carillon-dispatcher'), scaled.spec.maxReplicaCount);
    const cluster = z
      .object({
        spec: z.object({ postgresql: z.object({ parameters: z.record(z.string(), z.string()) }) }),
      })
      .parse(await read('cloudnative-pg/cluster.yaml'));
    const maxConnections = Number(cluster.spec.postgresql.parameters.max_connections);
    // Some connections are for operators of the cluster and the database.
    expect(countOf('carillon-api') * api + dispatchers * dispatcher).toBeLessThan(
      maxConnections - 20,
    );
  });
});
