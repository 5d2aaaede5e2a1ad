import { createHash, createHmac, randomUUID } from 'node:crypto';
import { type Clock, minuteMs, systemClock } from '../../../shared/clock.ts';
import { type ReviewedTemplate, type SmsCall, type SmsReply, SmsSandbox } from './server.ts';

/** Account of the sandbox of Aliyun. */
export interface AliyunAccount {
  keyId: string;
  secret: string;
  signatures: readonly string[];
  templates: Readonly<Record<string, ReviewedTemplate>>;
  clock?: Clock;
}

const sha256 = (data: string) => createHash('sha256').update(data).digest('hex');
const error = (status: number, Code: string): SmsReply => ({
  status,
  body: { Code, Message: Code, RequestId: randomUUID(), HostId: 'dysmsapi.aliyuncs.com' },
});
const answer = (Code: string, Message: string = Code, more: object = {}): SmsReply => ({
  status: 200,
  body: { Code, Message, RequestId: randomUUID(), ...more },
});

const sendMembers = ['PhoneNumbers', 'SignName', 'TemplateCode', 'TemplateParam', 'OutId'];
/** Headers that a request must sign, besides all other `x-acs-` headers. */
const signedAlways = ['host', 'x-acs-action', 'x-acs-content-sha256', 'x-acs-date'];

/**
 * Aliyun Dysmsapi 2017-05-25: checks the signature ACS3-HMAC-SHA256, a timestamp of at most 15
 * minutes, nonces, members, signature names, templates and their parameters, and numbers.
 */
export function createAliyun(account: AliyunAccount): SmsSandbox {
  const { clock = systemClock } = account;
  const nonces = new Set<string>();
  return new SmsSandbox((call, sandbox) => {
    const refusal = refusalOf(call, account, { nowMs: clock.now(), nonces });
    if (refusal) return error(refusal.startsWith('InvalidAccessKeyId') ? 404 : 400, refusal);
    const query = new URLSearchParams(call.query);
    const action = call.headers['x-acs-action'];
    if (action === 'QuerySmsSignList') return answer('OK', 'OK', { SmsSignList: [] });
    if (action !== 'SendSms') return error(404, 'InvalidAction.NotFound');
    const unknown = [...query.keys()].filter((name) => !sendMembers.includes(name));
    if (unknown.length > 0) return error(400, 'InvalidParameter');
    const code = sendCode(query, account);
    if (code !== 'OK') return answer(code);
    const id = `${sandbox.sent.length + 1}^0`;
    const outId = query.get('OutId');
    sandbox.sent.push({
      id,
      to: query.get('PhoneNumbers') ?? '',
      sign: query.get('SignName') ?? '',
      template: query.get('TemplateCode') ?? '',
      content: query.get('TemplateParam') ?? '',
      ...(outId === null ? {} : { outId }),
    });
    return answer('OK', 'OK', { BizId: id });
  });
}

/** Returns the code of a refused request. */
function refusalOf(
  call: SmsCall,
  { keyId, secret }: AliyunAccount,
  { nowMs, nonces }: { nowMs: number; nonces: Set<string> },
): string | undefined {
  const { method, path, query, headers, body } = call;
  const header = (name: string) => String(headers[name] ?? '');
  const authorization = header('authorization');
  const [, key, signed = '', signature] =
    /^ACS3-HMAC-SHA256 Credential=([^,]+),SignedHeaders=([a-z0-9;-]+),Signature=([0-9a-f]{64})$/.exec(
      authorization,
    ) ?? [];
  if (key === undefined) return 'IncompleteSignature';
  if (key !== keyId) return 'InvalidAccessKeyId.NotFound';
  const names = signed.split(';');
  const needed = [
    ...signedAlways,
    ...Object.keys(headers).filter((name) => name.startsWith('x-acs-')),
  ];
  if (needed.some((name) => !names.includes(name))) return 'IncompleteSignature';
  const date = header('x-acs-date');
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/.test(date)) return 'InvalidTimeStamp.Format';
  if (Math.abs(Date.parse(date) - nowMs) > 15 * minuteMs) return 'InvalidTimeStamp.Expired';
  if (header('x-acs-content-sha256') !== sha256(body)) return 'SignatureDoesNotMatch';
  const canonical = [
    method,
    path,
    canonicalQuery(query),
    names
      .toSorted()
      .map((name) => `${name}:${header(name).trim()}\n`)
      .join(''),
    names.toSorted().join(';'),
    header('x-acs-content-sha256'),
  ].join('\n');
  const expected = createHmac('sha256', secret)
    .update(`ACS3-HMAC-SHA256\n${sha256(canonical)}`)
    .digest('hex');
  if (expected !== signature) return 'SignatureDoesNotMatch';
  if (header('x-acs-version') !== '2017-05-25') return 'InvalidVersion';
  const nonce = header('x-acs-signature-nonce');
  if (nonce === '' || nonces.has(nonce)) return 'SignatureNonceUsed';
  nonces.add(nonce);
  return undefined;
}

/** Sorts a query as sent and escapes it again, so that a wrong escape fails. */
function canonicalQuery(query: string): string {
  const escaped = (text: string) =>
    [...Buffer.from(text)]
      .map((byte) => {
        const character = String.fromCharCode(byte);
        return /[A-Za-z0-9_.~-]/.test(character)
          ? character
          : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
      })
      .join('');
  return [...new URLSearchParams(query)]
    .map(([name, value]) => `${escaped(name)}=${escaped(value)}`)
    .toSorted()
    .join('&');
}

function sendCode(query: URLSearchParams, { signatures, templates }: AliyunAccount): string {
  const number = query.get('PhoneNumbers') ?? '';
  const sign = query.get('SignName');
  const code = query.get('TemplateCode');
  if (sign === null || code === null) return 'isv.INVALID_PARAMETERS';
  if (!signatures.includes(sign)) return 'isv.SMS_SIGNATURE_ILLEGAL';
  const template = templates[code];
  if (!template) return 'isv.SMS_TEMPLATE_ILLEGAL';
  // Without a country code in China, otherwise country code and number.
  if (!/^(?:\+|86|0086|\+86)?1[3-9]\d{9}$|^(?!86)[1-9]\d{6,14}$/.test(number))
    return 'isv.MOBILE_NUMBER_ILLEGAL';
  let values: unknown;
  try {
    values = JSON.parse(query.get('TemplateParam') ?? '{}');
  } catch {
    return 'isv.INVALID_JSON_PARAM';
  }
  if (typeof values !== 'object' || values === null) return 'isv.INVALID_JSON_PARAM';
  const given = new Map<string, unknown>(Object.entries(values));
  const names = typeof template.parameters === 'number' ? [] : template.parameters;
  if (names.some((name) => !given.has(name))) return 'isv.TEMPLATE_MISSING_PARAMETERS';
  if ([...given.values()].some((value) => typeof value !== 'string'))
    return 'isv.INVALID_JSON_PARAM';
  if ([...given.values()].some((value) => String(value).length > 35))
    return 'isv.PARAM_LENGTH_LIMIT';
  return 'OK';
}
