import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { Clock } from '../../shared/clock.ts';
import type { SmsProviderUrl } from '../../shared/domain/messages/sms-provider.ts';
import { outIdOf } from '../../shared/domain/messages/sms-receipts.ts';
import type { HttpClient } from '../../shared/http/client.ts';
import type { HttpResult } from '../../shared/http/result.ts';
import type { Provider, ProviderResult, SmsMessage } from '../provider.ts';
import { type ClientOptions, openClient, parseReply } from './client.ts';
import {
  type ErrorKind,
  kindsOf,
  refuseTemplate,
  refuseVoice,
  resultOf,
  withoutCode,
} from './outcomes.ts';
import { signAliyun } from './signatures.ts';

type AliyunUrl = Extract<SmsProviderUrl, { provider: 'aliyun' }>;

const provider = 'Aliyun';
const version = '2017-05-25';

/** Error codes (Alibaba Cloud, Short Message Service, "API error codes", and the common errors). */
export const aliyunErrors = {
  smsCredentials: [
    'InvalidAccessKeyId.NotFound',
    'InvalidAccessKeyId.Inactive',
    'InvalidAccessKeyId',
    'InvalidAccessKeySecret',
    'SignatureDoesNotMatch',
    'IncompleteSignature',
    'MissingAccessKeyId',
  ],
  smsClock: ['InvalidTimeStamp.Expired', 'InvalidTimeStamp.Format'],
  smsAccount: [
    'isv.ACCOUNT_NOT_EXISTS',
    'isv.ACCOUNT_ABNORMAL',
    'isv.PRODUCT_UN_SUBSCRIPT',
    'isv.PRODUCT_UNSUBSCRIBE',
  ],
  smsBalance: ['isv.AMOUNT_NOT_ENOUGH', 'isv.OUT_OF_SERVICE', 'isv.BILLING_DEDUCTION_ERROR'],
  smsRight: [
    'isp.RAM_PERMISSION_DENY',
    'isv.RAM_CHECK_FAILED',
    'Forbidden.RAM',
    'NoPermission',
    'isv.DENY_IP_RANGE',
    'isv.SMS_TEST_NUMBER_LIMIT',
    'isv.SMS_TEST_SIGN_TEMPLATE_LIMIT',
  ],
  smsSignature: [
    'isv.SMS_SIGNATURE_ILLEGAL',
    'isv.SMS_SIGNATURE_SCENE_ILLEGAL',
    'isv.SMS_SIGN_ILLEGAL',
    'isv.SIGN_NAME_ILLEGAL',
    'isv.SIGN_STATE_ILLEGAL',
    'isv.SIGNATURE_BLACKLIST',
  ],
  smsTemplate: [
    'isv.SMS_TEMPLATE_ILLEGAL',
    'isv.SMS_CONTENT_MISMATCH_TEMPLATE_TYPE',
    'isv.TEMPLATE_PARAMS_ILLEGAL',
    'isv.TEMPLATE_MISSING_PARAMETERS',
  ],
  smsQuota: ['isv.DAY_LIMIT_CONTROL', 'isv.MONTH_LIMIT_CONTROL'],
  smsParameters: [
    'isv.INVALID_PARAMETERS',
    'isv.INVALID_JSON_PARAM',
    'isv.PARAM_LENGTH_LIMIT',
    'isv.PARAM_NOT_SUPPORT_URL',
  ],
  smsContent: ['isv.BLACK_KEY_CONTROL_LIMIT', 'isv.SMS_CONTENT_ILLEGAL', 'isv.UNSUPPORTED_CONTENT'],
  smsNumber: ['isv.MOBILE_NUMBER_ILLEGAL', 'isv.MOBILE_COUNT_OVER_LIMIT'],
  smsBarred: ['isv.CUSTOMER_REFUSED'],
  smsRegion: [
    'isv.NOT_SUPPORTED_COUNTRY',
    'isv.DOMESTIC_NUMBER_NOT_SUPPORTED',
    'isv.COUNTRY_RESTRICTED',
  ],
  smsBusy: ['Throttling', 'Throttling.User', 'Throttling.Api'],
  smsUnavailable: [
    'isp.SYSTEM_ERROR',
    'isp.GATEWAY_ERROR',
    'isp.UNKNOWN',
    'ServiceUnavailable',
    'InternalError',
    // The nonce of another request. The next try has a new nonce.
    'SignatureNonceUsed',
  ],
} as const satisfies Partial<Record<ErrorKind, readonly string[]>>;

