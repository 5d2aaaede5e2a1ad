import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startApi } from '../../api/start.ts';
import { cleanVerification } from '../../dispatcher/background/cleaner.ts';
import { type RunningDispatcher, startDispatcher } from '../../dispatcher/start.ts';
import { Database } from '../../shared/db/pool.ts';
import { createLogger } from '../../shared/process/logging.ts';
import { silentLog, startTestApi, type TestApi, testConfig } from '../support/api.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { type MailServer, startMailServer } from '../support/servers/mail-server.ts';
import { type SmsWebhook, startSmsWebhook } from '../support/servers/sms-webhook.ts';
import { signUp } from '../support/users.ts';

let database: TestDatabase;
let api: TestApi;
let dispatcher: RunningDispatcher;
let mailServer: MailServer;
let webhook: SmsWebhook;
let db: Database;

beforeAll(async () => {
  database = await createTestDatabase();
  [mailServer, webhook] = await Promise.all([startMailServer(), startSmsWebhook()]);
  const env = { SMTP_URL: mailServer.url, SMS_WEBHOOK_URL: webhook.url };
  api = await startTestApi({ databaseUrl: database.url, env });
  dispatcher = await startDispatcher(testConfig(database.url, env), silentLog);
  db = new Database({ url: database.url, applicationName: 'test' });
});

afterAll(async () => {
  await Promise.all([api.close(), dispatcher.stack.close()]);
  await Promise.all([mailServer.close(), webhook.close(), db.close()]);
  await database.drop();
});

describe('from a call to the recipient', () => {
  test('a code arrives at the webhook, and is valid for its purpose', async () => {
    const app = await api.createApp();
    const mobilePhoneNumber = '+8613800138000';
    await api.request('POST', '/1.1/requestSmsCode', { app, body: { mobilePhoneNumber, op: 'x' } });
    await expect.poll(() => webhook.requests.length).toBe(1);
    const message = JSON.parse(webhook.requests[0]?.body ?? '');
    expect(message).toMatchObject({
      appId: app.appId,
      channel: 'sms',
      type: 'general',
      to: mobilePhoneNumber,
      sign: 'Test app',
      variables: { op: 'x', ttl: '10', name: 'Test app', code: message.code },
    });
    const body = { mobilePhoneNumber };
    const reply = await api.request('POST', `/1.1/verifySmsCode/${message.code}`, { app, body });
    expect(reply.status).toBe(200);
  });

  test("a mail with the app's template arrives with a working link", async () => {
    const html = '<p>{{username}}</p><a href="{{link}}">go</a>';
    const app = await api.createApp({
      emailVerification: true,
      mailTemplates: { verifyEmail: { subject: 'Hello\t{{username}}', html } },
    });
    const email = 'tom@example.com';
    const user = await signUp(api, app, { email, username: '<b>Tom</b>' });
    await expect.poll(() => mailServer.mails.length).toBe(1);
    const { to, mail } = mailServer.mails[0] ?? {};
    expect(to).toEqual([email]);
    expect(mail?.subject).toBe('Hello <b>Tom</b>');
    expect(mail?.html).toContain('<p>&lt;b&gt;Tom&lt;/b&gt;</p>');
    const [link = ''] = mail?.text?.match(/http:\/\/carillon\.test\S+/) ?? [];
    expect(mail?.html).toContain(link);
    expect((await api.request('GET', link.replace('http://carillon.test', ''))).status).toBe(200);
    expect((await user.me()).emailVerified).toBe(true);
  });
});

