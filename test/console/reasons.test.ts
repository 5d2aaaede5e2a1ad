import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { doctorTexts } from '../../shared/domain/admin/doctor-texts.ts';
import { hintInChinese, hintsZh } from '../../shared/domain/admin/reasons/hints-zh.ts';
import { meaningOf } from '../../shared/domain/admin/reasons/meaning.ts';
import { patterns, sentences } from '../../shared/domain/admin/reasons/patterns.ts';
import { reasonTexts } from '../../shared/domain/admin/reasons/texts.ts';

const root = join(import.meta.dirname, '../..');
const sources = ['connectors', 'dispatcher', 'shared/rules', 'shared/http', 'api/services/operator/gateways']
  .flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => readFileSync(join(root, folder, name), 'utf8')),
  )
  .join('\n');
const tables = ['apns', 'fcm', ...['honor', 'huawei', 'meizu', 'oppo', 'vivo', 'xiaomi'].map(vendorFolder)];
function vendorFolder(name: string): string {
  return `vendors/${name}`;
}

const all = (pattern: RegExp): string[] => [...sources.matchAll(pattern)].map(([, text = '']) => text);

/** Reasons that the sources write as a literal. */
const literalReasons = new Set([
  ...all(/\breason: '([^']+)'/g),
  ...all(
    /\b(?:failed|retry|capped|profileError|configError|invalidMessage|rateLimited|busy)\(\s*(?:\w+|'[^']*'),\s*'([^']+)'/g,
  ),
]);
/** Reasons of no recipient: answers that are successes, and answers to receipts. */
const successes = new Set(['ok', 'repeated', 'duplicate']);

interface Rule {
  hint?: string;
  projectHint?: string;
}

async function rulesOf(folder: string): Promise<Rule[]> {
  const exported: unknown[] = Object.values(await import(`${root}/connectors/${folder}/errors.ts`));
  return exported.filter((one) => Array.isArray(one)).flat();
}

const placeholders = (text: string) => [...text.matchAll(/\{(\w+)\}/g)].map(([, name]) => name).sort();
const isChinese = (text: string) => /\p{Script=Han}/u.test(text);

test('every reason of the response tables and the dispatcher has a meaning of its own', () => {
  const reasons = [...literalReasons].filter((reason) => !successes.has(reason));
  expect(reasons.length).toBeGreaterThan(200);
  expect(reasons.filter((reason) => meaningOf(reason).code === 'other')).toEqual([]);
});

test('no meaning is left over, and both languages have the same values', () => {
  const targets = new Set([...Object.values(sentences), ...patterns.map(([, code]) => code), 'other']);
  const known = [
    ...all(/'([A-Za-z_]+)'/g),
    // Codes of Node.js, which no source writes.
    ...['ENETUNREACH', 'ENOTFOUND', 'EAI_AGAIN', 'EPIPE', 'EHOSTUNREACH', 'ECONNREFUSED'],
  ];
  const named = new Set<string>([...targets, ...known]);
  expect(Object.keys(reasonTexts.en).filter((code) => !named.has(code))).toEqual([]);
  for (const [code, en] of Object.entries(reasonTexts.en)) {
    const zh = new Map(Object.entries(reasonTexts.zh)).get(code) ?? '';
    expect(isChinese(zh), code).toBe(true);
    expect(placeholders(zh), code).toEqual(placeholders(en));
  }
  for (const sentence of Object.keys(sentences)) expect(sources, sentence).toContain(sentence);
});

test('every hint of the response tables has a Chinese text, and none is left over', async () => {
  const rules = (await Promise.all(tables.map(rulesOf))).flat();
  const hints = new Set(rules.flatMap(({ hint, projectHint }) => [hint ?? [], projectHint ?? []].flat()));
  expect(hints.size).toBeGreaterThan(40);
  expect([...hints].filter((hint) => hintInChinese(hint) === undefined)).toEqual([]);
  const leftOver = Object.keys(hintsZh).filter((hint) => !hints.has(hint) && !sources.includes(hint));
  expect(leftOver).toEqual([]);
});

test.for([
  ['429 too_fast', 'too_fast', '网关限制了发送速率'],
  ['503 http_503', 'httpFailure', '网关以 HTTP 状态码 503 报错'],
  ['connect_failed ENOTFOUND', 'ENOTFOUND', '找不到主机名'],
  ['CERT_HAS_EXPIRED', 'certificateUntrusted', '网关的证书不受信任：CERT_HAS_EXPIRED'],
  ['retries exhausted: timeout', 'retriesExhausted', '重试次数已用完：没有及时响应'],
  ['expired; the last try: 429 too_fast', 'expiredAfterTry', '推送已过期；上一次尝试：网关限制了发送速率'],
  [
    'signature_refused: Meizu refuses the signature: check appSecret.',
    'signature_refused',
    '魅族拒绝了签名：请检查 appSecret。',
  ],
  ['there is no vendor_a profile named main', 'noProfileNamed', '没有名为 main 的华为推送配置'],
  ['skipType of vendor_e must be a number', 'memberRule', 'vivo的成员 skipType 不符合要求'],
  ['mi.extra.notify_effect must be 1, 2 or 3', 'memberUnfit', '成员 mi.extra.notify_effect 不符合要求'],
  ['fcm.colour: there is no such member; known are data', 'memberUnfit', '成员 fcm.colour 不符合要求'],
  [
    'aps.alert must not be given: a push of the type mdm has a body without aps',
    'memberUnfit',
    '成员 aps.alert 不符合要求',
  ],
  ['alert must have at most 49 characters for vendor_b', 'tooLong', 'alert 超过了小米的长度限制'],
  [
    'the certificate does not serve the topic com.example.app.voip',
    'certificateTopic',
    '证书不支持主题 com.example.app.voip',
  ],
  [
    'The certificate expired on 2026-01-31: upload a new one.',
    'certificateEnded',
    '证书已于 2026-01-31 过期：请上传新证书',
  ],
  [
    'The certificate is for the APNs environment dev only: set "environment" to it.',
    'certificateEnvironment',
    '证书仅适用于 APNs 的 dev 环境：请相应设置 "environment"',
  ],
  [
    'The certificate is not valid before 2027-01-31: check the clock of this machine.',
    'certificateNotYet',
    '证书在 2027-01-31 之前无效：请检查本机时钟',
  ],
  [
    "The certificate names no bundle id, as Apple's push certificates do: check that it is one.",
    'certificateUnnamed',
    '证书没有写明 bundle id，而 Apple 的推送证书都会写明：请确认它是推送证书',
  ],
  ['authentication_535', 'authentication', '邮件服务器拒绝了用户名或密码'],
  ['something new', 'other', '网关或服务给出的原因'],
] as const)('%s is read', ([reason, code, zh]) => {
  expect(meaningOf(reason)).toMatchObject({ code, zh });
});

test('every finding of the service has both texts, with the same values, and is used', () => {
  const checks = readdirSync(join(root, 'api/services/operator/doctor'), { encoding: 'utf8' })
    .map((name) => readFileSync(join(root, 'api/services/operator/doctor', name), 'utf8'))
    .join('\n');
  for (const [code, { en, zh }] of Object.entries(doctorTexts)) {
    expect(checks, code).toContain(`'${code}'`);
    expect(isChinese(zh.detail), code).toBe(true);
    expect(zh.advice === '', code).toBe(en.advice === '');
    for (const part of ['detail', 'advice'] as const)
      expect(placeholders(zh[part]), code).toEqual(placeholders(en[part]));
  }
});
