import { execFileSync } from 'node:child_process';
import { createHmac, randomBytes } from 'node:crypto';
import { afterEach, describe, expect, test } from 'vitest';
import type { MailMessage, Provider, SmsMessage } from '../../connectors/provider.ts';
import { webhookKeys } from '../../connectors/providers.ts';
import { openSmsWebhook, readReply, signatureHeaders } from '../../connectors/sms/webhook.ts';
import { openSmtp } from '../../connectors/smtp/index.ts';
import { systemClock } from '../../shared/clock.ts';
import { Vault } from '../../shared/crypto.ts';
import { reason, reasonAs } from '../../shared/domain/reasons.ts';
import { testConfig } from '../support/api.ts';
import { startMailServer } from '../support/servers/mail-server.ts';
import { startSmsWebhook } from '../support/servers/sms-webhook.ts';

const closers: (() => Promise<unknown>)[] = [];
const opened = <T extends { close(): Promise<unknown> }>(thing: T): T => {
  closers.unshift(() => thing.close());
  return thing;
};
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

const mail: MailMessage = {
  id: '7',
  appId: 'app1',
  type: 'verifyEmail',
  to: 'tom@example.com',
  fromName: 'My app',
  subject: 'Ändern 你好',
  text: 'plain',
  html: '<p>rich</p>',
};

const openMail = (url: string): Provider<MailMessage> =>
  opened(
    openSmtp({
      url,
      host: 'push.example',
      timing: { connectMs: 2000, greetingMs: 2000, silenceMs: 2000 },
    }),
  );

/** Returns the reason for a reply of a mail server. */
const replied = (code: string, status: number): string =>
  reasonAs(`${code}_${status}`, code, { status });

