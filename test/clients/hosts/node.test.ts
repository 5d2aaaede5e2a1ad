import { describe } from 'vitest';
import { npmVersion } from '../../../ops/check/toolchains.ts';
import { testEngine } from '../../support/clients/engine-promises.ts';
import { testTableRow } from '../../support/clients/table-row.ts';
import { startEngine } from '../../support/sdk/engine.ts';
import { startRecordedHost } from '../../support/servers/engine-hosts.ts';
import { useTestApi } from '../../support/test-api.ts';

/**
 * Tests the Node engine like every other host. functions.test.ts and hooks.test.ts test it further.
 */
const name = 'Node function engine (`leanengine`, npm)';

describe(name, () => {
  testEngine(useTestApi(), {
    name: 'node',
    async start({ app, apiUrl }) {
      const engine = await startEngine(app(), { apiUrl, withHooks: true });
      const host = await startRecordedHost(engine.url);
      return {
        ...host,
        async close() {
          await host.close();
          await engine.close();
        },
      };
    },
    unknown: { status: 404, code: 1 },
    crashed: { status: 500, code: 1 },
  });
  testTableRow({
    name,
    version: npmVersion('leanengine'),
    topics: ['sessions', 'users that delete themselves'],
  });
});
