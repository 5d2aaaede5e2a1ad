import fc from 'fast-check';
import { expect, test } from 'vitest';
import { meaningOf, writeMeaning } from '../../shared/domain/admin/reasons/meaning.ts';
import {
  readReason,
  reason,
  reasonAs,
  reasonTemplates,
  reasonText,
  replyValues,
  shortenReason,
  storedReason,
  withHint,
  withStatus,
} from '../../shared/domain/reasons.ts';
import { isCode } from '../../shared/domain/texts/catalogue.ts';

const templates = Object.entries(reasonTemplates);
const awkward = ['a b', 'a "b"', "it's", '{cap}', '}{', 'a\nb', 'a\\b', '中文', '', '{"why":"x"}'];
const value = fc.oneof(fc.constantFrom(...awkward), fc.string({ unit: 'binary' }));
const withoutTabs = (text: string) => text.replaceAll('\t', ' ');

test('a stored reason of every template restores its text, its code and its values', () => {
  const property = fc.property(
    fc.constantFrom(...templates),
    fc.func(value),
    ([code, template], pick) => {
      const names = [...template.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name);
      const params = Object.fromEntries(names.map((name) => [name, pick(name)]));
      const text = template.replaceAll(/\{(\w+)\}/g, (_all, name: string) =>
        name === 'why' ? reasonText(params[name] ?? '') : (params[name] ?? ''),
      );
      const stored = String(Reflect.apply(reason, undefined, [code, params]));
      expect(readReason(stored)).toEqual({ text: withoutTabs(text), code, params });
      expect(reasonText(stored)).toBe(withoutTabs(text));
      expect(isCode('reasons', code)).toBe(true);
    },
  );
  fc.assert(property);
});

test.for(awkward)('a value %j is written into the text', (topic) => {
  const stored = reason('foreignTopic', { topic });
  expect(reasonText(stored)).toBe(`the topic ${topic} is not among those of the profile`);
  expect(meaningOf(stored)).toMatchObject({ code: 'foreignTopic', params: { topic } });
});

test.each([
  ['x\ud83d', 'x\ufffd'],
  ['\ude00x', '\ufffdx'],
  ['😀', '😀'],
])('a value %j is stored as whole characters', (topic, whole) => {
  const stored = reason('foreignTopic', { topic });
  const { text, params } = readReason(stored);
  expect([text, params]).toEqual([
    `the topic ${whole} is not among those of the profile`,
    { topic: whole },
  ]);
});

test('a code that equals its text is stored unchanged', () => {
  expect(reasonAs('timeout', 'timeout')).toBe('timeout');
  expect(readReason('timeout')).toEqual({ text: 'timeout', code: 'timeout', params: {} });
});

test('a reason within a reason shows its text', () => {
  const why = withStatus(503, reason('httpFailure', { status: 503 }));
  const stored = reason('retriesExhausted', { why });
  expect(reasonText(stored)).toBe('retries exhausted: 503 http_503');
  expect(readReason(stored).params).toEqual({ why });
  const meaning = meaningOf(stored);
  expect(meaning.params).toEqual({
    why: { text: '503 http_503', code: 'httpFailure', params: { status: '503' } },
  });
  expect(writeMeaning(meaning, 'en')).toBe(
    'all tries are used up: the gateway fails with HTTP status 503',
  );
  expect(writeMeaning(meaning, 'zh')).toBe('重试次数已用完：通道以 HTTP 状态码 503 报错');
});

test('a displayed reason is the stored reason in parts', () => {
  const hinted = withHint(withStatus(400, 'auth_failed'), 'credentialsUnfit');
  const stored = reason('expiredAfterTry', { why: reason('retriesExhausted', { why: hinted }) });
  const [{ why }] = [replyValues({ why: stored })];
  expect(why).toMatchObject({
    code: 'expiredAfterTry',
    params: { why: { code: 'retriesExhausted' } },
  });
  expect(storedReason(JSON.parse(JSON.stringify(why)))).toBe(stored);
  // A reason that equals its code, and a text of an earlier version.
  for (const plain of ['BadDeviceToken', 'retries exhausted: timeout'])
    expect(replyValues({ why: plain })).toEqual({ why: plain });
});

test('a text of an earlier version has no meaning and stays unchanged', () => {
  const old = 'retries exhausted: timeout';
  expect(reasonText(old)).toBe(old);
  expect(meaningOf(old)).toMatchObject({ code: 'other', params: {} });
});

test('a shortened reason is readable', () => {
  const stored = withHint('auth_failed', { code: 'untrusted', params: { cause: 'x'.repeat(300) } });
  const short = shortenReason(stored, 200);
  expect(short).toHaveLength(200);
  expect(readReason(short).text).toBe(short);
  expect(shortenReason('timeout', 200)).toBe('timeout');
});
