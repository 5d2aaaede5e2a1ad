import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { checkAddress } from '../../../ops/cli/doctor/address.ts';
import { checkDisk } from '../../../ops/cli/doctor/database.ts';
import { runChecks } from '../../../ops/cli/doctor/run-checks.ts';
import { ensureSecrets, writeRunInfo } from '../../../ops/local/data-files.ts';
import { loopbackNetworks } from '../../../shared/config/private-hosts.ts';
import { Vault } from '../../../shared/crypto.ts';
import { putProfile } from '../../../shared/db/tables/profiles.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { startTestApi, testConfig } from '../../support/api.ts';
import { carillon } from '../../support/cli.ts';
import { createEmptyDatabase } from '../../support/database.ts';
import { certificateUntil } from '../../support/gateways/certificates.ts';
import { startMailServer } from '../../support/servers/mail-server.ts';
import { TestOidcProvider } from '../../support/servers/oidc-provider.ts';
import { startProvider } from '../../support/servers/sms-providers.ts';
import { startSmsWebhook } from '../../support/servers/sms-webhook.ts';
import { useTestService } from '../../support/service.ts';

let folder: string;
let env: Record<string, string>;

const service = useTestService();
beforeAll(async () => {
  const dispatcher = await service.dispatch();
  folder = await mkdtemp(join(tmpdir(), 'carillon-doctor-'));
  const { adminToken, secrets } = testConfig(service.databaseUrl);
  env = {
    PUBLIC_URL: service.api.url,
    METRICS_PORT: String(dispatcher.metricsPort),
    DATABASE_URL: service.databaseUrl,
    CARILLON_PRIVATE_HOSTS: loopbackNetworks,
    CARILLON_ADMIN_TOKEN: adminToken,
    CARILLON_SECRET: secrets.map((key) => key.toString('base64')).join(','),
  };
});

afterAll(async () => {
  await rm(folder, { recursive: true });
});

interface Check {
  name: string;
  status: string;
  detail: string;
  advice: string;
}

/** Returns the findings of the document that are not ok. Checks that each of them has an advice. */
function findingsIn(printed: string) {
  const checks: Check[] = JSON.parse(printed).checks;
  for (const check of checks) expect(check.advice === '').toBe(check.status === 'ok');
  return { checks, bad: checks.filter(({ status }) => status !== 'ok') };
}

/** Runs the command with the variables of the service and these variables. */
async function runDoctor(more: Record<string, string> = {}) {
  const { code, stdout } = await carillon(['doctor', '--json'], {
    cwd: folder,
    env: { ...env, ...more },
  });
  return { code, ...findingsIn(stdout) };
}

/** Runs the checks in this process. Returns the output, and whether the exit code would be 1. */
async function checkUp(more: Record<string, string> = {}, base = env) {
  const { document, isBad } = await runChecks({ ...base, CARILLON_DATA_DIR: folder, ...more });
  return { isBad, ...findingsIn(JSON.stringify(document)) };
}

const credentialsOf = ({ bad }: { bad: Check[] }): string[] =>
  bad.filter(({ name }) => name === 'credentials').map(({ detail }) => detail);

