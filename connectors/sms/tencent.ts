import { z } from 'zod';
import { type Clock, hourMs } from '../../shared/clock.ts';
import type { SmsProviderUrl } from '../../shared/domain/messages/sms-provider.ts';
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
import { signTencent } from './signatures.ts';

type TencentUrl = Extract<SmsProviderUrl, { provider: 'tencent' }>;

const provider = 'Tencent Cloud';
const version = '2021-01-11';

/** Error codes (Tencent Cloud, SMS 2021-01-11, "Error Codes", and the common errors). */
export const tencentErrors = {
  smsCredentials: [
    'AuthFailure.InvalidAuthorization',
    'AuthFailure.InvalidSecretId',
    'AuthFailure.SecretIdNotFound',
    'AuthFailure.SignatureFailure',
    'AuthFailure.TokenFailure',
    'AuthFailure.MFAFailure',
    'InternalError.SigFieldMissing',
    'InternalError.SigVerificationFail',
  ],
  smsClock: ['AuthFailure.SignatureExpire', 'InternalError.RequestTimeException'],
  smsAccount: [
    'UnauthorizedOperation.SmsSdkAppIdVerifyFail',
    'UnauthorizedOperation.SdkAppIdIsDisabled',
    'InvalidParameterValue.SdkAppIdNotExist',
    'InvalidParameter.AppidAndBizId',
    'UnsupportedRegion',
  ],
  smsBalance: [
    'FailedOperation.InsufficientBalanceInSmsPackage',
    'UnauthorizedOperation.SerivceSuspendDueToArrears',
  ],
  smsRight: [
    'AuthFailure.UnauthorizedOperation',
    'UnauthorizedOperation',
    'UnauthorizedOperation.RequestIpNotInWhitelist',
    'UnauthorizedOperation.RequestPermissionDeny',
    'UnauthorizedOperation.IndividualUserMarketingSmsPermissionDeny',
  ],
  smsSignature: [
    'FailedOperation.SignatureIncorrectOrUnapproved',
    'FailedOperation.MissingSignature',
    'FailedOperation.MissingSignatureList',
  ],
  smsTemplate: [
    'FailedOperation.TemplateIncorrectOrUnapproved',
    'FailedOperation.MissingTemplateList',
    // The number of parameters is wrong, or a parameter of a verification template is no code.
    'FailedOperation.TemplateParamSetNotMatchApprovedTemplate',
    'InvalidParameterValue.TemplateParameterFormatError',
    'FailedOperation.TemplateUnapprovedOrNotExist',
  ],
  smsQuota: ['LimitExceeded.AppDailyLimit', 'LimitExceeded.DailyLimit'],
  smsParameters: [
    'FailedOperation.FailResolvePacket',
    'FailedOperation.JsonParseFail',
    'FailedOperation.ParametersOtherError',
    'FailedOperation.OtherError',
    'InternalError.JsonParseFail',
    'InvalidParameter',
    'InvalidParameter.InvalidParameters',
    'InvalidParameterValue.ContentLengthLimit',
    'InvalidParameterValue.TemplateParameterLengthLimit',
    'InvalidParameterValue.ProhibitedUseUrlInTemplateParameter',
    'MissingParameter',
    'MissingParameter.EmptyPhoneNumberSet',
    'UnknownParameter',
  ],
  smsContent: [
    'FailedOperation.ContainSensitiveWord',
    'FailedOperation.MarketingSendTimeConstraint',
    'InvalidParameter.DirtyWordFound',
  ],
  smsNumber: [
    'InvalidParameterValue.IncorrectPhoneNumber',
    'LimitExceeded.PhoneNumberCountLimit',
    'UnsupportedOperation.ContainDomesticAndInternationalPhoneNumber',
  ],
  smsBarred: ['FailedOperation.PhoneNumberInBlacklist'],
  smsRegion: ['UnsupportedOperation.UnsuportedRegion'],
  smsFrequency: [
    'LimitExceeded.PhoneNumberDailyLimit',
    'LimitExceeded.PhoneNumberOneHourLimit',
    'LimitExceeded.PhoneNumberSameContentDailyLimit',
  ],
  smsMinute: [
    'LimitExceeded.PhoneNumberThirtySecondLimit',
    // The limits are the operator's own. They may be as short as half a minute.
    'LimitExceeded.DeliveryFrequencyLimit',
  ],
  smsBusy: ['RequestLimitExceeded', 'RequestLimitExceeded.UinLimitExceeded', 'LimitExceeded'],
  smsUnavailable: [
    'InternalError',
    'InternalError.OtherError',
    'InternalError.SendAndRecvFail',
    'InternalError.Timeout',
    'InternalError.UnknownError',
    'ResourceUnavailable',
  ],
} as const satisfies Partial<Record<ErrorKind, readonly string[]>>;

