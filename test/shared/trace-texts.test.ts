import { expect, test } from 'vitest';
import { type TextCode, traceTexts, writeText } from '../../shared/domain/admin/trace-texts.ts';

const parametersOf = (text: string) =>
  [...text.matchAll(/\[?[^[\]{}]*\{(\w+)\}/g)].map(([, name]) => name).toSorted();

test.each(Object.entries(traceTexts))(
  '%s has the same parameters in English and Chinese',
  (_code, { en, zh }) => {
    expect(parametersOf(zh)).toEqual(parametersOf(en));
    expect(zh).toMatch(/\p{Script=Han}/u);
    expect(en).not.toMatch(/\p{Script=Han}/u);
  },
);

test('a part in brackets is left out without its parameter, and names are in the language', () => {
  const text = {
    code: 'handedOver' satisfies TextCode,
    params: { connector: 'vendor_b', profile: null, at: 'T' },
  } as const;
  expect(writeText(text, 'en')).toBe('It was handed over to Xiaomi at T.');
  expect(writeText(text, 'zh')).toBe('已交给小米，时间 T。');
  const because = { code: 'invalidDevice', params: {} } as const;
  expect(writeText({ code: 'notMatched', params: { because } }, 'zh')).toBe('没有匹配：该设备记录无效。');
});

test('a reason that is a sentence has no full stop within another one', () => {
  const params = { connector: 'channel', profile: null, at: null, why: '400 The content must be a string.' };
  expect(writeText({ code: 'refused', params }, 'en')).toBe(
    'The own channel did not take it (400 The content must be a string).',
  );
  expect(writeText({ code: 'handedOver', params }, 'en')).toBe('It was handed over to the own channel.');
});