describe('carillon doctor', () => {
  test('reports only ok findings for a healthy service, with exit code 0', async () => {
    const { code, checks, bad } = await runDoctor();
    expect({ code, bad }).toEqual({ code: 0, bad: [] });
    // A sharded database has these findings in addition (system/sharded.test.ts).
    const always = checks.filter(({ name }) => name !== 'spread');
    expect(always.map(({ name }) => name)).toEqual([
      'environment',
      'database',
      'clock',
      'migrations',
      'connections',
      'notifications',
      'disk',
      'autovacuum',
      'transactions',
      'wraparound',
      'processes',
      'open files',
      'duties',
      'secrets',
      'credentials',
      'gateways',
      'platforms',
      'api',
      'admin token',
      'dispatcher',
      'public url',
      'proxies',
    ]);
    const { stdout } = await carillon(['doctor'], { env, cwd: folder });
    expect(stdout).toContain(`${checks.length} checks, 0 failed, 0 to look at`);
    expect(always).toHaveLength(22);
  });

  test('names invalid variables, and runs the other checks', async () => {
    const { code, bad } = await runDoctor({ LOG_LEVEL: 'loud', DISPATCHER_THREADS: '0' });
    expect(code).toBe(1);
    expect(bad.map(({ detail }) => detail)).toEqual([
      'DISPATCHER_THREADS is wrong: expected at least 1',
      expect.stringContaining('LOG_LEVEL is wrong: expected one of'),
    ]);
  });

  test('reports an unreachable database', async () => {
    const { isBad, bad } = await checkUp({
      DATABASE_URL: 'postgresql://someone:SESAME@127.0.0.1:9/x',
    });
    expect(isBad).toBe(true);
    expect(bad).toMatchObject([{ name: 'database', status: 'fail' }]);
    expect(bad[0]?.detail).toContain('ECONNREFUSED');
    expect(JSON.stringify(bad)).not.toContain('SESAME');
  });

  test('reports a variable with a misspelled name', async () => {
    const { isBad, bad } = await checkUp({ CARILLON_SECERT: 'SESAME' });
    expect(isBad).toBe(false);
    expect(bad).toMatchObject([{ name: 'environment', status: 'warn' }]);
    expect(bad[0]?.detail).toContain('did you mean CARILLON_SECRET?');
    expect(JSON.stringify(bad)).not.toContain('SESAME');
  });

  test('reports a database without migrations', async () => {
    const empty = await createEmptyDatabase();
    const { isBad, bad } = await checkUp({ DATABASE_URL: empty.url });
    await empty.drop();
    expect(isBad).toBe(true);
    expect(bad).toMatchObject([
      { name: 'migrations', status: 'fail', advice: 'Run `carillon migrate`.' },
    ]);
  });

  test('keeps the findings from before an interruption', async () => {
    const { isBad, bad } = await checkUp({ DATABASE_DIRECT_URL: 'postgresql://127.0.0.1:9/x' });
    expect(isBad).toBe(true);
    expect(bad).toMatchObject([
      { name: 'migrations', status: 'fail' },
      { name: 'database', status: 'warn', detail: expect.stringContaining('ECONNREFUSED') },
    ]);
  });

  test('names each secret that cannot be decrypted', async () => {
    const app = await service.api.createApp();
    await service.addApnsProfile(app);
    const { isBad, bad } = await checkUp({
      CARILLON_SECRET: Buffer.alloc(32, 7).toString('base64'),
    });
    expect(isBad).toBe(true);
    expect(bad.every(({ name, status }) => name === 'secrets' && status === 'fail')).toBe(true);
    const details = bad.map(({ detail }) => detail).join('\n');
    expect(details).toContain(`app ${app.appId} does not open`);
    expect(details).toContain(`profile apns/_default of app ${app.appId} does not open`);
  });

  test('names unchecked platforms with user accounts', async () => {
    const app = await service.api.createApp({ authPlatforms: { weixin: {} } });
    for (const platform of ['github', 'gitlab'])
      await service.api.request('POST', '/1.1/users', {
        app,
        body: {
          authData: {
            [platform]: { uid: 'u', access_token: 't' },
            anonymous: { id: 'a'.repeat(32) },
          },
        },
      });
    const { bad } = await checkUp();
    expect(bad).toMatchObject([{ name: 'platforms', status: 'warn' }]);
    expect(bad[0]?.detail).toBe(
      `app ${app.appId} lets users in by platforms that are not checked: github, gitlab`,
    );
    await service.api.services.apps.change(app.appId, { options: { checkedPlatformsOnly: true } });
    expect((await checkUp()).bad).toEqual([]);
  });

  test('reports unreachable processes and a wrong token', async () => {
    const unanswered = await checkUp({ PUBLIC_URL: 'http://127.0.0.1:9', METRICS_PORT: '9' });
    expect(unanswered.bad.map(({ name }) => name)).toEqual(['api', 'dispatcher']);
    const refused = await checkUp({ CARILLON_ADMIN_TOKEN: 'x'.repeat(20) });
    expect(refused.bad.map(({ name }) => name)).toEqual(['admin token']);
  });

  test('reports a missing or too large TRUSTED_PROXIES', async () => {
    const env = { PUBLIC_URL: service.api.url, TRUSTED_PROXIES: '2' };
    const believing = await startTestApi({ databaseUrl: service.databaseUrl, env });
    const { bad } = await checkUp({ ...env, PUBLIC_URL: believing.url });
    await believing.close();
    expect(bad).toMatchObject([{ name: 'proxies', status: 'fail' }]);
    expect(bad[0]?.advice).toContain('by 2:');
    const secure = { url: 'https://push.example', trustedProxies: 0, adminToken: undefined };
    expect(await checkAddress(secure)).toMatchObject([
      { status: 'ok' },
      { name: 'proxies', status: 'warn' },
    ]);
  });

  test('reports a public address without encryption', async () => {
    const address = { url: 'http://push.example', trustedProxies: 1, adminToken: undefined };
    expect(await checkAddress(address)).toMatchObject([{ name: 'public url', status: 'warn' }]);
  });

  test('reports a nearly full disk', async () => {
    expect(await checkDisk(service.db)).toMatchObject({ status: 'ok' });
    const room = { detail: expect.stringMatching(/ GB of its disk are free$/) };
    const full = { warnShare: 2, warnBytes: Number.POSITIVE_INFINITY };
    expect(await checkDisk(service.db, full)).toMatchObject({ ...room, status: 'warn' });
    const fuller = { failShare: 2, failBytes: Number.POSITIVE_INFINITY };
    expect(await checkDisk(service.db, fuller)).toMatchObject({ ...room, status: 'fail' });
  });

  test('in embedded mode reads everything from the data directory', async () => {
    const cwd = await mkdtemp(join(folder, 'embedded-'));
    const dataDir = join(cwd, '.carillon');
    await ensureSecrets(dataDir);
    await writeRunInfo(dataDir, {
      url: service.api.url,
      databaseUrl: service.databaseUrl,
      metricsUrl: `http://127.0.0.1:${env.METRICS_PORT}`,
    });
    const { stdout } = await carillon(['doctor', '--json'], { cwd });
    const names = (checks: Check[]) =>
      checks.filter(({ status }) => status === 'fail').map(({ name }) => name);
    // Its secrets differ from those of the service under test, so they are read and then refused.
    expect(new Set(names(JSON.parse(stdout).checks))).toEqual(new Set(['secrets', 'admin token']));
  });
});

