import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startMessenger } from '../../dispatcher/messages/messenger.ts';
import { systemClock } from '../../shared/clock.ts';
import { Vault } from '../../shared/crypto.ts';
import { AppCache } from '../../shared/db/app-cache.ts';
import { Listener } from '../../shared/db/listener.ts';
import type { OutboxMessage } from '../../shared/db/tables/outbox.ts';
import { WebhookEvents } from '../../shared/db/webhook-events.ts';
import { reason } from '../../shared/domain/reasons.ts';
import { createMetrics } from '../../shared/metrics.ts';
import { ClosingStack } from '../../shared/process/lifecycle.ts';
import { enqueueMessage } from '../../shared/queue/message-jobs.ts';
import { JobQueue } from '../../shared/queue/queue.ts';
import { DuePoll } from '../../shared/queue/waking.ts';
import { silentLog, testConfig } from '../support/api.ts';
import { openTestDatabase } from '../support/database.ts';
import { type MailServer, startMailServer } from '../support/servers/mail-server.ts';
import { type SmsWebhook, startSmsWebhook } from '../support/servers/sms-webhook.ts';

const { db, url } = await openTestDatabase();
let queue: JobQueue;
let vault: Vault;
let mailServer: MailServer;
let webhook: SmsWebhook;
let messenger: ClosingStack;
const metrics = createMetrics();

beforeAll(async () => {
  queue = new JobQueue(db, silentLog, { supervise: false });
  await queue.start();
  vault = new Vault(testConfig(url).secrets);
  mailServer = await startMailServer();
  webhook = await startSmsWebhook();
  const env = { SMTP_URL: mailServer.url, SMS_WEBHOOK_URL: webhook.url };
  messenger = await start(env);
});

afterAll(async () => {
  await messenger.close();
  await Promise.all([mailServer.close(), webhook.close(), queue.stop()]);
});

/** Starts the messenger without the threads that send pushes. */
async function start(env: Record<string, string> = {}): Promise<ClosingStack> {
  const stack = new ClosingStack(silentLog);
  const listener = new Listener(url, silentLog);
  stack.add('notifications', () => listener.close());
  await listener.start();
  const webhooks = new WebhookEvents(db, new AppCache(db, vault, systemClock));
  const deps = { db, vault, queue, clock: systemClock, log: silentLog, metrics, webhooks };
  const duePoll = new DuePoll(db, silentLog);
  stack.add('poll for due jobs', () => duePoll.stop());
  await startMessenger(deps, testConfig(url, env), { stack, listener, duePoll });
  return stack;
}

const post = (message: OutboxMessage & { expiresAt?: Date }, appId = 'app1') =>
  db.transaction((tx) => enqueueMessage({ vault, queue }, tx, appId, message));

const smsTo = (to: string): OutboxMessage => ({
  kind: 'sms',
  to,
  type: 'general',
  text: '【My app】123456',
  code: '123456',
  sms: { isVoice: false, sign: 'My app', variables: {} },
});

const mailTo = (to: string): OutboxMessage => ({
  kind: 'mail',
  to,
  type: 'verifyEmail',
  text: 'open the link',
  link: 'http://carillon.test/x',
  mail: { fromName: 'My app', subject: 'Hello' },
});

async function rowOf(to: string) {
  const { rows } = await db.query<{ state: string; attempts: number; reason: string | null }>(
    'SELECT state, attempts, reason FROM outbox WHERE recipient = $1',
    [to],
  );
  return rows[0];
}