describe('mail over SMTP', () => {
  test('arrives as text and HTML, with its sender and a stable id', async () => {
    const server = opened(await startMailServer());
    const provider = openMail(server.url);
    expect(await provider.send(mail)).toEqual({ kind: 'sent' });
    expect(await provider.send(mail)).toEqual({ kind: 'sent' });
    const [first, second] = server.mails;
    expect(first).toMatchObject({ from: 'no-reply@push.example', to: ['tom@example.com'] });
    expect(first?.mail).toMatchObject({
      subject: mail.subject,
      from: { name: 'My app', address: 'no-reply@push.example' },
    });
    expect(first?.mail.text?.trim()).toBe('plain');
    expect(first?.mail.html?.trim()).toBe('<p>rich</p>');
    expect(first?.mail.messageId).toBe('<7.app1@push.example>');
    expect(second?.mail.messageId).toBe(first?.mail.messageId);
  });

  test.each(['accounts@example.org', 'accounts+carillon@example.org'])(
    'has the sender of the URL: %s',
    async (from) => {
      const server = opened(await startMailServer());
      await openMail(`${server.url}?from=${from}`).send(mail);
      expect(server.mails[0]?.from).toBe(from);
    },
  );

  test.each([
    'a@example.com, b@example.com',
    'a@example.com\r\nBcc: b@example.com',
    'A <a@example.com>',
    'a@b@example.com',
    '',
  ])('is sent to one address only: %j is refused and no mail is sent', async (to) => {
    const server = opened(await startMailServer());
    expect(await openMail(server.url).send({ ...mail, to })).toEqual({
      kind: 'refused',
      reason: 'address',
    });
    expect(server.mails).toEqual([]);
  });

  test('cannot get additional headers through its subject or the name of the app', async () => {
    const server = opened(await startMailServer());
    const injected = 'x\r\nBcc: b@example.com\r\nX-Evil: 1';
    await openMail(server.url).send({ ...mail, subject: injected, fromName: injected });
    expect(server.mails[0]?.to).toEqual(['tom@example.com']);
    expect(server.mails[0]?.mail.headers.some(({ key }) => key === 'x-evil' || key === 'bcc')).toBe(
      false,
    );
  });

  test.each([
    [550, { kind: 'refused', reason: replied('message', 550) }],
    [421, { kind: 'retry', reason: replied('message', 421), afterMs: null }],
    [451, { kind: 'retry', reason: replied('message', 451), afterMs: null }],
    [452, { kind: 'retry', reason: replied('message', 452), afterMs: null }],
  ])('has its result from the reply to the data: %i', async (code, expected) => {
    const server = opened(await startMailServer());
    server.refuseData(code);
    expect(await openMail(server.url).send(mail)).toEqual(expected);
  });

  test.each([
    [550, 'refused'],
    [450, 'retry'],
  ])('has its result from the reply to the recipient: %i', async (responseCode, kind) => {
    const server = opened(
      await startMailServer({
        onRcptTo: ({ address }, _session, callback) =>
          callback(Object.assign(new Error(`no such user ${address}`), { responseCode })),
      }),
    );
    const sending = await openMail(server.url).send(mail);
    expect(sending).toMatchObject({ kind, reason: replied('envelope', responseCode) });
    expect(JSON.stringify(sending)).not.toContain('example.com');
  });

  test.each([
    [550, 'retry'],
    [553, 'retry'],
    [450, 'retry'],
    // The mail is too large.
    [552, 'refused'],
  ])(
    'is retried if the server refuses the sender, which is a setting: %i',
    async (responseCode, kind) => {
      const server = opened(
        await startMailServer({
          onMailFrom: (_address, _session, callback) =>
            callback(Object.assign(new Error('not this sender'), { responseCode })),
        }),
      );
      expect(await openMail(server.url).send(mail)).toMatchObject({
        kind,
        reason: replied('envelope', responseCode),
      });
    },
  );

  test('is retried if the credentials are refused', async () => {
    const server = opened(
      await startMailServer({
        authOptional: false,
        allowInsecureAuth: true,
        onAuth: (_auth, _session, callback) => callback(new Error('no')),
      }),
    );
    const url = server.url.replace('smtp://', 'smtp://user:secret@');
    expect(await openMail(url).send(mail)).toMatchObject({
      kind: 'retry',
      reason: replied('authentication', 535),
    });
  });

  test('is retried if the server is unreachable', async () => {
    const server = await startMailServer();
    await server.close();
    expect(await openMail(server.url).send(mail)).toMatchObject({ kind: 'retry', afterMs: null });
  });
});

const sms: SmsMessage = {
  id: '9',
  appId: 'app1',
  type: 'general',
  to: '+8613800138000',
  text: '【My app】123456',
  isVoice: false,
  code: '123456',
  sign: 'My app',
  variables: { op: 'paying' },
  templateName: '_default',
  expiresAtMs: 1_800_000_000_000,
};

