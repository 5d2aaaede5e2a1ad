import { afterEach, describe, expect, test } from 'vitest';
import type { SmsMessage } from '../../../connectors/provider.ts';
import { aliyunErrors } from '../../../connectors/sms/aliyun.ts';
import { checkSms, openSms } from '../../../connectors/sms/index.ts';
import { tencentErrors } from '../../../connectors/sms/tencent.ts';
import { twilioErrors } from '../../../connectors/sms/twilio.ts';
import { minuteMs, systemClock } from '../../../shared/clock.ts';
import { readReason } from '../../../shared/domain/reasons.ts';
import { isCode } from '../../../shared/domain/texts/catalogue.ts';
import {
  type ProviderName,
  parsedUrl,
  startProvider,
} from '../../support/servers/sms-providers.ts';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const timing = { connectMs: 2000, requestMs: 2000, drainMs: 0 };
const names = ['aliyun', 'tencent', 'twilio'] as const;

async function open(
  name: ProviderName,
  { from, skewMs = 0 }: { from?: string; skewMs?: number } = {},
) {
  const { sandbox, parsed } = await startProvider(name, from === undefined ? {} : { from });
  const clock = { ...systemClock, now: () => Date.now() + skewMs };
  const options = { keys: [], publicUrl: 'https://push.example.com', clock, timing };
  const provider = openSms(parsed, options);
  closers.push(
    () => sandbox.close(),
    () => provider.close(),
  );
  return { sandbox, provider, parsed };
}

const message: SmsMessage = {
  id: '42',
  appId: 'app1',
  type: 'general',
  to: '+8613800138000',
  text: '【My app】Your code is 123456',
  isVoice: false,
  code: '123456',
  sign: 'My app',
  variables: { code: '123456', ttl: '10', name: 'My app' },
  providerTemplate: {
    aliyun: { code: 'SMS_2', params: { code: 'vcode', ttl: 'minutes' } },
    tencent: { id: '100002', params: ['code', 'ttl'] },
  },
  templateName: '_default',
  expiresAtMs: 1_800_000_000_000,
};

describe('a message', () => {
  test('has the template of Aliyun, its parameters by name, and a number without +86', async () => {
    const { provider, sandbox } = await open('aliyun');
    expect(await provider.send(message)).toEqual({ kind: 'sent', providerId: '1^0' });
    expect(sandbox.sent).toEqual([
      {
        id: '1^0',
        to: '13800138000',
        sign: 'My app',
        template: 'SMS_2',
        content: '{"vcode":"123456","minutes":"10"}',
        outId: 'app1-42',
      },
    ]);
    await provider.send({ ...message, to: '+85298765432' });
    expect(sandbox.sent[1]?.to).toBe('85298765432');
  });

  test('has the template of Tencent Cloud, its parameters in order, and an E.164 number', async () => {
    const { provider, sandbox } = await open('tencent');
    expect(await provider.send(message)).toEqual({ kind: 'sent', providerId: '2640:1' });
    expect(sandbox.sent).toEqual([
      {
        id: '2640:1',
        to: '+8613800138000',
        sign: 'My app',
        template: '100002',
        content: '["123456","10"]',
      },
    ]);
  });

  test.each(['+15550006789', `MG${'1b'.repeat(16)}`])(
    'has its text, sender and address for receipts at Twilio: from %s',
    async (from) => {
      const { provider, sandbox } = await open('twilio', { from });
      const result = await provider.send(message);
      const [sent] = sandbox.sent;
      expect(result).toEqual({ kind: 'sent', providerId: sent?.id });
      expect(sent).toEqual({
        id: expect.stringMatching(/^SM/),
        to: '+8613800138000',
        content: message.text,
        callback: 'https://push.example.com/sms-receipts/twilio/app1/42',
      });
    },
  );

  test('asks for no receipts from a service that Twilio cannot reach', async () => {
    const { sandbox, parsed } = await startProvider('twilio');
    closers.push(() => sandbox.close());
    for (const publicUrl of ['http://127.0.0.1:8080', 'http://localhost', 'http://10.1.2.3']) {
      const provider = openSms(parsed, { keys: [], publicUrl, clock: systemClock, timing });
      expect(await provider.send(message)).toMatchObject({ kind: 'sent' });
      await provider.close();
    }
    expect(sandbox.sent.map(({ callback }) => callback)).toEqual([undefined, undefined, undefined]);
  });

  test.each(names)('that is a voice call is refused with a reason: %s', async (name) => {
    const { provider, sandbox } = await open(name);
    const result = await provider.send({ ...message, isVoice: true });
    expect(result).toMatchObject({
      kind: 'refused',
      reason: expect.stringContaining('smsNoVoice'),
    });
    expect(sandbox.calls).toEqual([]);
  });

  test.each(['aliyun', 'tencent'] as const)(
    'whose template has no entry is refused with the name of the template: %s',
    async (name) => {
      const { provider, sandbox } = await open(name);
      const result = await provider.send({
        ...message,
        providerTemplate: {},
        templateName: 'Code',
      });
      expect(result).toMatchObject({ kind: 'refused', isSetting: true });
      if (result.kind !== 'refused') throw new Error('not refused');
      const { code, params, text } = readReason(result.reason);
      expect(code).toBe('smsNoTemplate');
      expect(params).toMatchObject({
        template: 'Code',
        hint: expect.stringContaining('smsNoTemplate'),
      });
      expect(text).toContain('Put the entry');
      expect(sandbox.calls).toEqual([]);
    },
  );
});

