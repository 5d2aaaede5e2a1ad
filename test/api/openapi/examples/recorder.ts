import type { ExampleCredential, Examples } from '../../../../api/openapi/operation.ts';
import type { Route } from '../../../../api/route.ts';
import type { App } from '../../../../shared/domain/apps/app.ts';
import type { Json } from '../../../../shared/domain/json.ts';
import type { TestApi } from '../../../support/api.ts';

/** Request of an example. */
export interface ExampleRequest {
  /** Path parameters. By default, `appId` is the id of the recorder's app. */
  path?: Record<string, string>;
  query?: Record<string, string | number>;
  /** Body, sent unchanged as JSON. */
  body?: unknown;
  /** Session token of a user. */
  session?: string;
  /** True to send the master key to a call that also accepts the app key. */
  master?: boolean;
  /** Headers that replace the operator's token or the keys of the app. */
  headers?: Record<string, string>;
}

/** Returns the kinds of the credentials that a request has. */
function credentialsOf(
  { auth }: Route,
  { master = auth !== 'app', session }: ExampleRequest,
): ExampleCredential[] {
  if (auth === 'admin') return ['adminToken'];
  if (auth === 'none' || auth === 'login') return [];
  return [master ? 'masterKey' : 'appKey', ...(session === undefined ? [] : ['session' as const])];
}

/** Sends requests by operation name, and records the first success of each operation. */
export class ExampleRecorder {
  readonly #api: TestApi;
  readonly #routes: ReadonlyMap<string, Route>;
  /** Recorded examples by operation, with the values of this run. */
  readonly examples: Examples = {};
  /** App that the calls use. */
  app: App;

  constructor(api: TestApi, routes: readonly Route[], app: App) {
    this.#api = api;
    this.#routes = new Map(routes.map((route) => [route.operation, route]));
    this.app = app;
  }

  /** Sends a request and returns the body of the reply. Throws if the call is refused. */
  // biome-ignore lint/suspicious/noExplicitAny: replies are free-form JSON
  async send(operation: string, request: ExampleRequest = {}): Promise<any> {
    const route = this.#routes.get(operation);
    if (!route) throw new Error(`no operation ${operation}`);
    const { query, body, session, headers } = request;
    const own: Record<string, string> = {
      ...(route.paths[0]?.includes(':appId') ? { appId: this.app.appId } : {}),
      ...request.path,
    };
    const path = (route.paths[0] ?? '').replace(/:(\w+)/g, (_, name) =>
      encodeURIComponent(own[String(name)] ?? ''),
    );
    const texts = Object.entries(query ?? {}).map(([name, value]): [string, string] => [
      name,
      String(value),
    ]);
    const search = query ? `?${new URLSearchParams(texts)}` : '';
    const reply = await this.#api.request(route.method, path + search, {
      ...(headers ? {} : this.#credentials(route, request.master)),
      ...(body === undefined ? {} : { body }),
      headers: { ...headers, ...(session === undefined ? {} : { 'X-LC-Session': session }) },
    });
    if (reply.status >= 300)
      throw new Error(
        `${operation} ${path}${search}: ${reply.status} ${JSON.stringify(reply.body)}`,
      );
    const credentials = credentialsOf(route, request);
    this.examples[operation] ??= structuredClone({
      status: reply.status,
      ...(credentials.length > 0 ? { credentials } : {}),
      ...(Object.keys(own).length > 0 ? { path: own } : {}),
      ...(query ? { query } : {}),
      ...(body === undefined ? {} : { body: body as Json }),
      ...(typeof reply.body === 'object' ? { reply: reply.body } : {}),
    });
    return reply.body;
  }

  #credentials(
    { auth }: Route,
    master = auth !== 'app',
  ): { admin?: boolean; app?: App; master?: boolean } {
    if (auth === 'admin') return { admin: true };
    return auth === 'none' || auth === 'login' ? {} : { app: this.app, master };
  }
}