describe('providers', () => {
  test('are ok if they answer', async () => {
    const [mail, webhook] = [await startMailServer(), await startSmsWebhook()];
    const { isBad, checks } = await checkUp({ SMTP_URL: mail.url, SMS_WEBHOOK_URL: webhook.url });
    expect(checks.slice(-2).map(({ name, status }) => [name, status])).toEqual([
      ['mail', 'ok'],
      ['messages', 'ok'],
    ]);
    expect(isBad).toBe(false);
    // The checks sent nothing.
    expect([mail.mails, webhook.requests]).toEqual([[], []]);
    await Promise.all([mail.close(), webhook.close()]);
  });

  test.each(['aliyun', 'tencent', 'twilio'] as const)(
    'of SMS accept the credentials, and nothing is sent: %s',
    async (name) => {
      const { sandbox, url } = await startProvider(name);
      const { isBad, checks } = await checkUp({ SMS_URL: url });
      const own = checks.filter((check) => check.name === 'messages');
      expect(own[0]).toMatchObject({
        status: 'ok',
        detail: `${name} accepts the credentials of SMS_URL`,
      });
      const address = `/sms-receipts/${name}/`;
      if (name === 'twilio') expect(own).toHaveLength(1);
      else expect(own[1]?.detail).toContain(address);
      expect(isBad).toBe(false);
      expect(sandbox.sent).toEqual([]);
      const wrong = await checkUp({ SMS_URL: url.replace(/:s[^@]*@/, ':SESAME@') });
      expect(wrong.isBad).toBe(true);
      expect(wrong.bad[0]?.detail).toContain('refuses the credentials of SMS_URL');
      expect(JSON.stringify(wrong)).not.toContain('SESAME');
      await sandbox.close();
    },
  );

  test('are reported without their URL if they do not answer or refuse the password', async () => {
    const mail = await startMailServer({
      authOptional: false,
      allowInsecureAuth: true,
      onAuth: (_auth, _session, callback) => callback(new Error('no')),
    });
    const SMTP_URL = mail.url.replace('smtp://', 'smtp://someone:SESAME@');
    const SMS_WEBHOOK_URL = 'https://someone:SESAME@127.0.0.1:9/hook';
    const { isBad, bad } = await checkUp({ SMTP_URL, SMS_WEBHOOK_URL });
    expect(isBad).toBe(true);
    expect(bad).toMatchObject([
      { name: 'mail', status: 'fail', advice: 'Correct user and password in SMTP_URL.' },
      { name: 'messages', status: 'fail', detail: expect.stringContaining('ECONNREFUSED') },
    ]);
    expect(JSON.stringify(bad)).not.toContain('SESAME');
    await mail.close();
  });
});