const known = kindsOf(tencentErrors);

/** Returns the kind of a code. Unknown codes of the service and of a rate are temporary. */
function kindOf(code: string): ErrorKind {
  const isTemporary = /^(InternalError|ResourceUnavailable|RequestLimitExceeded)(\.|$)/.test(code);
  return known(code) ?? (isTemporary ? 'smsUnavailable' : 'smsUnknown');
}

const replyShape = z.object({
  Response: z.object({
    Error: z.object({ Code: z.string() }).optional(),
    SendStatusSet: z
      .array(
        z.object({ Code: z.string(), SerialNo: z.string().max(200).optional().catch(undefined) }),
      )
      .optional(),
  }),
});

/** Opens the provider (Tencent Cloud SMS 2021-01-11, `SendSms`). */
export function openTencent(url: TencentUrl, options: ClientOptions): Provider<SmsMessage> {
  const client = openClient(new URL(url.endpoint).origin, options);
  return {
    host: new URL(url.endpoint).host,
    template: 'tencent',
    async send(message) {
      if (message.isVoice) return refuseVoice(provider);
      const template = message.providerTemplate?.tencent;
      if (!template) return refuseTemplate(provider, message.templateName);
      const body = {
        PhoneNumberSet: [message.to],
        SmsSdkAppId: url.sdkAppId,
        SignName: message.sign,
        TemplateId: template.id,
        TemplateParamSet: template.params.map((name) => message.variables[name] ?? ''),
      };
      return readReply(await call(client, url, { action: 'SendSms', body, ...options }));
    },
    close: () => client.close(),
  };
}

/** Checks the credentials by asking for the packages of the last hour. */
export async function checkTencent(
  url: TencentUrl,
  options: ClientOptions,
): Promise<string | null> {
  const client = openClient(new URL(url.endpoint).origin, options);
  const nowMs = options.clock.now();
  try {
    const body = {
      SmsSdkAppId: url.sdkAppId,
      Limit: 1,
      Offset: 0,
      BeginTime: hourOf(nowMs - hourMs),
      EndTime: hourOf(nowMs),
    };
    const action = 'SmsPackagesStatistics';
    const reply = await call(client, url, { action, body, ...options });
    const response = parseReply(replyShape, reply)?.Response;
    if (response && response.Error === undefined) return null;
    const result = readReply(reply);
    return result.kind === 'sent' ? null : result.reason;
  } finally {
    await client.close();
  }
}

/** Returns a time in the form of the statistics: year to hour, in China. */
const hourOf = (epochMs: number): string =>
  new Date(epochMs + 8 * hourMs).toISOString().replace(/[-T]/g, '').slice(0, 10);

interface Call {
  action: string;
  body: object;
  clock: Clock;
}

function call(client: HttpClient, url: TencentUrl, { action, body, clock }: Call) {
  const { host, pathname: path } = new URL(url.endpoint);
  const { region } = url;
  const text = JSON.stringify(body);
  const headers = signTencent(
    { host, path, service: 'sms', action, version, region, body: text, epochMs: clock.now() },
    url,
  );
  return client.request({ method: 'POST', path, headers, body: text });
}

/** Returns the result of a response. A response without an error names the state of each number. */
function readReply(reply: HttpResult): ProviderResult {
  const response = parseReply(replyShape, reply)?.Response;
  const [first] = response?.SendStatusSet ?? [];
  const code = response?.Error?.Code ?? first?.Code;
  if (code === undefined) return withoutCode(provider, reply);
  if (code !== 'Ok') {
    const afterMs = reply.kind === 'response' ? reply.retryAfterMs : null;
    return resultOf(kindOf(code), { provider, code, afterMs });
  }
  const providerId = first?.SerialNo;
  return { kind: 'sent', ...(providerId === undefined ? {} : { providerId }) };
}
