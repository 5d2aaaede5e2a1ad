import { expect, test } from 'vitest';
import { FunctionHosts } from '../../../api/services/functions/hosts.ts';
import { systemClock } from '../../../shared/clock.ts';
import { Vault } from '../../../shared/crypto.ts';
import { testConfig } from '../../support/api.ts';
import { useTestApi } from '../../support/test-api.ts';

const api = useTestApi();

test('the host of an app with calls stays open, however many other hosts are used', async () => {
  const config = testConfig(api.databaseUrl);
  const hosts = new FunctionHosts({ clock: systemClock, config, vault: new Vault(config.secrets) });
  const app = await api.createApp();
  const hostOf = (functionsUrl: string) =>
    hosts.find({ app: { ...app, options: { ...app.options, functionsUrl } }, stage: 'production' });
  const used = hostOf('http://127.0.0.1:1');
  for (let n = 0; n < 1500; n += 1) {
    hostOf(`http://127.0.0.1:${1000 + n}`);
    expect(hostOf('http://127.0.0.1:1')).toBe(used);
  }
  await hosts.close();
});
