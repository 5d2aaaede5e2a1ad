import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach } from 'vitest';
import { newKey } from '../../../shared/domain/ids.ts';
import { startTestApi, type TestApi, testEnvironment } from '../api.ts';
import { type CliOptions, carillon } from '../cli.ts';
import { createTestDatabase, type TestDatabase } from '../database.ts';

export const newKeys = () => ({ appKey: newKey(), masterKey: newKey(), hookKey: newKey() });

/** Returns the item of a check list with this id. */
export const item = (document: { checkList: { id: string }[] }, id: string) =>
  document.checkList.find((one) => one.id === id);

interface Open {
  database: TestDatabase;
  api: TestApi;
}

/**
 * Api for a test file. Each test gets the id of an app that does not exist yet, and a folder for
 * its export.
 */
class MoveInFixture {
  appId = '';
  folder = '';
  #open: Open | undefined;

  async open(): Promise<void> {
    const database = await createTestDatabase();
    this.#open = { database, api: await startTestApi({ databaseUrl: database.url }) };
  }

  async close(): Promise<void> {
    await this.#open?.api.close();
    await this.#open?.database.drop();
  }

  async begin(): Promise<() => Promise<void>> {
    this.folder = await mkdtemp(join(tmpdir(), 'carillon-move-in-'));
    await mkdir(join(this.folder, 'export'));
    this.appId = `${newKey()}-gzGzoHsz`;
    return () => rm(this.folder, { recursive: true });
  }

  get api(): TestApi {
    if (!this.#open) throw new Error('it is available within tests only');
    return this.#open.api;
  }

  /** Writes a file of the export. */
  write = (name: string, records: object[]): Promise<void> => {
    const lines = records.map((record) => JSON.stringify(record));
    return writeFile(join(this.folder, 'export', name), lines.join('\n'));
  };

  run = (args: string[], options: CliOptions = {}) => {
    const databaseUrl = this.#open?.database.url ?? '';
    const env = { ...testEnvironment(databaseUrl), PUBLIC_URL: this.api.url, ...options.env };
    return carillon(args, { cwd: this.folder, ...options, env });
  };

  moveIn = (args: string[] = [], options: CliOptions = {}) =>
    this.run(['move-in', 'export', '--app-id', this.appId, ...args, '--json'], options);

  /** Returns the app as the admin API returns it. */
  stored = () => this.api.request('GET', `/console/api/apps/${this.appId}`, { admin: true });
}

/** Creates the fixture. Call it once at the top of a test file. */
export function useMoveIn(): MoveInFixture {
  const fixture = new MoveInFixture();
  beforeAll(() => fixture.open());
  afterAll(() => fixture.close());
  beforeEach(() => fixture.begin());
  return fixture;
}