describe('SMS over the webhook', () => {
  test.each([
    ['me:p%40ss', 'me:p@ss'],
    ['me:p%ss', 'me:p%ss'],
    ['me:100%', 'me:100%'],
    ['m%e:%', 'm%e:%'],
    [':%2', ':%2'],
    ['me:%c3%a4%E9', 'me:\xc3\xa4\xe9'],
    ['mä:%', 'm\xc3\xa4:%'],
  ])(
    'authenticates with every user and password that its URL may contain: %s',
    async (user, sent) => {
      const server = opened(await startSmsWebhook());
      const url = server.url.replace('http://', `http://${user}@`);
      expect(testConfig('postgresql://127.0.0.1/none', { SMS_WEBHOOK_URL: url }).sms).toEqual({
        provider: 'webhook',
        url,
      });
      const provider = opened(openSmsWebhook({ url, keys: ['key'], clock: systemClock }));
      expect(await provider.send(sms)).toEqual({ kind: 'sent' });
      const basic = `Basic ${Buffer.from(sent, 'latin1').toString('base64')}`;
      expect(server.requests[0]?.headers.authorization).toBe(basic);
    },
  );

  test('is posted completely, signed with every key, with basic authentication', async () => {
    const server = opened(await startSmsWebhook());
    const url = server.url.replace('http://', 'http://me:p%40ss@');
    const provider = opened(openSmsWebhook({ url, keys: ['new', 'old'], clock: systemClock }));
    expect(await provider.send(sms)).toEqual({ kind: 'sent' });
    const request = server.requests[0];
    if (!request) throw new Error('nothing arrived');
    expect(request.path).toBe('/hook?tenant=a');
    expect(JSON.parse(request.body)).toEqual({
      id: '9',
      appId: 'app1',
      channel: 'sms',
      type: 'general',
      to: '+8613800138000',
      text: '【My app】123456',
      code: '123456',
      sign: 'My app',
      variables: { op: 'paying' },
      expiresAt: '2027-01-15T08:00:00.000Z',
    });
    expect(request.headers.authorization).toBe(
      `Basic ${Buffer.from('me:p@ss').toString('base64')}`,
    );
    const timestamp = String(request.headers['carillon-timestamp']);
    expect(Math.abs(Number(timestamp) - Date.now() / 1000)).toBeLessThan(60);
    const signed = `9.${timestamp}.${request.body}`;
    const v1 = (key: string) => `v1=${createHmac('sha256', key).update(signed).digest('hex')}`;
    expect(request.headers['carillon-signature']).toBe(`${v1('new')}, ${v1('old')}`);
    expect(request.headers['carillon-message-id']).toBe('9');
  });

  test('is signed over id, time and body', () => {
    const of = (id: string, body: string, epochMs: number) =>
      signatureHeaders(['k'], { id, body, epochMs })['carillon-signature'];
    const all = [of('1', 'a', 0), of('2', 'a', 0), of('1', 'b', 0), of('1', 'a', 1000)];
    expect(new Set(all).size).toBe(4);
  });

  test('has the key that the documentation derives', () => {
    const secret = randomBytes(32);
    const command = `printf 'derive sms webhook' | openssl dgst -sha256 -mac HMAC -binary \
      -macopt hexkey:$(printf %s "$CARILLON_SECRET" | base64 -d | od -An -tx1 | tr -d ' \\n') \
      | base64 | tr -d '=\\n' | tr '+/' '-_'`;
    const key = execFileSync('sh', ['-c', command], {
      env: { ...process.env, CARILLON_SECRET: secret.toString('base64') },
    });
    expect(webhookKeys(new Vault([secret, randomBytes(32)]))[0]).toBe(String(key).trim());
  });

  test.each([
    [200, 'sent'],
    [204, 'sent'],
    [409, 'sent'],
    [301, 'refused'],
    [400, 'refused'],
    [401, 'refused'],
    [408, 'retry'],
    [423, 'retry'],
    [425, 'retry'],
    [429, 'retry'],
    [500, 'retry'],
    [503, 'retry'],
  ] as const)('interprets the status %i as %s', async (status, kind) => {
    const server = opened(await startSmsWebhook());
    server.answers.push({ status, headers: { 'retry-after': '7' } });
    const provider = opened(openSmsWebhook({ url: server.url, keys: ['k'], clock: systemClock }));
    expect(await provider.send(sms)).toEqual(
      kind === 'sent'
        ? { kind }
        : {
            kind,
            reason: reason('smsStatus', { status }),
            ...(kind === 'retry' ? { afterMs: 7000 } : {}),
          },
    );
  });

  test('is retried if the server is unreachable', async () => {
    const server = await startSmsWebhook();
    await server.close();
    const provider = opened(openSmsWebhook({ url: server.url, keys: ['k'], clock: systemClock }));
    expect(await provider.send(sms)).toEqual({
      kind: 'retry',
      reason: 'connect_failed',
      afterMs: null,
    });
  });

  test('is retried with the same id if the result is unknown', () => {
    expect(readReply({ kind: 'unknown', reason: 'timeout', seconds: 15 })).toEqual({
      kind: 'retry',
      reason: 'timeout',
      afterMs: null,
    });
  });
});
