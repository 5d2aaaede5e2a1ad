import { describe, expect, test } from 'vitest';
import { ConfigError, readConfig } from '../../shared/config/config.ts';
import { parseSmsUrl } from '../../shared/domain/messages/sms-provider.ts';
import { testEnvironment } from '../support/api.ts';

const sid = `AC${'0a'.repeat(16)}`;

describe('SMS_URL', () => {
  test.each<[string, object]>([
    [
      'aliyun://LTAI:abc@cn-hangzhou',
      {
        provider: 'aliyun',
        keyId: 'LTAI',
        secret: 'abc',
        region: 'cn-hangzhou',
        endpoint: 'https://dysmsapi.aliyuncs.com',
      },
    ],
    [
      'aliyun://LTAI:a%2Fb%2Bc@ap-southeast-1',
      {
        provider: 'aliyun',
        keyId: 'LTAI',
        secret: 'a/b+c',
        region: 'ap-southeast-1',
        endpoint: 'https://dysmsapi.ap-southeast-1.aliyuncs.com',
      },
    ],
    [
      'aliyun://LTAI:abc@cn-hangzhou?endpoint=http://127.0.0.1:9000/',
      {
        provider: 'aliyun',
        keyId: 'LTAI',
        secret: 'abc',
        region: 'cn-hangzhou',
        endpoint: 'http://127.0.0.1:9000',
      },
    ],
    [
      'tencent://AKID:key@ap-guangzhou?appId=1400006666',
      {
        provider: 'tencent',
        secretId: 'AKID',
        secretKey: 'key',
        region: 'ap-guangzhou',
        sdkAppId: '1400006666',
        endpoint: 'https://sms.tencentcloudapi.com',
      },
    ],
    ...['+15550006789', '%2B15550006789'].map<[string, object]>((from) => [
      `twilio://${sid}:tok@?from=${from}`,
      {
        provider: 'twilio',
        accountSid: sid,
        authToken: 'tok',
        from: '+15550006789',
        endpoint: 'https://api.twilio.com',
      },
    ]),
    [
      `twilio://${sid}:tok@?from=MG${'1b'.repeat(16)}&endpoint=https://proxy.example/sms`,
      {
        provider: 'twilio',
        accountSid: sid,
        authToken: 'tok',
        from: `MG${'1b'.repeat(16)}`,
        endpoint: 'https://proxy.example/sms',
      },
    ],
    ['https://u:p@sms.example/x', { provider: 'webhook', url: 'https://u:p@sms.example/x' }],
  ])('is understood: %s', (text, value) => {
    expect(parseSmsUrl(text)).toEqual({ ok: true, value });
  });

  test.each([
    ['', 'expected aliyun://'],
    ['ftp://x', 'expected aliyun://'],
    ['sendgrid://SESAME:SESAME@x', 'expected aliyun://'],
    ['aliyun://cn-hangzhou', 'user and secret'],
    ['aliyun://SESAME@cn-hangzhou', 'user and secret'],
    ['aliyun://SESAME:SESAME@', 'expected aliyun://'],
    ['aliyun://SESAME:SESAME@Region!', 'expected a region'],
    ['aliyun://SESAME:SESAME@cn-hangzhou:80', 'expected a region'],
    ['aliyun://SESAME:SESAME@cn-hangzhou/x', 'no path'],
    ['aliyun://SESAME:SESAME@cn-hangzhou?region=x', 'only endpoint'],
    ['aliyun://SESAME:SESAME@cn-hangzhou?endpoint=x', 'endpoint='],
    ['aliyun://SESAME:SESAME@cn-hangzhou?endpoint=ftp://x', 'endpoint='],
    ['aliyun://SESAME:SESAME@cn-hangzhou?endpoint=http://a&endpoint=http://b', 'each once'],
    ['aliyun://SESAME:%E9@cn-hangzhou', 'UTF-8'],
    ['tencent://SESAME:SESAME@ap-guangzhou', 'appId'],
    ['tencent://SESAME:SESAME@ap-guangzhou?appId=x', 'appId'],
    ['twilio://SESAME:SESAME@?from=+15550006789', 'account sid'],
    [`twilio://${sid}:SESAME@`, 'from'],
    [`twilio://${sid}:SESAME@?from=+0`, 'from'],
    [`twilio://${sid}:SESAME@us1?from=+15550006789`, 'nothing between'],
  ])('is refused with what is expected, without a quote: %s', (text, part) => {
    const result = parseSmsUrl(text);
    if (result.ok) throw new Error('it is accepted');
    expect(result.error).toContain(part);
    expect(result.error).not.toContain('SESAME');
  });

  const env = testEnvironment('postgresql://127.0.0.1/none');
  const hook = 'https://sms.example/x';
  test('may stand beside an equal SMS_WEBHOOK_URL, and no other', () => {
    const webhook = { provider: 'webhook', url: hook };
    expect(readConfig({ ...env, SMS_WEBHOOK_URL: hook }).sms).toEqual(webhook);
    expect(readConfig({ ...env, SMS_URL: hook, SMS_WEBHOOK_URL: hook }).sms).toEqual(webhook);
    expect(readConfig(env).sms).toBeUndefined();
    for (const SMS_URL of [`${hook}y`, 'aliyun://LTAI:SESAME@cn-hangzhou'])
      expect(() => readConfig({ ...env, SMS_URL, SMS_WEBHOOK_URL: hook })).toThrow(
        new ConfigError([
          'SMS_URL is wrong: expected the same URL as SMS_WEBHOOK_URL; remove SMS_WEBHOOK_URL',
        ]),
      );
  });
});
