import { describe, expect, test } from 'vitest';
import type { Finding } from '../../../../api/services/operator/doctor/checks.ts';
import {
  checkProduction,
  checkSettings,
} from '../../../../api/services/operator/doctor/production.ts';
import { systemClock } from '../../../../shared/clock.ts';
import { Database } from '../../../../shared/db/pool.ts';
import { deleteToken, savePerson } from '../../../../shared/db/tables/console.ts';
import type { ProcessReport } from '../../../../shared/db/tables/processes.ts';
import { testConfig } from '../../../support/api.ts';
import { carillon } from '../../../support/cli.ts';
import { useTestService } from '../../../support/service.ts';

const service = useTestService();

type Setup = NonNullable<ProcessReport['setup']>;

const fine: Setup = {
  publicUrl: 'https://push.example.com',
  hasTrustedProxies: true,
  hasMail: true,
  hasSms: true,
  hasShortToken: false,
  scrapedSecondsAgo: 15,
};

const codesOf = (findings: readonly Finding[]): Record<string, string> => {
  for (const { status, advice } of findings) expect(advice === '').toBe(status === 'ok');
  return Object.fromEntries(findings.map(({ name, code }) => [name, code]));
};

const settingsOf = (api: Partial<Setup>, dispatcher: Partial<Setup> = {}) =>
  codesOf(
    checkSettings([
      { kind: 'api', setup: { ...fine, ...api } },
      { kind: 'api', setup: fine },
      { kind: 'dispatcher', setup: { ...fine, ...dispatcher } },
    ]),
  );

const codes = async () =>
  codesOf(await checkProduction({ db: service.db, nowMs: systemClock.now() }));

