import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { smsReceiptAddress } from '../../api/services/sms/receipts.ts';
import { type RunningDispatcher, startDispatcher } from '../../dispatcher/start.ts';
import type { SmsSandbox } from '../../ops/sandbox/sms/server.ts';
import { twilioReceipt } from '../../ops/sandbox/sms/twilio.ts';
import { Vault } from '../../shared/crypto.ts';
import type { App } from '../../shared/domain/apps/app.ts';
import { createLogger } from '../../shared/process/logging.ts';
import { startTestApi, type TestApi, testConfig } from '../support/api.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import {
  type ProviderName,
  startProvider,
  twilioAccount,
} from '../support/servers/sms-providers.ts';

/** A service that sends by a provider of the sandbox. */
class Service {
  readonly sandbox: SmsSandbox;
  readonly api: TestApi;
  readonly lines: string[] = [];
  readonly vault: Vault;
  readonly #database: TestDatabase;
  readonly #dispatcher: RunningDispatcher;

  private constructor(
    parts: { sandbox: SmsSandbox; api: TestApi; database: TestDatabase },
    dispatcher: RunningDispatcher,
    { lines, vault }: { lines: string[]; vault: Vault },
  ) {
    this.sandbox = parts.sandbox;
    this.api = parts.api;
    this.#database = parts.database;
    this.#dispatcher = dispatcher;
    this.lines = lines;
    this.vault = vault;
  }

  static async start(name: ProviderName): Promise<Service> {
    const database = await createTestDatabase();
    const { sandbox, url: SMS_URL } = await startProvider(name);
    const env = { SMS_URL, PUBLIC_URL: 'https://push.example.com' };
    const api = await startTestApi({ databaseUrl: database.url, env });
    const lines: string[] = [];
    const destination = { write: (line: string) => void lines.push(line) };
    const config = testConfig(database.url, env);
    const log = createLogger({ level: 'trace', name: 'test', destination });
    const dispatcher = await startDispatcher(config, log);
    const vault = new Vault(config.secrets);
    return new Service({ sandbox, api, database }, dispatcher, { lines, vault });
  }

  /** Sends a code. Returns the message of the outbox after its first try. */
  async send(app: App, body: { mobilePhoneNumber: string; [name: string]: string }) {
    const reply = await this.api.request('POST', '/1.1/requestSmsCode', { app, body });
    expect(reply.body).toEqual({});
    return this.settled(app, body.mobilePhoneNumber);
  }

  async settled(app: App, to: string) {
    await expect.poll(async () => (await this.message(app, to)).state).not.toBe('waiting');
    return this.message(app, to);
  }

  async message(app: App, to: string) {
    const query = `to=${encodeURIComponent(to)}&limit=1`;
    const path = `/console/api/apps/${app.appId}/outbox?${query}`;
    return (await this.api.request('GET', path, { admin: true })).body.results[0];
  }

  async template(app: App, name: string, body: object) {
    const path = `/console/api/apps/${app.appId}/sms-templates/${name}`;
    const put = await this.api.request('PUT', path, { admin: true, body });
    expect(put.body.error).toBeUndefined();
    return this.api.request('POST', `${path}/approve`, { admin: true });
  }

