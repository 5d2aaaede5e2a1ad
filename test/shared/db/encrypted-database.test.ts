import { once } from 'node:events';
import { appendFile, chmod, chown, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { type AddressInfo, connect, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { checkDatabase, checkEncryption } from '../../../ops/cli/doctor/database.ts';
import {
  type EmbeddedPostgres,
  startEmbeddedPostgres,
} from '../../../ops/local/postgres/server.ts';
import { openCertificateAuthority } from '../../../ops/sandbox/kit/certificates.ts';
import { systemClock } from '../../../shared/clock.ts';
import { connectionUrl } from '../../../shared/config/environment.ts';
import { Listener } from '../../../shared/db/listener.ts';
import { Database } from '../../../shared/db/pool.ts';
import { migrate, pendingChanges } from '../../../shared/queue/migrate.ts';
import { silentLog } from '../../support/api.ts';

/** Unused loopback address. It is needed because the port of the embedded server is fixed. */
const host = `127.${1 + (process.pid % 250)}.${1 + (Math.floor(process.pid / 250) % 250)}.7`;

let folder: string;
let server: EmbeddedPostgres;
/** Relay to the server under a name that is not in its certificate. */
let otherName: Server;
let ca: string;
let unrelatedCa: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'carillon-ssl-'));
  await chmod(folder, 0o755);
  const dataDir = join(folder, 'data');
  const settings = { listen_addresses: host };
  server = await startEmbeddedPostgres({ dataDir, memoryMb: 512, durable: false, settings });
  const authority = await openCertificateAuthority();
  const { certificate, privateKey } = await authority.issueServer([host]);
  const { uid, gid } = await stat(join(dataDir, 'pg_hba.conf'));
  for (const [name, text] of [
    ['server.crt', certificate],
    ['server.key', privateKey],
  ] as const) {
    await writeFile(join(dataDir, name), text, { mode: 0o600 });
    await chown(join(dataDir, name), uid, gid);
  }
  await writeFile(join(dataDir, 'pg_hba.conf'), 'local all all trust\n');
  await appendFile(join(dataDir, 'pg_hba.conf'), 'hostssl all all 127.0.0.0/8 trust\n');
  await appendFile(join(dataDir, 'pg_hba.conf'), 'hostnossl carillon plain 127.0.0.0/8 trust\n');
  const db = new Database({ url: server.databaseUrl, applicationName: 'test' });
  await db.query('ALTER SYSTEM SET ssl = on');
  await db.query('SELECT pg_reload_conf()');
  await db.query('CREATE ROLE plain LOGIN');
  await db.close();
  ca = join(folder, 'ca.pem');
  await writeFile(ca, authority.certificate);
  unrelatedCa = join(folder, 'unrelated.pem');
  await writeFile(unrelatedCa, (await openCertificateAuthority()).certificate);
  otherName = createServer((socket) => {
    const upstream = connect(5432, host);
    socket.pipe(upstream).pipe(socket);
    socket.on('error', () => upstream.destroy());
    upstream.on('error', () => socket.destroy());
  });
  otherName.listen(0, '127.0.0.1');
  await once(otherName, 'listening');
});

afterAll(async () => {
  otherName?.close();
  await server?.stop('immediate');
  await rm(folder, { recursive: true, force: true });
});

const urlOf = (query: string, user = 'carillon') =>
  `postgresql://${user}@${host}:5432/carillon${query}`;

function otherUrlOf(query: string): string {
  const { port } = otherName.address() as AddressInfo;
  return `postgresql://carillon@127.0.0.1:${port}/carillon${query}`;
}

function open(url: string): Database {
  const db = new Database({ url, applicationName: 'test' });
  onTestFinished(() => db.close());
  return db;
}

async function isEncrypted(url: string): Promise<boolean | undefined> {
  const { rows } = await open(url).query<{ ssl: boolean }>(
    'SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()',
  );
  return rows[0]?.ssl;
}

describe('sslmode', () => {
  test.each(['require', 'prefer', 'no-verify'])(
    '%s encrypts but verifies nothing',
    async (mode) => {
      expect(await isEncrypted(urlOf(`?sslmode=${mode}`))).toBe(true);
      expect(await isEncrypted(otherUrlOf(`?sslmode=${mode}`))).toBe(true);
    },
  );

  test('require with sslrootcert verifies the authority, but not the name', async () => {
    for (const mode of ['require', 'verify-ca']) {
      expect(await isEncrypted(otherUrlOf(`?sslmode=${mode}&sslrootcert=${ca}`))).toBe(true);
      await expect(
        isEncrypted(urlOf(`?sslmode=${mode}&sslrootcert=${unrelatedCa}`)),
      ).rejects.toThrow(/certificate/);
    }
  });

  test('verify-full verifies the name too', async () => {
    expect(await isEncrypted(urlOf(`?sslmode=verify-full&sslrootcert=${ca}`))).toBe(true);
    await expect(isEncrypted(otherUrlOf(`?sslmode=verify-full&sslrootcert=${ca}`))).rejects.toThrow(
      /does not match certificate/,
    );
    await expect(isEncrypted(urlOf('?sslmode=verify-full'))).rejects.toThrow(/certificate/);
    await expect(isEncrypted(urlOf('?sslrootcert=system'))).rejects.toThrow(/certificate/);
  });

  test.each(['', '?sslmode=disable', '?sslmode=allow'])('%j does not encrypt', async (query) => {
    expect(await isEncrypted(urlOf(query, 'plain'))).toBe(false);
    await expect(isEncrypted(urlOf(query))).rejects.toThrow(/no encryption/);
  });

  test('applies to migrations, the queue and notifications too', async () => {
    const url = otherUrlOf('?sslmode=require');
    expect((await migrate(url)).length).toBeGreaterThan(0);
    expect(await pendingChanges(url)).toEqual([]);
    const listener = new Listener(url, silentLog);
    onTestFinished(() => listener.close());
    await listener.start();
    const { promise: received, resolve } = Promise.withResolvers<string>();
    await listener.listen('carillon_test', resolve);
    await open(url).query("SELECT pg_notify('carillon_test', 'hello')");
    expect(await received).toBe('hello');
  });
});

test('a URL without sslmode stays unchanged', () => {
  const socket = 'postgresql://carillon@/carillon?host=/tmp/x&port=5432';
  expect(connectionUrl(socket)).toBe(socket);
});

test.each([
  [(): string => urlOf('?sslmode=require'), /encrypted \(TLSv1\.\d\)$/],
  [(): string => urlOf('', 'plain'), /the connection is not encrypted$/],
  [(): string => server.databaseUrl, /through a socket of this machine$/],
])('doctor reports whether a connection is encrypted (%#)', async (url, words) => {
  const findings = await checkDatabase(open(url()), systemClock);
  expect(findings[0]).toMatchObject({ status: 'ok', detail: expect.stringMatching(words) });
});

test('doctor warns only of an unencrypted connection to another machine', () => {
  expect(checkEncryption({ tls: null, is_local: false })).toMatchObject([
    { name: 'encryption', status: 'warn', advice: expect.stringContaining('sslmode=verify-full') },
  ]);
  expect(checkEncryption({ tls: null, is_local: true })).toEqual([]);
  expect(checkEncryption({ tls: 'TLSv1.3', is_local: false })).toEqual([]);
});