describe('the checks for production', () => {
  test('find nothing in settings that are usual in production', () => {
    expect(settingsOf({})).toEqual({
      'public url': 'addressFine',
      proxies: 'proxiesSet',
      messages: 'smsSet',
      mail: 'mailSet',
      alerts: 'metricsRead',
    });
  });

  test('find that a new service has no backups and no people', async () => {
    expect(await codes()).toMatchObject({
      backups: 'noBackups',
      'admin access': 'sharedAccess',
      'daily cap': 'capsFine',
      'message classes': 'classesFine',
    });
  });

  test.each<[Partial<Setup>, Partial<Setup>, Record<string, string>]>([
    [{ publicUrl: 'http://push.example.com' }, {}, { 'public url': 'notEncrypted' }],
    [{ publicUrl: 'https://203.0.113.7' }, {}, { 'public url': 'addressWithoutName' }],
    [{ publicUrl: 'https://[2001:db8::1]:8443' }, {}, { 'public url': 'addressWithoutName' }],
    [{ hasTrustedProxies: false }, {}, { proxies: 'proxiesMissing' }],
    [{}, { hasSms: false }, { messages: 'smsMissing' }],
    [{}, { hasMail: false }, { mail: 'mailMissing' }],
    [{ hasMail: false, hasSms: false }, {}, { mail: 'mailSet', messages: 'smsSet' }],
    [{ scrapedSecondsAgo: null }, {}, { alerts: 'metricsUnread' }],
    [{}, { scrapedSecondsAgo: 3600 }, { alerts: 'metricsUnread' }],
    [{ hasShortToken: true }, {}, { 'admin access': 'shortToken' }],
  ])('judge the settings %j of the api and %j of the dispatcher', (api, dispatcher, expected) => {
    expect(settingsOf(api, dispatcher)).toMatchObject(expected);
  });

  test('compare the daily cap of each app with its devices', async () => {
    const app = await service.api.createApp({ dailyRecipientCap: 2 });
    await service.addIosInstallations(app, 2);
    expect(await codes()).toMatchObject({ 'daily cap': 'capsFine' });
    await service.addIosInstallations(app, 1);
    expect(await codes()).toMatchObject({ 'daily cap': 'capBelowDevices' });
    const change = { admin: true, body: { options: { dailyRecipientCap: 3 } } };
    await service.api.request('PATCH', `/console/api/apps/${app.appId}`, change);
    expect(await codes()).toMatchObject({ 'daily cap': 'capsFine' });
  });

  test('name vendors whose daily limit holds without a message class', async () => {
    const app = await service.api.createApp();
    const path = `/console/api/apps/${app.appId}/profiles/vendor_b/_default`;
    const credentials = { appId: '1', appSecret: 's', packageName: 'com.example.app' };
    const put = (body: object) =>
      service.api.request('PUT', path, { admin: true, body: { ...body } });
    await put(credentials);
    expect(await codes()).toMatchObject({ 'message classes': 'noMessageClasses' });
    await put({ ...credentials, messageClasses: { order: { channel_id: '101' } } });
    expect(await codes()).toMatchObject({ 'message classes': 'classesFine' });
  });

  test('report a check that takes too long beside the results of the others', async () => {
    await service.api.createApp();
    const url = service.databaseUrl;
    const impatient = new Database({ url, applicationName: 'test', statementTimeoutMs: 200 });
    await service.db.transaction(async (tx) => {
      await tx.query('LOCK TABLE installation IN ACCESS EXCLUSIVE MODE');
      const findings = await checkProduction({ db: impatient, nowMs: systemClock.now() });
      expect(codesOf(findings)).toMatchObject({
        backups: 'noBackups',
        database: 'interrupted',
        'message classes': 'classesFine',
      });
    });
    await impatient.close();
  });

  test('accept a person who logs in by OpenID Connect', async () => {
    const person = { name: 'Bea', mail: null, role: 'owner', apps: null } as const;
    const id = await service.db.transaction((tx) =>
      savePerson(tx, {
        ...person,
        subject: 'issuer bea',
        digest: Buffer.alloc(32),
        now: new Date(),
      }),
    );
    expect(await codes()).toMatchObject({ 'admin access': 'ownAccess' });
    await service.db.transaction((tx) => deleteToken(tx, id));
    expect(await codes()).toMatchObject({ 'admin access': 'sharedAccess' });
  });

  test('accept a token of a person', async () => {
    const body = { name: 'Ann', role: 'owner' };
    await service.api.request('POST', '/console/api/tokens', { admin: true, body });
    expect(await codes()).toMatchObject({ 'admin access': 'ownAccess' });
  });

  test('are what the admin API and the command line show', async () => {
    const path = '/console/api/doctor?production=true';
    const reply = await service.api.request('GET', path, { admin: true });
    const shown = reply.body.results.map(({ subject, code }: Record<string, string>) => [
      subject,
      code,
    ]);
    expect(Object.fromEntries(shown)).toEqual(await codes());
    const { adminToken, secrets } = testConfig(service.databaseUrl);
    const env = {
      PUBLIC_URL: service.api.url,
      DATABASE_URL: service.databaseUrl,
      CARILLON_ADMIN_TOKEN: adminToken,
      CARILLON_SECRET: secrets.map((key) => key.toString('base64')).join(','),
    };
    const { stdout } = await carillon(['doctor', '--production', '--json'], { env });
    const { checks } = JSON.parse(stdout);
    expect(checks.map(({ code }: Record<string, string>) => code)).toEqual(
      expect.arrayContaining(shown.map(([, code = '']: string[]) => code)),
    );
  });
});

test('processes report their settings and when their metrics were read', async () => {
  const reported = async () => {
    const { rows } = await service.db.query<{ setup: Setup }>(
      `SELECT facts -> 'setup' AS setup FROM process_seen WHERE kind = 'api' ORDER BY started_at DESC LIMIT 1`,
    );
    return rows[0]?.setup;
  };
  await expect.poll(reported, { timeout: 30_000 }).toMatchObject({
    publicUrl: service.api.url,
    hasTrustedProxies: false,
    hasSms: false,
  });
  await fetch(`${service.api.url}/metrics`);
  await expect
    .poll(async () => (await reported())?.scrapedSecondsAgo, { timeout: 60_000 })
    .toEqual(expect.any(Number));
});
