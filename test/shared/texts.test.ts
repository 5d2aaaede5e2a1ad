import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { Refusal, refuse } from '../../shared/domain/errors/errors.ts';
import en from '../../shared/domain/texts/en.json' with { type: 'json' };
import {
  detail,
  type ForecastText,
  replyDetail,
  replyText,
  storedDetail,
  type TraceText,
  writeFinding,
  writeReplyText,
  writeText,
} from '../../shared/domain/texts/texts.ts';
import zh from '../../shared/domain/texts/zh.json' with { type: 'json' };

const root = join(import.meta.dirname, '../..');
const sourcesIn = (...folders: string[]): string[] =>
  folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => readFileSync(join(root, folder, name), 'utf8')),
  );
const product = sourcesIn('api', 'connectors', 'dispatcher', 'ops/cli', 'shared');

const namesIn = (text: string) =>
  [...text.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name).toSorted();
/** Returns the placeholders whose part of the text is left out if they have no value. */
const optionalIn = (text: string) =>
  namesIn([...text.matchAll(/\[[^[\]{}]*\{\w+\}[^[\]{}]*\]/g)].join());

const sections = Object.entries(en);
const chinese = new Map(
  Object.entries(zh).map(([section, texts]) => [section, new Map(Object.entries(texts))]),
);

describe('the catalogue', () => {
  test.each(sections)('has every code of %s in Chinese, with the same values', (section, texts) => {
    const translated = chinese.get(section);
    expect([...(translated?.keys() ?? [])]).toEqual(Object.keys(texts));
    for (const [code, text] of Object.entries(texts)) {
      const own = translated?.get(code) ?? '';
      expect(own, code).toMatch(/\p{Script=Han}|^\{\w+\}$|^api$|^dispatcher$/u);
      expect(text, code).not.toMatch(/\p{Script=Han}/u);
      expect(namesIn(own), code).toEqual(namesIn(text));
      expect(optionalIn(own), code).toEqual(optionalIn(text));
    }
  });

  test('has no section in one language only', () => {
    expect(Object.keys(zh)).toEqual(Object.keys(en));
  });

  test('has an action for findings only', () => {
    expect(Object.keys(en.advice).filter((code) => !(code in en.doctor))).toEqual([]);
  });

  // A stored reason contains its code without the section.
  test('has no code for both a reason and a detail', () => {
    expect(Object.keys(en.details).filter((code) => code in en.reasons)).toEqual([]);
  });

  test.for(['details', 'forecasts', 'trace', 'moveIn', 'doctor'] as const)(
    'has no unused code of %s',
    (section) => {
      const unused = Object.keys(en[section]).filter(
        (code) => !product.some((text) => text.includes(`'${code}'`)),
      );
      expect(unused).toEqual([]);
    },
  );
});

describe('a call with a code', () => {
  const calls = product.flatMap((text) => [
    ...text.matchAll(
      /\b(detail|forecast)\(\s*'(\w+)'(?:,\s*\{([^{}]*(?:\{[^{}]*\}[^{}]*)*)\})?,?\s*\)/g,
    ),
  ]);
  const texts = { detail: en.details, forecast: en.forecasts };

  test.each(calls.map(([whole, kind, code, values = '']) => [whole, kind, code, values] as const))(
    '%s has the values of its text',
    (_whole, kind, code, values) => {
      const known: Record<string, string> = texts[kind === 'detail' ? 'detail' : 'forecast'];
      const given = [...values.matchAll(/(?:^|,)\s*(\w+)\s*(?=[:,]|$)/g)].map(
        ([, name = '']) => name,
      );
      expect(given.toSorted()).toEqual([...new Set(namesIn(known[code ?? ''] ?? ''))]);
    },
  );

  test('is how the admin API refuses with a specific text', () => {
    const admin = sourcesIn('api/services/operator', 'api/services/push', 'api/routes/admin');
    const literal = /refuse\(\s*'\w+',\s*(['`])(.*?)\1,?\s*\)/gs;
    const texts = admin.flatMap((text) => [...text.matchAll(literal)].map(([, , own]) => own));
    // The text of a schema error.
    expect(texts).toEqual([expect.stringMatching(/^\$\{toErrorText/)]);
    expect(calls.length).toBeGreaterThan(100);
  });
});

describe('a detail', () => {
  test('has its values, and words of states in Chinese', () => {
    const moved = detail('wrongState', { state: 'done', verb: 'paused' });
    expect(refuse('conflict', moved).message).toBe('The push is done and cannot be paused.');
    expect(replyDetail(moved)).toEqual({
      code: 'wrongState',
      params: { state: 'done', verb: 'paused' },
    });
    expect(writeText('details', moved, 'zh')).toBe('推送的状态是已完成，不能暂停。');
  });

  test('leaves out parts without a value', () => {
    const { message } = refuse('incorrectType', detail('inexactNumber', { member: null }));
    expect(message).toBe('this number cannot be kept exactly; send it as a text.');
    expect(refuse('incorrectType', 'Something else.').detail).toBeUndefined();
  });

  test('keeps its Chinese text as the cause in another text', () => {
    const why = storedDetail(detail('noNamedProfile', { vendor: 'Xiaomi', name: '_default' }));
    const text: ForecastText = { code: 'refused', params: { why } };
    expect(writeText('forecasts', text, 'en')).toBe(
      'The push would be refused: There is no Xiaomi profile named _default.',
    );
    const chinese = '推送会被拒绝：没有名为 _default 的 Xiaomi 配置。';
    expect(writeText('forecasts', text, 'zh')).toBe(chinese);
    expect(writeReplyText('forecasts', replyText(text), 'zh')).toBe(chinese);
  });

  test('is not in a refusal with the text of the table', () => {
    expect(new Refusal('notFound')).toMatchObject({ message: 'Not found.', hasOwnText: false });
  });
});

describe('an explanation', () => {
  test('leaves out a part in brackets without its value, and uses names of the language', () => {
    const text: TraceText = {
      code: 'handedOver',
      params: { connector: 'vendor_b', profile: null, at: 'T' },
    };
    expect(writeText('trace', text, 'en')).toBe('It was accepted by Xiaomi at T.');
    expect(writeText('trace', text, 'zh')).toBe('小米已受理，时间 T。');
    const because: TraceText = { code: 'invalidDevice', params: {} };
    expect(writeText('trace', { code: 'notMatched', params: { because } }, 'zh')).toBe(
      '没有匹配：该设备记录无效。',
    );
  });

  test('names a gateway in the language of the text', () => {
    const params = { app: 'a', gateway: 'Huawei', profile: '_default', limit: 2 };
    const finding = { code: 'noMessageClasses', params };
    expect(writeFinding(finding, 'en').detail).toContain('profile _default of Huawei');
    expect(writeFinding(finding, 'zh').detail).toContain('的华为推送通道 _default');
  });

  test('says so if a value is unknown', () => {
    const params = { connector: 'apns', why: null, at: null };
    expect(writeText('trace', { code: 'gatewayRefuses', params }, 'en')).toBe(
      'APNs takes nothing: the reason is no longer kept (at an unknown time).',
    );
  });

  test('does not repeat the full stop of a reason that is a sentence', () => {
    const params = {
      connector: 'channel',
      profile: null,
      at: null,
      why: '400 The content must be a string.',
    };
    expect(writeText('trace', { code: 'refused', params }, 'en')).toBe(
      'The device channel did not take it (400 The content must be a string).',
    );
    expect(writeText('trace', { code: 'handedOver', params }, 'en')).toBe(
      'It was accepted by the device channel.',
    );
  });
});