test('the issuer of OpenID Connect is asked for its configuration', async () => {
  const redirectUri = 'https://push.example.com/console/oidc/callback';
  const provider = await TestOidcProvider.start({ redirectUri, accounts: {} });
  const env = provider.environment({ a: { role: 'owner' } });
  const { host } = new URL(provider.issuer);
  const { checks } = await checkUp(env);
  expect(checks.find(({ name }) => name === 'single sign-on')).toMatchObject({
    status: 'ok',
    detail: `the issuer of OpenID Connect at ${host} gives its configuration`,
  });
  expect(provider.paths).toEqual(['/.well-known/openid-configuration']);
  await provider.close();
  const { bad } = await checkUp(env);
  expect(bad).toMatchObject([
    { name: 'single sign-on', status: 'fail', advice: expect.stringContaining('OIDC_ISSUER') },
  ]);
  expect(JSON.stringify(bad)).not.toContain('a secret & more');
});

describe('a gateway on this machine', () => {
  const elsewhere = '10.0.0.0/8';

  test('is reported if CARILLON_PRIVATE_HOSTS does not list it', async () => {
    const app = await service.api.createApp();
    await service.addApnsProfile(app);
    expect(credentialsOf(await runDoctor())).toEqual([]);
    const found = credentialsOf(await runDoctor({ CARILLON_PRIVATE_HOSTS: elsewhere }));
    expect(found).toContainEqual(expect.stringContaining(app.appId));
  });

  test('is expected while npm start runs, unless the variable says otherwise', async () => {
    const CARILLON_DATA_DIR = await mkdtemp(join(folder, 'data-'));
    const { CARILLON_PRIVATE_HOSTS: _, ...bare } = env;
    const { url } = service.api;
    await writeRunInfo(CARILLON_DATA_DIR, {
      url,
      databaseUrl: service.databaseUrl,
      metricsUrl: url,
    });
    expect(credentialsOf(await checkUp({ CARILLON_DATA_DIR }, bare))).toEqual([]);
    const refused = await checkUp({ CARILLON_DATA_DIR, CARILLON_PRIVATE_HOSTS: elsewhere }, bare);
    expect(credentialsOf(refused)).not.toEqual([]);
  });
});

describe('certificates', () => {
  const dayMs = 86_400_000;
  let app: App;

  beforeAll(async () => {
    app = await service.api.createApp();
  });

  test.each([
    ['ended yesterday', -1, 'fail'],
    ['ends in 29 days', 29, 'warn'],
    ['ends in 31 days', 31, 'ok'],
  ])('are reported if one %s', async (_case, days, status) => {
    await putProfile(service.db, new Vault(testConfig('postgresql://x').secrets), {
      appId: app.appId,
      connector: 'apns',
      name: 'Release',
      credentials: await certificateUntil(Date.now() + days * dayMs),
    });
    const { isBad, bad } = await checkUp();
    expect(isBad).toBe(status === 'fail');
    expect(bad).toMatchObject(status === 'ok' ? [] : [{ name: 'credentials', status }]);
    if (status !== 'ok')
      expect(bad[0]?.advice).toContain(
        `carillon profile put ${app.appId} apns <file> --name Release`,
      );
  });

  test('are reported if the credentials no longer match their schema', async () => {
    await putProfile(service.db, new Vault(testConfig('postgresql://x').secrets), {
      appId: app.appId,
      connector: 'apns',
      name: 'Release',
      credentials: { auth: 'token' },
    });
    const { bad } = await checkUp();
    expect(bad).toMatchObject([{ name: 'credentials', status: 'fail' }]);
  });
});
