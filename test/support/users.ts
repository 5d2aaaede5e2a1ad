import { randomBytes } from 'node:crypto';
import type { App } from '../../shared/domain/apps/app.ts';
import type { TestApi, TestResponse } from './api.ts';

let serial = 0;
/** Returns a unique username. */
export const newName = (): string => `user-${process.pid}-${++serial}`;

/** Returns a unique Chinese phone number. */
export const newPhone = (): string => `+86138${String(++serial + 10_000_000).padStart(8, '0')}`;

/** Returns a third-party account id in the form that clients use. */
export const newUid = (): string => randomBytes(16).toString('hex');

/** Returns third-party accounts as the api returns them: without tokens. */
export const visibleAuthData = (authData: Record<string, object>): object =>
  Object.fromEntries(
    Object.entries(authData).map(([platform, entry]) => {
      const { access_token: _a, refresh_token: _r, ...rest } = entry as Record<string, unknown>;
      return [platform, rest];
    }),
  );

/** Returns the short form of a refusal. */
export const refusalOf = ({ status, body }: TestResponse) => ({
  status,
  code: body.code,
  error: typeof body.error,
});
export const refused = (code: number, status = 400) => ({ status, code, error: 'string' });

/** Client of one user of an app. It sends its session by default. */
export class TestUser {
  readonly #api: TestApi;
  readonly #app: App;
  readonly body: Record<string, unknown> & { objectId: string; username: string };
  token: string;

  constructor(api: TestApi, app: App, body: Record<string, unknown>) {
    this.#api = api;
    this.#app = app;
    this.body = { ...body, objectId: String(body.objectId), username: String(body.username) };
    this.token = String(body.sessionToken);
  }

  get id(): string {
    return this.body.objectId;
  }

  request(method: string, path: string, body?: unknown): Promise<TestResponse> {
    return this.#api.request(method, path, {
      app: this.#app,
      headers: { 'X-LC-Session': this.token },
      ...(body === undefined ? {} : { body }),
    });
  }

  put(body: unknown, query = ''): Promise<TestResponse> {
    return this.request('PUT', `/1.1/users/${this.id}${query}`, body);
  }

  /** Returns the whole user. */
  async me(): Promise<Record<string, unknown>> {
    return (await this.request('GET', '/1.1/users/me')).body;
  }
}

/** Signs up with a password. */
export async function signUp(api: TestApi, app: App, more: object = {}): Promise<TestUser> {
  const reply = await api.request('POST', '/1.1/users', {
    app,
    body: { username: newName(), password: 'a password', ...more },
  });
  if (reply.status !== 201)
    throw new Error(`sign-up: ${reply.status} ${JSON.stringify(reply.body)}`);
  return new TestUser(api, app, reply.body);
}

/** Signs up or logs in with third-party accounts. */
export async function enterWith(api: TestApi, app: App, authData: object): Promise<TestUser> {
  const reply = await api.request('POST', '/1.1/users', { app, body: { authData } });
  if (reply.status >= 300)
    throw new Error(`authData: ${reply.status} ${JSON.stringify(reply.body)}`);
  return new TestUser(api, app, reply.body);
}
