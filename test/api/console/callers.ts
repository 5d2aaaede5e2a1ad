import type { OperatorRole } from '../../../shared/domain/admin/operator.ts';
import type { TestApi, TestRequest, TestResponse } from '../../support/api.ts';

/** Calls the admin API as the holder of a token, or with the given headers. */
export type ConsoleCall = (
  method: string,
  path: string,
  request?: TestRequest,
) => Promise<TestResponse>;

const base = '/console/api';

/** Creates a token and returns its secret. */
export async function createToken(
  api: Pick<TestApi, 'request'>,
  role: OperatorRole,
  more: { apps?: string[]; expiresAt?: string; name?: string } = {},
): Promise<{ id: string; token: string }> {
  const body = { name: `a ${role}`, role, ...more };
  const reply = await api.request('POST', `${base}/tokens`, { admin: true, body });
  if (reply.status !== 201) throw new Error(`no token: ${JSON.stringify(reply.body)}`);
  return reply.body;
}

/**
 * Creates a token and returns a function that makes calls with it. Paths are relative to
 * `/console/api`.
 */
export async function callerOf(
  api: Pick<TestApi, 'request'>,
  role: OperatorRole,
  more: Parameters<typeof createToken>[2] = {},
): Promise<ConsoleCall> {
  const { token } = await createToken(api, role, more);
  return (method, path, request = {}) =>
    api.request(method, base + path, {
      ...request,
      headers: { Authorization: `Bearer ${token}`, ...request.headers },
    });
}

/** Logs in and returns a function that makes calls with the cookie, like the console. */
export async function pageOf(
  api: Pick<TestApi, 'request'>,
  credential: { token: string } | { code: string },
): Promise<ConsoleCall> {
  const reply = await api.request('POST', `${base}/session`, { body: credential });
  if (reply.status !== 200) throw new Error(`no session: ${JSON.stringify(reply.body)}`);
  const [cookie = ''] = (reply.headers.get('set-cookie') ?? '').split(';');
  const headers = {
    Cookie: cookie,
    'Sec-Fetch-Site': 'same-origin',
    'Content-Type': 'application/json',
  };
  return (method, path, request = {}) =>
    api.request(method, base + path, { ...request, headers: { ...headers, ...request.headers } });
}
