import { expect, test } from 'vitest';
import { completedCredentials } from '../../../api/services/operator/gateways/profiles.ts';
import { Vault } from '../../../shared/crypto.ts';
import { putProfile } from '../../../shared/db/tables/profiles.ts';
import type { JsonObject } from '../../../shared/domain/json.ts';
import { testConfig } from '../../support/api.ts';
import { runDuring } from '../../support/database.ts';
import { useTestApi } from '../../support/test-api.ts';

const api = useTestApi();

test('concurrent calls that create a Web Push profile use the same keys', async () => {
  const { appId } = await api.createApp();
  const vault = new Vault(testConfig(api.databaseUrl).secrets);
  const id = { appId, connector: 'webpush', name: '_default' };
  const sent = { subject: 'mailto:a@example.com' };
  let first: JsonObject = {};
  const second = await runDuring(
    api.db,
    async (tx) => {
      first = await completedCredentials(tx, vault, { ...id, sent });
      await putProfile(tx, vault, { ...id, credentials: first });
    },
    (tx) => completedCredentials(tx, vault, { ...id, sent }),
  );
  expect(second).toEqual(first);
});
