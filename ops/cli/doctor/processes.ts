import { type Finding, found, reasonOf } from '../../../api/services/operator/doctor/finding.ts';

const timeoutMs = 5000;

/** Checks that a process is ready. */
export async function checkProcess(name: 'api' | 'dispatcher', url: string): Promise<Finding> {
  try {
    const response = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(timeoutMs) });
    await response.body?.cancel();
    if (response.ok) return found({ name, status: 'ok', code: 'processReady', params: { url } });
    const code = response.status === 503 ? 'processUnready' : 'processOther';
    return found({ name, status: 'fail', code, params: { url, status: response.status } });
  } catch (error) {
    const code = name === 'api' ? 'apiSilent' : 'dispatcherSilent';
    return found({ name, status: 'fail', code, params: { url, why: reasonOf(error) } });
  }
}

/** Checks that the api accepts our admin token. Requests an impossible app: 404 means accepted, 401 means refused. */
export async function checkAdminToken(url: string, adminToken: string | undefined): Promise<Finding[]> {
  const name = 'admin token';
  if (adminToken === undefined) return [found({ name, status: 'fail', code: 'adminTokenMissing' })];
  try {
    const response = await fetch(`${url}/console/api/apps/-`, {
      headers: { Authorization: `Bearer ${adminToken}` },
      signal: AbortSignal.timeout(timeoutMs),
    });
    await response.body?.cancel();
    if (response.status !== 401) return [found({ name, status: 'ok', code: 'adminTokenFine' })];
    return [found({ name, status: 'fail', code: 'adminTokenRefused' })];
  } catch {
    // `checkProcess` reports an api that does not answer.
    return [];
  }
}