const known = kindsOf(aliyunErrors);

/**
 * Returns the kind of a code. `isv.BUSINESS_LIMIT_CONTROL` is a limit of the number per minute,
 * hour or day, which only the message tells. Unknown codes: those of the service (`isp.`) and of a
 * rate are temporary, all others are final.
 */
function kindOf(code: string, message: string): ErrorKind {
  if (code === 'isv.BUSINESS_LIMIT_CONTROL')
    return /小时|天|hour|day/i.test(message) ? 'smsFrequency' : 'smsMinute';
  if (/^Throttling\./.test(code)) return 'smsBusy';
  return known(code) ?? (code.startsWith('isp.') ? 'smsUnavailable' : 'smsUnknown');
}

const replyShape = z.object({
  Code: z.string(),
  Message: z.string().catch(''),
  BizId: z.string().max(200).optional().catch(undefined),
});

/** Opens the provider (Aliyun Dysmsapi 2017-05-25, `SendSms`). */
export function openAliyun(url: AliyunUrl, options: ClientOptions): Provider<SmsMessage> {
  const client = openClient(new URL(url.endpoint).origin, options);
  return {
    host: new URL(url.endpoint).host,
    template: 'aliyun',
    async send(message) {
      if (message.isVoice) return refuseVoice(provider);
      const template = message.providerTemplate?.aliyun;
      if (!template) return refuseTemplate(provider, message.templateName);
      const values = Object.entries(template.params).map(([ours, theirs]) => [
        theirs,
        message.variables[ours] ?? '',
      ]);
      const parameters = {
        PhoneNumbers: numberOf(message.to),
        SignName: message.sign,
        TemplateCode: template.code,
        TemplateParam: JSON.stringify(Object.fromEntries(values)),
        OutId: outIdOf(message),
      };
      return readReply(await call(client, url, { action: 'SendSms', parameters, ...options }));
    },
    close: () => client.close(),
  };
}

/** Checks the credentials by listing one signature. */
export async function checkAliyun(url: AliyunUrl, options: ClientOptions): Promise<string | null> {
  const client = openClient(new URL(url.endpoint).origin, options);
  try {
    const parameters = { PageIndex: '1', PageSize: '1' };
    const reply = await call(client, url, { action: 'QuerySmsSignList', parameters, ...options });
    const result = readReply(reply);
    return result.kind === 'sent' ? null : result.reason;
  } finally {
    await client.close();
  }
}

interface Call {
  action: string;
  parameters: Record<string, string>;
  clock: Clock;
}

function call(client: HttpClient, url: AliyunUrl, { action, parameters, clock }: Call) {
  const { host, pathname: path } = new URL(url.endpoint);
  const { query, headers } = signAliyun(
    { host, path, action, version, parameters, epochMs: clock.now(), nonce: randomUUID() },
    url,
  );
  return client.request({ method: 'POST', path: `${path}?${query}`, headers });
}

/**
 * Returns the number as Aliyun writes it: without a country code in China, otherwise country code
 * and number without a plus.
 */
const numberOf = (e164: string): string => e164.replace(/^\+(?:86)?/, '');

function readReply(reply: HttpResult): ProviderResult {
  const body = parseReply(replyShape, reply);
  if (!body) return withoutCode(provider, reply);
  if (body.Code === 'OK')
    return { kind: 'sent', ...(body.BizId === undefined ? {} : { providerId: body.BizId }) };
  const afterMs = reply.kind === 'response' ? reply.retryAfterMs : null;
  return resultOf(kindOf(body.Code, body.Message), { provider, code: body.Code, afterMs });
}