  async close(): Promise<void> {
    await Promise.all([this.api.close(), this.#dispatcher.stack.close()]);
    await this.sandbox.close();
    await this.#database.drop();
  }
}

const verification = (text: string, providers: object) => ({
  type: 'verification',
  text,
  providers,
});

describe('by Aliyun', () => {
  let service: Service;
  beforeAll(async () => {
    service = await Service.start('aliyun');
  });
  afterAll(() => service.close());
  const receipts = (secret: string) => `/sms-receipts/aliyun/${secret}`;
  const address = () => smsReceiptAddress('', service.vault, 'aliyun');

  test('a code needs a template, and is sent again after the operator made it', async () => {
    const app = await service.api.createApp();
    const to = '+8613800138001';
    const failed = await service.send(app, { mobilePhoneNumber: to });
    expect(failed).toMatchObject({ state: 'failed', delivery: null, providerId: null });
    expect(failed.reason).toBe(
      'the template _default has no entry for Aliyun: Put the entry for Aliyun into `providers` ' +
        'of the template _default and approve it, then send the failed messages again.',
    );
    const logged = () =>
      service.lines
        .map((line) => JSON.parse(line))
        .find(({ msg }) => msg === 'a setting makes the provider refuse messages');
    await expect.poll(logged).toMatchObject({
      level: 'error',
      host: new URL(service.sandbox.url).host,
      outcome: 'failed',
    });
    await service.template(
      app,
      '_default',
      verification('{{code}}', { aliyun: { code: 'SMS_1' }, tencent: { id: '1' } }),
    );
    const path = `/console/api/apps/${app.appId}/outbox/${failed.id}/retry`;
    expect((await service.api.request('POST', path, { admin: true })).status).toBe(200);
    expect(await service.settled(app, to)).toMatchObject({ state: 'sent', providerId: '1^0' });
    expect(service.sandbox.sent.at(-1)).toMatchObject({ to: '13800138001', template: 'SMS_1' });
  });

  test('numbers abroad have a template of their own', async () => {
    const app = await service.api.createApp();
    await service.template(
      app,
      '_default',
      verification('{{code}}', { aliyun: { code: 'SMS_1' } }),
    );
    await service.template(
      app,
      '_abroad',
      verification('{{code}} {{ttl}}', {
        aliyun: { code: 'SMS_2', params: { code: 'vcode', ttl: 'minutes' } },
      }),
    );
    await service.send(app, { mobilePhoneNumber: '+85298765432' });
    const sent = service.sandbox.sent.at(-1);
    expect(sent).toMatchObject({ to: '85298765432', template: 'SMS_2' });
    expect(JSON.parse(sent?.content ?? '')).toEqual({
      vcode: expect.stringMatching(/^\d{6}$/),
      minutes: '10',
    });
    await service.send(app, { mobilePhoneNumber: '+8613800138002' });
    expect(service.sandbox.sent.at(-1)?.template).toBe('SMS_1');
  });

  test('receipts come to an address with a secret', async () => {
    const app = await service.api.createApp();
    await service.template(app, 'Code', verification('{{code}}', { aliyun: { code: 'SMS_1' } }));
    const numbers = ['+8613800138003', '+8613800138004'];
    const outIds: (string | undefined)[] = [];
    for (const mobilePhoneNumber of numbers) {
      await service.send(app, { mobilePhoneNumber, template: 'Code' });
      outIds.push(service.sandbox.sent.at(-1)?.outId);
    }
    const body = [
      { success: true, err_code: 'DELIVERED', out_id: outIds[0], phone_number: '13800138003' },
      { success: false, err_code: 'MK:0001', out_id: outIds[1], phone_number: '13800138004' },
      { success: true, err_code: 'DELIVERED', out_id: 'of another program' },
      { success: true, err_code: 'DELIVERED', out_id: 'unknown-999' },
      // Messages that were sent without an id of their own.
      { success: true, err_code: 'DELIVERED', biz_id: '1^0' },
      { success: true, err_code: 'DELIVERED', out_id: null },
    ];
    expect((await service.api.request('POST', receipts('wrong'), { body })).status).toBe(404);
    const reply = await service.api.request('POST', address(), { body });
    expect(reply.body).toEqual({ code: 0, msg: 'OK' });
    expect(await service.message(app, numbers[0] ?? '')).toMatchObject({
      state: 'sent',
      delivery: 'delivered',
      deliveryReason: null,
      deliveredAt: expect.any(String),
    });
    expect(await service.message(app, numbers[1] ?? '')).toMatchObject({
      delivery: 'undelivered',
      deliveryReason: 'the SMS did not reach the device (MK:0001)',
    });
    // A delivered message stays delivered.
    const late = [{ success: false, err_code: 'LATE', out_id: outIds[0] }];
    await service.api.request('POST', address(), { body: late });
    expect(await service.message(app, numbers[0] ?? '')).toMatchObject({ delivery: 'delivered' });
  });

  test.each([
    ['{', 400],
    ['{}', 400],
    ['[{"success":"yes","out_id":"x"}]', 400],
    [JSON.stringify(Array.from({ length: 1001 }, () => ({ success: true, out_id: 'a' }))), 400],
    [JSON.stringify([{ success: true, out_id: 'x'.repeat(600_000) }]), 413],
    ['[]', 200],
  ])('receipts in another form or over the limit are refused (%#)', async (body, status) => {
    expect((await service.api.request('POST', address(), { body })).status).toBe(status);
  });

  test('receipts of Twilio are unknown', async () => {
    const path = '/sms-receipts/twilio/app1/1';
    expect((await service.api.request('POST', path, { body: '' })).status).toBe(404);
  });

  test('no log contains a number, a code or a secret', () => {
    expect(service.lines.length).toBeGreaterThan(0);
    const all = service.lines.join('\n');
    for (const secret of ['1380013800', 's/e+c@r%t', 's%2Fe%2Bc'])
      expect(all).not.toContain(secret);
  });
});

describe('by Tencent Cloud', () => {
  let service: Service;
  beforeAll(async () => {
    service = await Service.start('tencent');
  });
  afterAll(() => service.close());

  test('a message has its values in order, and its receipt by the id of the provider', async () => {
    const app = await service.api.createApp();
    await service.template(
      app,
      'Code',
      verification('{{name}} {{code}} {{ttl}}', {
        tencent: { id: '100002', params: ['code', 'ttl'] },
      }),
    );
    const mobilePhoneNumber = '+8613800138005';
    const { providerId } = await service.send(app, { mobilePhoneNumber, template: 'Code' });
    const values = JSON.parse(service.sandbox.sent.at(-1)?.content ?? '');
    expect(values).toEqual([expect.stringMatching(/^\d{6}$/), '10']);
    const body = [
      {
        user_receive_time: '2026-11-28 08:03:04',
        nationcode: '86',
        mobile: '13800138005',
        report_status: 'FAIL',
        errmsg: 'a number 13800138005',
        sid: providerId,
      },
    ];
    const address = smsReceiptAddress('', service.vault, 'tencent');
    const aliyun = address.replace('tencent', 'aliyun');
    expect((await service.api.request('POST', aliyun, { body })).status).toBe(404);
    const reply = await service.api.request('POST', address, { body });
    expect(reply.body).toEqual({ result: 0, errmsg: 'OK' });
    expect(await service.message(app, mobilePhoneNumber)).toMatchObject({
      delivery: 'undelivered',
      deliveryReason: 'the SMS did not reach the device (unknown)',
    });
  });
});

describe('by Twilio', () => {
  let service: Service;
  beforeAll(async () => {
    service = await Service.start('twilio');
  });
  afterAll(() => service.close());

  test('a message needs no template, and its receipts are signed', async () => {
    const app = await service.api.createApp();
    const mobilePhoneNumber = '+14155552671';
    await service.send(app, { mobilePhoneNumber });
    const sent = service.sandbox.sent.at(-1);
    if (!sent) throw new Error('nothing was sent');
    expect(sent.content).toMatch(/^\[Test app\] Your Test app code is \d{6}/);
    const post = ({ url, headers, body }: ReturnType<typeof twilioReceipt>) =>
      service.api.request('POST', new URL(url).pathname, { headers, body });
    const receipt = twilioReceipt(twilioAccount, sent, { MessageStatus: 'sent' });
    expect((await post(receipt)).status).toBe(200);
    expect(await service.message(app, mobilePhoneNumber)).toMatchObject({ delivery: null });

    const failed = { MessageStatus: 'undelivered', ErrorCode: '30003' };
    const signed = twilioReceipt(twilioAccount, sent, failed);
    const changed = { ...signed, body: signed.body.replace('undelivered', 'delivered') };
    const moved = { ...signed, url: signed.url.replace(/\d+$/, '999') };
    const other = twilioReceipt({ ...twilioAccount, authToken: 'other' }, sent, failed);
    const { 'x-twilio-signature': _, ...unsigned } = signed.headers;
    for (const forged of [changed, moved, other, { ...signed, headers: unsigned }])
      expect((await post(forged)).status).toBe(401);
    expect(await service.message(app, mobilePhoneNumber)).toMatchObject({ delivery: null });

    expect((await post(signed)).status).toBe(200);
    expect(await service.message(app, mobilePhoneNumber)).toMatchObject({
      delivery: 'undelivered',
      deliveryReason: 'the SMS did not reach the device (30003)',
    });
    const delivered = twilioReceipt(twilioAccount, sent, { MessageStatus: 'delivered' });
    expect((await post(delivered)).status).toBe(200);
    expect(await service.message(app, mobilePhoneNumber)).toMatchObject({ delivery: 'delivered' });
    const large = { ...signed, body: `${signed.body}&x=${'x'.repeat(20_000)}` };
    expect((await post(large)).status).toBe(413);
  });
});
