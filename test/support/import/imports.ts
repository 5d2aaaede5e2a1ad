import { createHash, randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, beforeEach } from 'vitest';
import { runImport } from '../../../ops/import/run.ts';
import { Database } from '../../../shared/db/pool.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { startTestApi, type TestApi, testEnvironment } from '../api.ts';
import { type CliResult, carillon } from '../cli.ts';
import { createTestDatabase, type TestDatabase } from '../database.ts';
import { newName } from '../users.ts';

export const newId = (): string => randomBytes(12).toString('hex');

export const anInstallation = (more: object = {}) => ({
  objectId: newId(),
  deviceType: 'ios',
  deviceToken: randomBytes(32).toString('hex'),
  createdAt: '2025-07-02T07:58:45.609Z',
  updatedAt: new Date().toISOString(),
  ...more,
});

export const aUser = (more: object = {}) => ({
  objectId: newId(),
  username: newName(),
  createdAt: '2019-02-23T08:00:37.609Z',
  updatedAt: '2021-07-02T07:58:53.087Z',
  ...more,
});

/**
 * Hashes a password as the documentation of LeanCloud describes it. This does not use our
 * code.
 */
export function publicHash(password: string, salt: string): string {
  let digest = createHash('sha512')
    .update(salt + password)
    .digest();
  for (let i = 0; i < 512; i += 1) digest = createHash('sha512').update(digest).digest();
  return digest.toString('base64');
}

interface Open {
  database: TestDatabase;
  db: Database;
  api: TestApi;
}

/**
 * Api and database for a test file. Each test gets an app and a folder for the files of an export.
 */
class ImportFixture {
  #open: Open | undefined;
  #each: { app: App; folder: string } | undefined;

  async open(): Promise<void> {
    const database = await createTestDatabase();
    const db = new Database({ url: database.url, applicationName: 'test' });
    this.#open = { database, db, api: await startTestApi({ databaseUrl: database.url }) };
  }

  async close(): Promise<void> {
    await this.api.close();
    await this.db.close();
    await this.#open?.database.drop();
  }

  async begin(): Promise<() => Promise<void>> {
    const app = await this.api.createApp({ installationValidityDays: 365 });
    const folder = await mkdtemp(join(tmpdir(), 'carillon-import-'));
    this.#each = { app, folder };
    return () => rm(folder, { recursive: true });
  }

  get api(): TestApi {
    return known(this.#open).api;
  }

  get db(): Database {
    return known(this.#open).db;
  }

  get databaseUrl(): string {
    return known(this.#open).database.url;
  }

  get app(): App {
    return known(this.#each).app;
  }

  get folder(): string {
    return known(this.#each).folder;
  }

  /** Writes records or raw lines to a file of the export. If a class is given, adds a heading. */
  exportFile = async (
    name: string,
    records: (object | string)[],
    className?: string,
  ): Promise<string> => {
    const lines = records.map((record) =>
      typeof record === 'string' ? record : JSON.stringify(record),
    );
    const heading = `#filetype:JSON-streaming {"type":"Class","class":"${className}"}`;
    const text = [...(className ? [heading] : []), ...lines].join('\n');
    const path = join(this.folder, name);
    await writeFile(path, name.endsWith('.gz') ? gzipSync(text) : text);
    return path;
  };

  run = (args: string[], env: Record<string, string> = {}): Promise<CliResult> =>
    carillon(['import', '--app', this.app.appId, ...args], {
      env: { ...testEnvironment(this.databaseUrl), ...env },
      cwd: this.folder,
    });

  /** Runs the command with `--json`. Returns its document and its exit code. */
  importedByCommand = async (...args: string[]) => {
    const { code, stderr, json } = await this.run([...args, '--json']);
    return { code, stderr, ...json() };
  };

  /** Runs the import in this process. Returns the output and the exit code. */
  imported = async (path: string) => {
    const env = {
      ...testEnvironment(this.databaseUrl),
      CARILLON_DATA_DIR: join(this.folder, '.carillon'),
    };
    const report = await runImport([path], { app: this.app.appId }, { isJson: true, env });
    return { code: report.isBad ? 1 : 0, ...JSON.parse(JSON.stringify(report.document)) };
  };

  asMaster = (path: string) =>
    this.api.request('GET', `/1.1${path}`, { app: this.app, master: true });

  installationAt = async (id: string) => (await this.asMaster(`/installations/${id}`)).body;

  countOf = async (table: string): Promise<number> => {
    const { rows } = await this.db.query<{ n: number }>(
      `SELECT count(*)::int AS n FROM ${table} WHERE app_id = $1`,
      [this.app.appId],
    );
    return rows[0]?.n ?? -1;
  };
}

function known<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('it is available within tests only');
  return value;
}

/** Creates the fixture. Call it once at the top of a test file. */
export function useImports(): ImportFixture {
  const fixture = new ImportFixture();
  beforeAll(() => fixture.open());
  afterAll(() => fixture.close());
  beforeEach(() => fixture.begin());
  return fixture;
}