/** A scenario: what differs from a message that is sent, and the kind of the result. */
type Change = Partial<SmsMessage>;
const aliyun = (entry: object): Change => ({
  providerTemplate: { aliyun: { code: 'SMS_1', params: { code: 'code' }, ...entry } },
});
const tencent = (entry: object): Change => ({
  providerTemplate: { tencent: { id: '100001', params: ['code'], ...entry } },
});

describe('a refusal of the provider itself', () => {
  test.each<[ProviderName, string, Change, string, boolean]>([
    ['aliyun', 'an unknown signature', { sign: 'Other' }, 'smsSignature', true],
    ['aliyun', 'an unknown template', aliyun({ code: 'SMS_9' }), 'smsTemplate', true],
    ['aliyun', 'a missing parameter', aliyun({ params: {} }), 'smsTemplate', true],
    [
      'aliyun',
      'a long value',
      { ...aliyun({}), variables: { code: '1'.repeat(36) } },
      'smsParameters',
      false,
    ],
    ['aliyun', 'an impossible number', { to: '+8612345' }, 'smsNumber', false],
    ['tencent', 'an unknown signature', { sign: 'Other' }, 'smsSignature', true],
    ['tencent', 'an unknown template', tencent({ id: '9' }), 'smsTemplate', true],
    ['tencent', 'a wrong number of parameters', tencent({ params: [] }), 'smsTemplate', true],
    ['tencent', 'an impossible number', { to: '+0' }, 'smsNumber', false],
    ['twilio', 'an impossible number', { to: '12' }, 'smsNumber', false],
    ['twilio', 'a long text', { text: 'x'.repeat(1601) }, 'smsContent', false],
    ['twilio', 'no text', { text: '' }, 'smsContent', false],
  ])('%s refuses %s', async (name, _what, change, code, isSetting) => {
    const { provider, sandbox } = await open(name);
    const result = await provider.send({ ...message, ...change });
    if (result.kind !== 'refused') throw new Error(`the result is ${result.kind}`);
    expect(readReason(result.reason).code).toBe(code);
    expect(result.isSetting === true).toBe(isSetting);
    expect(sandbox.sent).toEqual([]);
    expect(sandbox.calls).toHaveLength(1);
  });

  test.each<[ProviderName, (url: string) => string, string]>([
    ['aliyun', (url) => url.replace('LTAI5tSandbox', 'LTAIother'), 'smsCredentials'],
    ['aliyun', (url) => url.replace(/:s[^@]*@/, ':wrong@'), 'smsCredentials'],
    ['tencent', (url) => url.replace('AKIDsandbox', 'AKIDother'), 'smsCredentials'],
    ['tencent', (url) => url.replace(/:s[^@]*@/, ':wrong@'), 'smsCredentials'],
    ['tencent', (url) => url.replace('1400006666', '1400000000'), 'smsAccount'],
    ['twilio', (url) => url.replace(/:s[^@]*@/, ':wrong@'), 'smsCredentials'],
    ['twilio', (url) => url.replace('0006789', '0000000'), 'smsSender'],
    ['twilio', (url) => url.replace(/from=[^&]*/, `from=MG${'2c'.repeat(16)}`), 'smsSender'],
  ])('%s refuses another SMS_URL as a setting (%#)', async (name, change, code) => {
    const { sandbox, url } = await startProvider(name);
    const provider = openSms(parsedUrl(change(url)), {
      keys: [],
      publicUrl: 'http://127.0.0.1',
      clock: systemClock,
      timing,
    });
    closers.push(
      () => sandbox.close(),
      () => provider.close(),
    );
    const result = await provider.send(message);
    if (result.kind !== 'refused') throw new Error(`the result is ${result.kind}`);
    expect(readReason(result.reason).code).toBe(code);
    expect(result.isSetting).toBe(true);
  });

  test.each<[ProviderName, number, boolean]>([
    ['aliyun', 14 * minuteMs, true],
    ['aliyun', -14 * minuteMs, true],
    ['aliyun', 16 * minuteMs, false],
    ['aliyun', -16 * minuteMs, false],
    ['tencent', 4 * minuteMs, true],
    ['tencent', -4 * minuteMs, true],
    ['tencent', 6 * minuteMs, false],
    ['tencent', -6 * minuteMs, false],
  ])('%s checks the clock: a difference of %i ms is accepted: %s', async (name, skewMs, isSent) => {
    const { provider } = await open(name, { skewMs });
    const result = await provider.send(message);
    if (isSent) return expect(result.kind).toBe('sent');
    if (result.kind !== 'refused') throw new Error(`the result is ${result.kind}`);
    expect(readReason(result.reason).code).toBe('smsClock');
  });
});