describe('a message', () => {
  test('is not sent if the transaction that wrote it fails', async () => {
    const failing = db.transaction(async (tx) => {
      await enqueueMessage({ vault, queue }, tx, 'app1', mailTo('never@example.com'));
      throw new Error('rolled back');
    });
    await expect(failing).rejects.toThrow('rolled back');
    await post(mailTo('after@example.com'));
    await expect.poll(() => rowOf('after@example.com')).toMatchObject({ state: 'sent' });
    expect(mailServer.mails.map(({ to }) => to[0])).not.toContain('never@example.com');
  });

  test('is sent once: mail over SMTP, SMS over the webhook', async () => {
    await post(mailTo('tom@example.com'));
    await post(smsTo('+8613800000001'));
    await expect
      .poll(() => rowOf('tom@example.com'))
      .toEqual({ state: 'sent', attempts: 1, reason: null });
    await expect.poll(() => rowOf('+8613800000001')).toMatchObject({ state: 'sent', attempts: 1 });
    expect(mailServer.mails.filter(({ to }) => to[0] === 'tom@example.com')).toHaveLength(1);
    const sent = webhook.requests.filter(({ body }) => body.includes('+8613800000001'));
    expect(sent).toHaveLength(1);
    expect(JSON.parse(sent[0]?.body ?? '')).toMatchObject({ channel: 'sms', code: '123456' });
  });

  test('is retried with the same id until the provider accepts it', async () => {
    webhook.answers.push({ status: 503 }, { status: 429, headers: { 'retry-after': '1' } });
    await post(smsTo('+8613800000002'));
    await expect.poll(() => rowOf('+8613800000002')).toMatchObject({ state: 'sent', attempts: 3 });
    const tries = webhook.requests.filter(({ body }) => body.includes('+8613800000002'));
    expect(tries).toHaveLength(3);
    expect(new Set(tries.map(({ headers }) => headers['carillon-message-id'])).size).toBe(1);
  });

  test('is not retried immediately, whatever delay the provider requests', async () => {
    // Records the jobs of retries, because they are deleted when they end.
    await db.query(`CREATE TABLE waits (ms float8);
      CREATE FUNCTION note_wait() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN INSERT INTO waits
        VALUES (extract(epoch FROM NEW.start_after - NEW.created_on) * 1000); RETURN NEW; END $$;
      CREATE TRIGGER note_wait AFTER INSERT ON pgboss.job FOR EACH ROW EXECUTE FUNCTION
        note_wait()`);
    const numbers = ['0', '1.5', '-1', '', 'Thu, 01 Jan 1970 00:00:00 GMT'];
    for (const [i, retryAfter] of numbers.entries()) {
      const to = `+861380000010${i}`;
      webhook.answers.push({ status: 429, headers: { 'retry-after': retryAfter } });
      await post(smsTo(to));
      await expect.poll(() => rowOf(to)).toMatchObject({ state: 'sent', attempts: 2 });
    }
    const { rows } = await db.query<{ ms: number }>('SELECT ms FROM waits WHERE ms > 5');
    expect(rows).toHaveLength(numbers.length);
    for (const { ms } of rows) expect(ms).toBeGreaterThanOrEqual(490);
    await db.query('DROP TRIGGER note_wait ON pgboss.job');
  });

  test('fails if the provider refuses it permanently', async () => {
    webhook.answers.push({ status: 400 });
    await post(smsTo('+8613800000003'));
    await expect
      .poll(() => rowOf('+8613800000003'))
      .toEqual({ state: 'failed', attempts: 1, reason: reason('smsStatus', { status: 400 }) });
  });

  test('fails if its next attempt would be after its expiry', async () => {
    webhook.answers.push({ status: 503, headers: { 'retry-after': '3600' } });
    await post({ ...smsTo('+8613800000004'), expiresAt: new Date(Date.now() + 60_000) });
    await expect
      .poll(() => rowOf('+8613800000004'))
      .toMatchObject({ state: 'failed', reason: reason('smsStatus', { status: 503 }) });
    await post({ ...smsTo('+8613800000005'), expiresAt: new Date(Date.now() - 1) });
    await expect
      .poll(() => rowOf('+8613800000005'))
      .toMatchObject({ state: 'failed', reason: 'expired' });
    expect(webhook.requests.some(({ body }) => body.includes('+8613800000005'))).toBe(false);
  });

  test('fails if the key that it was encrypted with was removed', async () => {
    const other = new Vault([Buffer.alloc(32, 7)]);
    await db.transaction((tx) =>
      enqueueMessage({ vault: other, queue }, tx, 'app1', smsTo('+8613800000007')),
    );
    await expect
      .poll(() => rowOf('+8613800000007'))
      .toMatchObject({ state: 'failed', reason: 'unreadable' });
  });

  test('is counted, without data of its recipient', async () => {
    const text = await metrics.registry.metrics();
    expect(text).toMatch(/carillon_messages_total\{kind="sms",outcome="sent"\} \d/);
    expect(text).toMatch(/carillon_messages_total\{kind="sms",outcome="retried"\} \d/);
    expect(text).not.toMatch(/1380000000|example\.com|\b123456\b/);
  });

  test('is sent by SMS while a mail server answers no mail', async () => {
    await messenger.close();
    const held: (() => void)[] = [];
    const slowServer = await startMailServer({
      onMailFrom: (_address, _session, callback) => void held.push(() => callback()),
    });
    messenger = await start({ SMTP_URL: slowServer.url, SMS_WEBHOOK_URL: webhook.url });
    for (let i = 0; i < 20; i++) await post(mailTo(`held${i}@example.com`));
    await expect.poll(() => held.length).toBeGreaterThan(0);
    await post(smsTo('+8613800000008'));
    await expect.poll(() => rowOf('+8613800000008')).toMatchObject({ state: 'sent', attempts: 1 });
    expect(slowServer.mails).toEqual([]);
    await messenger.close();
    for (const release of held) release();
    await slowServer.close();
  });

  test('is sent while hundreds of messages of another app wait', async () => {
    await messenger.close();
    const sent: string[] = [];
    const held: ServerResponse[] = [];
    const server = createServer((request, response) => {
      void text(request).then((body) => {
        sent.push(JSON.parse(body).to);
        held.push(response);
      });
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const address = server.address();
    const port = typeof address === 'object' ? address?.port : undefined;
    messenger = await start({ SMS_WEBHOOK_URL: `http://127.0.0.1:${port}/` });
    for (let i = 0; i < 200; i++) await post(smsTo(`+86138000${10_000 + i}`));
    await expect.poll(() => held.length).toBeGreaterThan(0);
    const own = '+8613800000009';
    await post(smsTo(own), 'app2');
    for (let n = 0; n < 100 && !sent.includes(own); n++) {
      const before = sent.length;
      held.shift()?.end('{}');
      await expect.poll(() => sent.length, { interval: 10 }).toBeGreaterThan(before);
    }
    expect(sent).toContain(own);
    server.closeAllConnections();
    await messenger.close();
    server.close();
    await db.query('DELETE FROM outbox');
  });

  test('stays in the outbox without a provider', async () => {
    await messenger.close();
    messenger = await start();
    const before = webhook.requests.length + mailServer.mails.length;
    await post(smsTo('+8613800000006'));
    await post(mailTo('kept@example.com'));
    await expect
      .poll(() => rowOf('+8613800000006'))
      .toEqual({ state: 'kept', attempts: 0, reason: null });
    await expect.poll(() => rowOf('kept@example.com')).toMatchObject({ state: 'kept' });
    expect(webhook.requests.length + mailServer.mails.length).toBe(before);
  });
});
