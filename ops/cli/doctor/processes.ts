import { type Finding, fail, ok, reasonOf } from '../../../api/services/operator/doctor/finding.ts';

const timeoutMs = 5000;

/** Checks that a process is ready. */
export async function checkProcess(name: 'api' | 'dispatcher', url: string): Promise<Finding> {
  const start =
    name === 'api'
      ? 'Start it with `npm start` or `carillon api`; PUBLIC_URL or PORT say where it is looked for.'
      : 'Start it with `npm start` or `carillon dispatcher`; METRICS_PORT says where it is looked for.';
  try {
    const response = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(timeoutMs) });
    await response.body?.cancel();
    if (response.ok) return ok(name, `ready at ${url}`);
    const detail = `not ready at ${url}: status ${response.status}`;
    const advice =
      response.status === 503 ? 'It cannot reach its database: see its log.' : 'Is something else there?';
    return fail(name, detail, advice);
  } catch (error) {
    return fail(name, `does not answer at ${url}: ${reasonOf(error)}`, start);
  }
}

/** Checks that the api accepts our admin token. Requests an impossible app: 404 means accepted, 401 means refused. */
export async function checkAdminToken(url: string, adminToken: string | undefined): Promise<Finding[]> {
  const name = 'admin token';
  if (adminToken === undefined)
    return [fail(name, 'it is missing', 'Set CARILLON_ADMIN_TOKEN to the one that the api has.')];
  try {
    const response = await fetch(`${url}/console/api/apps/-`, {
      headers: { Authorization: `Bearer ${adminToken}` },
      signal: AbortSignal.timeout(timeoutMs),
    });
    await response.body?.cancel();
    if (response.status !== 401) return [ok(name, 'the api takes it')];
    return [fail(name, 'the api refuses it', 'Set CARILLON_ADMIN_TOKEN to the one that the api has.')];
  } catch {
    // `checkProcess` reports an api that does not answer.
    return [];
  }
}
