import { type AliyunAccount, createAliyun } from '../../../ops/sandbox/sms/aliyun.ts';
import { createTencent, type TencentAccount } from '../../../ops/sandbox/sms/tencent.ts';
import { createTwilio, type TwilioAccount } from '../../../ops/sandbox/sms/twilio.ts';
import { parseSmsUrl, type SmsProviderUrl } from '../../../shared/domain/messages/sms-provider.ts';

/** Accounts of the sandbox. Their secrets contain characters that a URL must escape. */
export const aliyunAccount: AliyunAccount = {
  keyId: 'LTAI5tSandbox',
  secret: 's/e+c@r%t',
  signatures: ['My app', 'Test app'],
  templates: { SMS_1: { parameters: ['code'] }, SMS_2: { parameters: ['vcode', 'minutes'] } },
};
export const tencentAccount: TencentAccount = {
  secretId: 'AKIDsandbox',
  secretKey: 's/e+c@r%t',
  sdkAppId: '1400006666',
  signatures: ['My app', 'Test app'],
  templates: { '100001': { parameters: 1 }, '100002': { parameters: 2 } },
};
export const twilioAccount: TwilioAccount = {
  accountSid: `AC${'0a'.repeat(16)}`,
  authToken: 's/e+c@r%t',
  senders: ['+15550006789', `MG${'1b'.repeat(16)}`],
};

export type ProviderName = 'aliyun' | 'tencent' | 'twilio';

/** Starts a provider of the sandbox. Returns it with the `SMS_URL` for it. */
export async function startProvider(name: ProviderName, { from = '+15550006789' } = {}) {
  const escaped = encodeURIComponent('s/e+c@r%t');
  const created = {
    aliyun: () => createAliyun(aliyunAccount),
    tencent: () => createTencent(tencentAccount),
    twilio: () => createTwilio(twilioAccount),
  };
  const sandbox = await created[name]().open();
  const endpoint = `endpoint=${encodeURIComponent(sandbox.url)}`;
  const urls = {
    aliyun: `aliyun://LTAI5tSandbox:${escaped}@cn-hangzhou?${endpoint}`,
    tencent: `tencent://AKIDsandbox:${escaped}@ap-guangzhou?appId=1400006666&${endpoint}`,
    twilio: `twilio://${twilioAccount.accountSid}:${escaped}@?from=${from}&${endpoint}`,
  };
  return { sandbox, url: urls[name], parsed: parsedUrl(urls[name]) };
}

/** Parses a URL of a built-in provider. Throws if it is invalid. */
export function parsedUrl(text: string): Exclude<SmsProviderUrl, { provider: 'webhook' }> {
  const result = parseSmsUrl(text);
  if (!result.ok) throw new Error(result.error);
  if (result.value.provider === 'webhook') throw new Error('the URL is that of a webhook');
  return result.value;
}
