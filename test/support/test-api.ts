import { afterAll, beforeAll } from 'vitest';
import { Database } from '../../shared/db/pool.ts';
import { startTestApi, type TestApi } from './api.ts';
import { createTestDatabase, type TestDatabase } from './database.ts';

/** Api of a test file. It can be used in hooks and tests. */
export interface ApiFixture extends TestApi {
  readonly databaseUrl: string;
  /** Database connections of the tests. They are opened at the first use. */
  readonly db: Database;
}

/** Starts an api with its own database before the tests, and closes both after them. */
export function useTestApi(
  options: Omit<Parameters<typeof startTestApi>[0], 'databaseUrl'> = {},
): ApiFixture {
  let database: TestDatabase;
  let api: TestApi;
  let db: Database | undefined;
  beforeAll(async () => {
    database = await createTestDatabase();
    api = await startTestApi({ ...options, databaseUrl: database.url });
  });
  afterAll(async () => {
    await api?.close();
    await db?.close();
    await database?.drop();
  });
  return {
    get databaseUrl() {
      return database.url;
    },
    get db() {
      db ??= new Database({ url: database.url, applicationName: 'test' });
      return db;
    },
    get url() {
      return api.url;
    },
    get services() {
      return api.services;
    },
    createApp: (...args) => api.createApp(...args),
    request: (...args) => api.request(...args),
    close: () => api.close(),
  };
}
