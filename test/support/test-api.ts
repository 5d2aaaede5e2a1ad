import { afterAll, beforeAll } from 'vitest';
import { startTestApi, type TestApi } from './api.ts';
import { createTestDatabase, type TestDatabase } from './database.ts';

/** Api of a test file, ready within its hooks and tests. */
export interface ApiFixture extends TestApi {
  readonly databaseUrl: string;
}

/** Starts an api with its own database before the tests, and closes both after them. */
export function useTestApi(
  options: Omit<Parameters<typeof startTestApi>[0], 'databaseUrl'> = {},
): ApiFixture {
  let database: TestDatabase;
  let api: TestApi;
  beforeAll(async () => {
    database = await createTestDatabase();
    api = await startTestApi({ ...options, databaseUrl: database.url });
  });
  afterAll(async () => {
    await api?.close();
    await database?.drop();
  });
  return {
    get databaseUrl() {
      return database.url;
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
