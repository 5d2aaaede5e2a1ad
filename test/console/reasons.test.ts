import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { connectors } from '../../connectors/registry.ts';
import { meaningOf, writeMeaning } from '../../shared/domain/admin/reasons/meaning.ts';
import type { JsonObject } from '../../shared/domain/json.ts';
import type { ConnectorId } from '../../shared/domain/labels.ts';
import {
  connectionReason,
  httpReason,
  reason,
  reasonAs,
  reasonTemplates,
  reasonText,
  withCause,
  withHint,
  withStatus,
} from '../../shared/domain/reasons.ts';
import { codesOf } from '../../shared/domain/texts/catalogue.ts';
import { aMessage } from '../support/gateways/apns.ts';

const root = join(import.meta.dirname, '../..');
const sources = [
  'connectors',
  'dispatcher',
  'shared/rules',
  'shared/http',
  'api/services/operator/gateways',
]
  .flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => readFileSync(join(root, folder, name), 'utf8')),
  )
  .join('\n');
const all = (pattern: RegExp): string[] =>
  [...sources.matchAll(pattern)].map(([, text = '']) => text);

/** Returns the stored reason why a gateway refuses the content. */
function rejection(connector: ConnectorId, data: JsonObject): string {
  const rendering = connectors
    .get(connector)
    ?.render(aMessage(data), connector === 'apns' ? 'ios' : 'android');
  return rendering?.ok === false ? rendering.error : '';
}