test('no log contains a number, an address, a code or a link, even for errors', async () => {
  const lines: string[] = [];
  const destination = { write: (line: string) => void lines.push(line) };
  const log = createLogger({ level: 'trace', name: 'test', destination });
  const refusing = await startMailServer({
    onRcptTo: ({ address }, _session, callback) =>
      callback(Object.assign(new Error(`no ${address}, and no mail`), { responseCode: 450 })),
  });
  const other = await createTestDatabase();
  const env = { SMTP_URL: refusing.url, SMS_WEBHOOK_URL: webhook.url };
  const config = testConfig(other.url, env);
  const logging = await startApi(config, log);
  const loudDispatcher = await startDispatcher(config, log);
  try {
    webhook.answers.push({ status: 400 });
    const url = `http://127.0.0.1:${logging.port}`;
    const app = await logging.services.apps.create({
      name: 'Loud',
      options: { emailVerification: true },
    });
    const headers = {
      'X-LC-Id': app.appId,
      'X-LC-Key': app.appKey,
      'Content-Type': 'application/json',
    };
    const post = (path: string, body: object) =>
      fetch(`${url}/1.1/${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
    const mobilePhoneNumber = '+8613900139000';
    await post('requestSmsCode', { mobilePhoneNumber });
    await post('requestSmsCode', { mobilePhoneNumber });
    await post('users', { username: 'loud', password: 'p', email: 'loud@example.com' });
    const [mail, sms] = await logging.services.outbox.list(app.appId, {});
    await post(`verifySmsCode/${sms?.code}`, { mobilePhoneNumber });
    await fetch(`${mail?.link?.replace('http://carillon.test', url)}`);
    await expect
      .poll(() => lines.filter((line) => line.includes('a message was not taken')).length)
      .toBe(2);
    const text = lines.join('');
    expect(text).toContain('envelope_450');
    expect(text).toContain('status_400');
    for (const provider of [refusing, webhook])
      expect(text).toContain(`"host":"${new URL(provider.url).host}"`);
    expect(text).toContain('/1.1/verifySmsCode/:code');
    const link = mail?.link?.split('/').at(-1) ?? 'no link';
    for (const secret of ['13900139000', 'loud@example.com', sms?.code ?? 'no code', link])
      expect(text).not.toContain(secret);
  } finally {
    await Promise.all([logging.stack.close(), loudDispatcher.stack.close()]);
    await refusing.close();
    await other.drop();
  }
});

test('expired rows are deleted, and others are not', async () => {
  const app = await api.createApp({ captchaForSms: false, emailVerification: true });
  const body = { mobilePhoneNumber: '+8613800138001' };
  await api.request('POST', '/1.1/requestSmsCode', { app, body });
  const code = (await api.services.outbox.list(app.appId, {}))[0]?.code;
  await api.request('POST', `/1.1/verifySmsCode/${code}`, { app, body });
  await api.request('POST', '/1.1/requestSmsCode', {
    app,
    body: { mobilePhoneNumber: '+8613800138002' },
  });
  await signUp(api, app, { email: 'old@example.com' });
  const guarded = await api.createApp({ captchaForSms: true });
  await api.request('GET', '/1.1/requestCaptcha', { app: guarded });
  const tables = [
    'verification_code',
    'captcha',
    'link_token',
    'sms_send',
    'outbox',
    'sms_conversion',
  ];
  const counts = async () => {
    const rows = tables.map(
      (table) => `(SELECT count(*) FROM ${table} WHERE app_id = ANY($1)) AS ${table}`,
    );
    const result = await db.query(`SELECT ${rows.join(', ')}`, [[app.appId, guarded.appId]]);
    return result.rows[0];
  };
  const hour = 3_600_000;
  const before = await counts();
  expect(before).toEqual({
    verification_code: 1,
    captcha: 1,
    link_token: 1,
    sms_send: 2,
    outbox: 3,
    sms_conversion: 1,
  });
  await cleanVerification(db, Date.now(), 500);
  expect(await counts()).toEqual(before);
  await cleanVerification(db, Date.now() + 24 * hour, 500);
  expect(await counts()).toEqual({
    ...before,
    verification_code: 0,
    captcha: 0,
    sms_conversion: 0,
  });
  await cleanVerification(db, Date.now() + 8 * 24 * hour, 500);
  expect(await counts()).toEqual(Object.fromEntries(tables.map((table) => [table, 0])));
});
