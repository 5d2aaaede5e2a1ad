import { afterAll, beforeAll, expect } from 'vitest';
import type { App } from '../../../../shared/domain/apps/app.ts';
import { startTestApi, type TestApi, type TestResponse } from '../../../support/api.ts';
import { createTestDatabase, type TestDatabase } from '../../../support/database.ts';
import { movableClock } from '../../../support/gateways/apns.ts';
import { newPhone, TestUser } from '../../../support/users.ts';

export const minute = 60_000;

/** Returns a wrong code of the right format. */
export const another = (code: string) => String((Number(code) + 1) % 1_000_000).padStart(6, '0');

export const numberOf = (user: TestUser) => String(user.body.mobilePhoneNumber);

export const successes = (replies: TestResponse[]) =>
  replies.filter(({ status }) => status < 300).length;

/** Starts two api processes on one database with a movable clock, for the tests of a file. */
export function usePhones() {
  let database: TestDatabase;
  let api: TestApi;
  let secondApi: TestApi;
  let app: App;
  const clock = movableClock(Date.now());

  beforeAll(async () => {
    database = await createTestDatabase();
    api = await startTestApi({ databaseUrl: database.url, clock });
    secondApi = await startTestApi({ databaseUrl: database.url, clock });
    app = await api.createApp();
  });

  afterAll(async () => {
    await Promise.all([api.close(), secondApi.close()]);
    await database.drop();
  });

  const post = (path: string, body: object, of = app) =>
    api.request('POST', `/1.1/${path}`, { app: of, body });

  /** Returns the messages to a phone number or email address, newest first. */
  async function messages(to: string, of = app) {
    const path = `/console/api/apps/${of.appId}/outbox?to=${encodeURIComponent(to)}`;
    return (await api.request('GET', path, { admin: true })).body.results;
  }

  const codeTo = async (to: string): Promise<string> => (await messages(to))[0].code;

  /** Requests a code one minute after the previous request. */
  async function ask(path: string, body: { mobilePhoneNumber: string } & object): Promise<string> {
    clock.moveMs(minute);
    const reply = await post(path, body);
    expect([reply.status, reply.body]).toEqual([200, {}]);
    return codeTo(body.mobilePhoneNumber);
  }

  /** Signs up by phone. */
  async function newUser(mobilePhoneNumber = newPhone(), more: object = {}): Promise<TestUser> {
    const smsCode = await ask('requestSmsCode', { mobilePhoneNumber });
    const reply = await post('usersByMobilePhone', { mobilePhoneNumber, smsCode, ...more });
    expect(reply.status, JSON.stringify(reply.body)).toBe(201);
    return new TestUser(api, app, reply.body);
  }

  /** Makes fifty concurrent calls, distributed over both processes. */
  const fifty = (call: (api: TestApi) => Promise<TestResponse>) =>
    Promise.all(Array.from({ length: 50 }, (_, i) => call(i % 2 ? api : secondApi)));

  return {
    clock,
    post,
    messages,
    codeTo,
    ask,
    newUser,
    fifty,
    get databaseUrl() {
      return database.url;
    },
    get api() {
      return api;
    },
    get secondApi() {
      return secondApi;
    },
    get app() {
      return app;
    },
  };
}
