import { randomBytes } from 'node:crypto';
import type { App } from '../../shared/domain/apps/app.ts';
import type { TestApi, TestResponse } from './api.ts';

let serial = 0;
/** A name that no other user of the run has. */
export const newName = (): string => `user-${process.pid}-${++serial}`;

/** A number in China's plan that no other user of the file has. */
export const newPhone = (): string => `+86138${String(++serial + 10_000_000).padStart(8, '0')}`;

/** As clients make it. */
export const newUid = (): string => randomBytes(16).toString('hex');

/** Third-party accounts as replies show them: without the tokens that the tests send. */
export const shown = (authData: Record<string, object>): object =>
  Object.fromEntries(
    Object.entries(authData).map(([platform, entry]) => {
      const { access_token: _a, refresh_token: _r, ...rest } = entry as Record<string, unknown>;
      return [platform, rest];
    }),
  );

/** The short status of a refusal. */
export const refusalOf = ({ status, body }: TestResponse) => ({
  status,
  code: body.code,
  error: typeof body.error,
});
export const refused = (code: number, status = 400) => ({ status, code, error: 'string' });

/** Calls as one user of one app: with its session, unless another one is given. */
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

  /** The whole user, as it sees itself. */
  async me(): Promise<Record<string, unknown>> {
    return (await this.request('GET', '/1.1/users/me')).body;
  }
}

/** Registers with a password. */
export async function signUp(api: TestApi, app: App, more: object = {}): Promise<TestUser> {
  const reply = await api.request('POST', '/1.1/users', {
    app,
    body: { username: newName(), password: 'a password', ...more },
  });
  if (reply.status !== 201) throw new Error(`sign-up: ${reply.status} ${JSON.stringify(reply.body)}`);
  return new TestUser(api, app, reply.body);
}

/** Registers or logs in with third-party accounts. */
export async function enterWith(api: TestApi, app: App, authData: object): Promise<TestUser> {
  const reply = await api.request('POST', '/1.1/users', { app, body: { authData } });
  if (reply.status >= 300) throw new Error(`authData: ${reply.status} ${JSON.stringify(reply.body)}`);
  return new TestUser(api, app, reply.body);
}
