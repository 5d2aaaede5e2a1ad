import { createHash, createHmac, randomUUID } from 'node:crypto';
import { type Clock, minuteMs, systemClock, utcDay } from '../../../shared/clock.ts';
import { isJsonObject, type JsonObject } from '../../../shared/domain/json.ts';
import { type ReviewedTemplate, type SmsCall, type SmsReply, SmsSandbox } from './server.ts';

/** Account of the sandbox of Tencent Cloud. */
export interface TencentAccount {
  secretId: string;
  secretKey: string;
  sdkAppId: string;
  signatures: readonly string[];
  templates: Readonly<Record<string, ReviewedTemplate>>;
  clock?: Clock;
}

const sha256 = (data: string) => createHash('sha256').update(data).digest('hex');
const hmac = (key: string | Buffer, data: string) =>
  createHmac('sha256', key).update(data).digest();

/** All replies have the status 200. */
const answer = (response: object): SmsReply => ({
  status: 200,
  body: { Response: { ...response, RequestId: randomUUID() } },
});
const error = (Code: string) => answer({ Error: { Code, Message: Code } });

const actions: Readonly<Record<string, readonly string[]>> = {
  SendSms: [
    'PhoneNumberSet',
    'SmsSdkAppId',
    'TemplateId',
    'SignName',
    'TemplateParamSet',
    'ExtendCode',
    'SessionContext',
    'SenderId',
  ],
  SmsPackagesStatistics: ['SmsSdkAppId', 'Limit', 'Offset', 'BeginTime', 'EndTime'],
};

/**
 * Tencent Cloud SMS 2021-01-11: checks the signature TC3-HMAC-SHA256, a timestamp of at most five
 * minutes, members, application, signature names, templates and the number and form of their
 * parameters, and numbers.
 */
export function createTencent(account: TencentAccount): SmsSandbox {
  const { clock = systemClock } = account;
  return new SmsSandbox((call, sandbox) => {
    const refusal = refusalOf(call, account, clock.now());
    if (refusal) return error(refusal);
    const action = String(call.headers['x-tc-action'] ?? '');
    const members = actions[action];
    if (!members) return error('InvalidAction');
    if (!call.headers['x-tc-region']) return error('MissingParameter');
    let body: unknown;
    try {
      body = JSON.parse(call.body);
    } catch {
      return error('InvalidParameter');
    }
    if (!isJsonObject(body)) return error('InvalidParameter');
    if (Object.keys(body).some((name) => !members.includes(name))) return error('UnknownParameter');
    if (body.SmsSdkAppId !== account.sdkAppId)
      return error('UnauthorizedOperation.SmsSdkAppIdVerifyFail');
    if (action === 'SmsPackagesStatistics') return answer({ SmsPackagesStatisticsSet: [] });
    return send(body, account, sandbox);
  });
}

function refusalOf(
  { method, path, query, headers, body }: SmsCall,
  { secretId, secretKey }: TencentAccount,
  nowMs: number,
): string | undefined {
  const header = (name: string) => String(headers[name] ?? '');
  const [, id, date = '', service = '', signed = '', signature] =
    /^TC3-HMAC-SHA256 Credential=([^/]+)\/(\d{4}-\d\d-\d\d)\/(\w+)\/tc3_request, ?SignedHeaders=([a-z0-9;-]+), ?Signature=([0-9a-f]{64})$/.exec(
      header('authorization'),
    ) ?? [];
  if (id === undefined) return 'AuthFailure.InvalidAuthorization';
  if (id !== secretId) return 'AuthFailure.SecretIdNotFound';
  const timestamp = header('x-tc-timestamp');
  const atMs = Number(timestamp) * 1000;
  if (!/^\d{10}$/.test(timestamp) || Math.abs(atMs - nowMs) > 5 * minuteMs)
    return 'AuthFailure.SignatureExpire';
  if (utcDay(atMs) !== date) return 'AuthFailure.SignatureFailure';
  const names = signed.split(';');
  if (!names.includes('host') || !names.includes('content-type') || service !== 'sms')
    return 'AuthFailure.SignatureFailure';
  const lines = names.map((name) => `${name}:${header(name).trim().toLowerCase()}\n`).join('');
  const canonical = [method, path, query, lines, signed, sha256(body)].join('\n');
  const key = hmac(hmac(hmac(`TC3${secretKey}`, date), service), 'tc3_request');
  const toSign = `TC3-HMAC-SHA256\n${timestamp}\n${date}/${service}/tc3_request\n${sha256(canonical)}`;
  if (hmac(key, toSign).toString('hex') !== signature) return 'AuthFailure.SignatureFailure';
  return header('x-tc-version') === '2021-01-11' ? undefined : 'NoSuchVersion';
}

function send(body: JsonObject, account: TencentAccount, sandbox: SmsSandbox): SmsReply {
  const numbers = body.PhoneNumberSet;
  const values = body.TemplateParamSet ?? [];
  const template = account.templates[String(body.TemplateId)];
  if (!Array.isArray(numbers) || numbers.length === 0)
    return error('MissingParameter.EmptyPhoneNumberSet');
  if (!Array.isArray(values) || values.some((value) => typeof value !== 'string'))
    return error('InvalidParameterValue.TemplateParameterFormatError');
  const code = codeOf(
    { number: String(numbers[0]), sign: body.SignName, template, values },
    account,
  );
  const id = `${2640}:${sandbox.sent.length + 1}`;
  if (code === 'Ok')
    sandbox.sent.push({
      id,
      to: String(numbers[0]),
      sign: String(body.SignName),
      template: String(body.TemplateId),
      content: JSON.stringify(values),
    });
  return answer({
    SendStatusSet: [
      {
        SerialNo: code === 'Ok' ? id : '',
        PhoneNumber: numbers[0],
        Fee: code === 'Ok' ? 1 : 0,
        SessionContext: body.SessionContext ?? '',
        Code: code,
        Message: code === 'Ok' ? 'send success' : code,
        IsoCode: 'CN',
      },
    ],
  });
}

interface Sms {
  number: string;
  sign: unknown;
  template: ReviewedTemplate | undefined;
  values: readonly unknown[];
}

function codeOf({ number, sign, template, values }: Sms, { signatures }: TencentAccount): string {
  if (!/^\+[1-9]\d{6,14}$/.test(number)) return 'InvalidParameterValue.IncorrectPhoneNumber';
  if (typeof sign !== 'string' || !signatures.includes(sign))
    return 'FailedOperation.SignatureIncorrectOrUnapproved';
  const { parameters } = template ?? {};
  if (parameters === undefined) return 'FailedOperation.TemplateIncorrectOrUnapproved';
  const expected = typeof parameters === 'number' ? parameters : parameters.length;
  return expected === values.length ? 'Ok' : 'FailedOperation.TemplateIncorrectOrUnapproved';
}