const settings = new Set([
  'smsCredentials',
  'smsClock',
  'smsAccount',
  'smsBalance',
  'smsRight',
  'smsSignature',
  'smsTemplate',
  'smsSender',
  'smsQuota',
]);
const temporary = new Set(['smsBusy', 'smsUnavailable', 'smsMinute']);

/** Writes an error in the form of a provider. */
const errorOf = (name: ProviderName, code: string, text = code) =>
  ({
    aliyun: { status: 200, body: { Code: code, Message: text, RequestId: 'r' } },
    tencent: { status: 200, body: { Response: { Error: { Code: code, Message: text } } } },
    twilio: { status: 400, body: { code: Number(code), message: text, status: 400 } },
  })[name];

describe('every code of the tables', () => {
  const tables: Record<ProviderName, Record<string, readonly string[]>> = {
    aliyun: aliyunErrors,
    tencent: tencentErrors,
    twilio: twilioErrors,
  };
  test.each(names)('has the reaction, the reason and the hint of its kind: %s', async (name) => {
    const { provider, sandbox } = await open(name);
    const codes = Object.entries(tables[name]).flatMap(([kind, list]) =>
      list.map((code) => [kind, code] as const),
    );
    expect(new Set(codes.map(([, code]) => code)).size).toBe(codes.length);
    for (const [kind, code] of codes) {
      sandbox.answers.push(errorOf(name, code, 'the number 13800138000'));
      const result = await provider.send(message);
      if (result.kind === 'sent') throw new Error(`${code} counts as sent`);
      expect(result.kind, code).toBe(temporary.has(kind) ? 'retry' : 'refused');
      if (result.kind === 'refused')
        expect(result.isSetting === true, code).toBe(settings.has(kind));
      if (kind === 'smsMinute') expect(result).toMatchObject({ afterMs: minuteMs });
      const { code: stored, params, text } = readReason(result.reason);
      expect(stored).toBe(kind === 'smsMinute' ? 'smsFrequency' : kind);
      expect(isCode('reasons', stored)).toBe(true);
      expect(isCode('hints', stored)).toBe(true);
      expect(params.vendorCode).toBe(code);
      expect(text).not.toContain('138');
    }
  });
});