/** Reasons that the sources contain as literals. */
const literalReasons = new Set([
  ...all(/\breason: '([^']+)'/g),
  ...all(
    /\b(?:failed|retry|capped|profileError|configError|invalidMessage|rateLimited|busy)\(\s*(?:\w+|'[^']*'),\s*'([^']+)'/g,
  ),
]);
/** Reasons that no recipient has: successful replies, and replies to receipts. */
const successes = new Set(['ok', 'repeated', 'duplicate']);

test('every reason of the response tables and the dispatcher has its own meaning', () => {
  const reasons = [...literalReasons].filter((reason) => !successes.has(reason));
  expect(reasons.length).toBeGreaterThan(200);
  expect(reasons.filter((reason) => meaningOf(reason).code === 'other')).toEqual([]);
});

test('there is no unused meaning', () => {
  const known = [
    ...all(/'([A-Za-z_]+)'/g),
    // Codes of Node.js, which no source contains.
    ...['ENETUNREACH', 'ENOTFOUND', 'EAI_AGAIN', 'EPIPE', 'EHOSTUNREACH', 'ECONNREFUSED'],
    // The reason of a receipt of SMS, which no recipient of a push has.
    'smsUndelivered',
    // Codes that `reasons.ts` selects.
    ...[
      'certificateUntrusted',
      'connectionCode',
      'httpFailure',
      'httpRefusal',
      'proxyRefused',
      'tlsFailed',
    ],
  ];
  const named = new Set<string>([...known, 'other']);
  expect(codesOf('reasons').filter((code) => !named.has(code))).toEqual([]);
  expect(Object.keys(reasonTemplates).filter((code) => !named.has(code))).toEqual([]);
});

test('there is no unused hint', () => {
  expect(codesOf('hints').filter((code) => !sources.includes(`'${code}'`))).toEqual([]);
});

test.for([
  ['429 too_fast', withStatus(429, 'too_fast'), 'too_fast', '通道限制了发送速率'],
  ['503 http_503', withStatus(503, httpReason(503)), 'httpFailure', '通道以 HTTP 状态码 503 报错'],
  [
    'connect_failed ENOTFOUND',
    withCause('connect_failed', 'ENOTFOUND'),
    'ENOTFOUND',
    '找不到主机名',
  ],
  [
    'CERT_HAS_EXPIRED',
    connectionReason('CERT_HAS_EXPIRED'),
    'certificateUntrusted',
    '通道的证书不受信任：CERT_HAS_EXPIRED',
  ],
  [
    'retries exhausted: timeout',
    reason('retriesExhausted', { why: 'timeout' }),
    'retriesExhausted',
    '重试次数已用完：没有及时响应',
  ],
  [
    'expired; the last try: 429 too_fast',
    reason('expiredAfterTry', { why: withStatus(429, 'too_fast') }),
    'expiredAfterTry',
    '推送已过期；上一次尝试：通道限制了发送速率',
  ],
  [
    'signature_refused: Meizu refuses the signature: check appSecret.',
    withHint('signature_refused', 'meizuSignature'),
    'signature_refused',
    '魅族拒绝了签名：请检查 appSecret。',
  ],
  [
    'there is no vendor_a profile named main',
    reason('noProfileNamed', { connector: 'vendor_a', profile: 'main' }),
    'noProfileNamed',
    '没有名为 main 的华为推送通道',
  ],
  [
    'vendor_e.skipType must be one of 1, 2, 3, 4',
    rejection('vendor_e', { alert: 'a', vendor_e: { skipType: 'x' } }),
    'memberUnfit',
    '成员 vendor_e.skipType 不符合要求',
  ],
  [
    'skipContent of vendor_e must be an http:// or https:// URL',
    rejection('vendor_e', { alert: 'a', vendor_e: { skipType: 2, skipContent: 'x' } }),
    'memberRule',
    'vivo的成员 skipContent 不符合要求',
  ],
  [
    'aps.alert must not be given: a push of the type mdm has a body without aps',
    rejection('apns', { 'apns-push-type': 'mdm', aps: { alert: 'a' }, mdm: 'm' }),
    'memberUnfit',
    '成员 aps.alert 不符合要求',
  ],
  [
    'vendor_b.title must have at most 49 characters for vendor_b',
    rejection('vendor_b', { alert: 'a', vendor_b: { title: 'a'.repeat(60) } }),
    'tooLong',
    'vendor_b.title 超过了小米的长度限制',
  ],
  [
    'the certificate does not serve the topic com.example.app.voip',
    reason('certificateTopic', { topic: 'com.example.app.voip' }),
    'certificateTopic',
    '证书不支持主题 com.example.app.voip',
  ],
  [
    'The certificate is for the APNs environment dev only: set "environment" to it.',
    reason('certificateEnvironment', { environment: 'dev' }),
    'certificateEnvironment',
    '证书仅适用于 APNs 的 dev 环境：请相应设置 "environment"',
  ],
  [
    'The certificate is not valid before 2027-01-31: check the clock of this machine.',
    reason('certificateNotYet', { day: '2027-01-31' }),
    'certificateNotYet',
    '证书在 2027-01-31 之前无效：请检查本机时钟',
  ],
  [
    'authentication_535',
    reasonAs('authentication_535', 'authentication', { status: 535 }),
    'authentication',
    '邮件服务器拒绝了用户名或密码',
  ],
  [
    'certificate_refused: The certificate of the gateway is not trusted (EXPIRED): check endpoint and ca.',
    withHint('certificate_refused', { code: 'untrusted', params: { cause: 'EXPIRED' } }),
    'certificate_refused',
    '通道的证书不受信任（EXPIRED）：请检查 endpoint 和 ca。',
  ],
  [
    'certificate_refused: The certificate of the gateway is not trusted: check endpoint and ca.',
    withHint('certificate_refused', 'untrusted'),
    'certificate_refused',
    '通道的证书不受信任：请检查 endpoint 和 ca。',
  ],
  // Form in which earlier versions stored reasons.
  [
    'auth_failed: Look it up.',
    reasonAs('auth_failed: Look it up.', 'auth_failed', { hint: 'Look it up.' }),
    'auth_failed',
    '通道不接受凭证',
  ],
  ['something new', 'something new', 'other', '通道或服务给出的原因'],
] as const)('%s is parsed', ([text, stored, code, zh]) => {
  expect(reasonText(stored)).toBe(text);
  const meaning = meaningOf(stored);
  expect(meaning.code).toBe(code);
  expect(writeMeaning(JSON.parse(JSON.stringify(meaning)), 'zh')).toBe(zh);
});
