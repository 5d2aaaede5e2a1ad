import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { describe } from 'vitest';
import { hasPrograms, pythonPackages, versionIn } from '../../../ops/check/toolchains.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { testEngine } from '../../support/clients/engine-promises.ts';
import { testTableRow } from '../../support/clients/table-row.ts';
import { type EngineHost, startRecordedHost } from '../../support/servers/engine-hosts.ts';
import { useTestApi } from '../../support/test-api.ts';

const requirements = new URL('../python/requirements.txt', import.meta.url);
const name = 'Python function engine (`leancloud`, PyPI)';

/** Starts the engine of the Python SDK. With `fetchUser`, it calls the service for each session. */
async function startPythonEngine(
  { app, apiUrl }: { app: App; apiUrl: string },
  fetchUser: boolean,
): Promise<EngineHost> {
  const child = spawn(
    'python3',
    ['-W', 'ignore', fileURLToPath(new URL('python-engine.py', import.meta.url))],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: {
        PATH: process.env.PATH,
        PYTHONPATH: await pythonPackages(requirements),
        LC_API_SERVER: apiUrl,
        LEANCLOUD_APP_ID: app.appId,
        LEANCLOUD_APP_KEY: app.appKey,
        LEANCLOUD_APP_MASTER_KEY: app.masterKey,
        LEANCLOUD_APP_HOOK_KEY: app.hookKey,
        FETCH_USER: fetchUser ? '1' : '0',
      },
    },
  );
  const [line] = await once(createInterface(child.stdout), 'line');
  const host = await startRecordedHost(`http://127.0.0.1:${JSON.parse(String(line)).port}`);
  return {
    ...host,
    async close() {
      await host.close();
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
  };
}

describe.skipIf(!hasPrograms(['python3'], name))(name, () => {
  const api = useTestApi();
  describe.each([true, false])('with fetch_user %s', (fetchUser) => {
    testEngine(api, {
      name: 'python',
      start: ({ app, apiUrl }) => startPythonEngine({ app: app(), apiUrl }, fetchUser),
      unknown: { status: 404, code: 404 },
      crashed: { status: 500, code: 141 },
    });
  });
  testTableRow({
    name,
    version: versionIn(requirements, /^leancloud==(\S+)/m),
    topics: ['functions', 'rpc', 'errors', 'hooks of `_User`', 'sessions'],
  });
});