describe('a code that no table has', () => {
  test.each<[ProviderName, string, string]>([
    ['aliyun', 'isv.NEW_RULE', 'smsUnknown'],
    ['aliyun', 'isp.NEW_FAULT', 'smsUnavailable'],
    ['aliyun', 'Throttling.New', 'smsBusy'],
    ['tencent', 'FailedOperation.NewRule', 'smsUnknown'],
    ['tencent', 'InternalError.NewFault', 'smsUnavailable'],
    ['tencent', 'RequestLimitExceeded.New', 'smsUnavailable'],
    ['twilio', '29999', 'smsUnknown'],
  ])('%s %s is %s', async (name, code, kind) => {
    const { provider, sandbox } = await open(name);
    sandbox.answers.push(errorOf(name, code));
    const result = await provider.send(message);
    if (result.kind === 'sent') throw new Error('it counts as sent');
    expect(readReason(result.reason).code).toBe(kind);
    expect(result.kind).toBe(temporary.has(kind) ? 'retry' : 'refused');
  });

  test.each([
    ['触发分钟级流控Permits:1', 'retry'],
    ['触发小时级流控Permits:5', 'refused'],
    ['触发天级流控Permits:10', 'refused'],
    ['frequency exceeds the minute limit', 'retry'],
    ['frequency exceeds the day limit', 'refused'],
    ['something else', 'retry'],
  ])('a limit of Aliyun is read from its text: %s', async (text, kind) => {
    const { provider, sandbox } = await open('aliyun');
    sandbox.answers.push(errorOf('aliyun', 'isv.BUSINESS_LIMIT_CONTROL', text));
    expect((await provider.send(message)).kind).toBe(kind);
  });
});

describe('a reply that is not of the provider', () => {
  const bodies: readonly [number, object][] = [
    [200, {}],
    [200, { html: 'log in to the hotel' }],
    [401, { message: 'no' }],
    [403, { error: 'firewall' }],
    [404, {}],
    [407, {}],
    [429, {}],
    [502, {}],
  ];
  test.each(names)('says nothing about the message, which is sent again: %s', async (name) => {
    const { provider, sandbox } = await open(name);
    for (const [status, body] of bodies) {
      sandbox.answers.push({ status, body, headers: { 'retry-after': '7' } });
      expect(await provider.send(message)).toMatchObject({ kind: 'retry', afterMs: 7000 });
    }
  });

  test.each(names)('nor does a provider that is down: %s', async (name) => {
    const { provider, sandbox } = await open(name);
    await sandbox.close();
    expect(await provider.send(message)).toMatchObject({ kind: 'retry', afterMs: null });
  });
});

describe('the check of the credentials', () => {
  test.each(names)('accepts the right ones and sends nothing: %s', async (name) => {
    const { parsed, sandbox } = await open(name);
    expect(await checkSms(parsed, { clock: systemClock, timing })).toBeNull();
    expect(sandbox.sent).toEqual([]);
    expect(sandbox.calls).toHaveLength(1);
  });

  test.each(names)('gives the reason for wrong ones: %s', async (name) => {
    const { sandbox, url } = await startProvider(name);
    closers.push(() => sandbox.close());
    const wrong = parsedUrl(url.replace(/:s[^@]*@/, ':wrong@'));
    const reason = await checkSms(wrong, { clock: systemClock, timing });
    expect(readReason(reason ?? '').code).toBe('smsCredentials');
  });
});
