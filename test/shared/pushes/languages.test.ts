import { describe, expect, test } from 'vitest';
import {
  countLanguages,
  LanguageChooser,
  maxLanguages,
  replyLanguages,
  translated,
  translationsOf,
} from '../../../shared/domain/pushes/languages.ts';

const chooserOf = (...tags: string[]) =>
  new LanguageChooser(Object.fromEntries(tags.map((tag) => [tag, { alert: tag }])));

describe('the language of a locale', () => {
  test.each([
    ['zh_CN', 'zh-Hans', false],
    ['zh-Hans-CN', 'zh-Hans', false],
    ['zh_CN_#Hans', 'zh-Hans', false],
    ['zh', 'zh-Hans', false],
    ['zh-SG', 'zh-Hans', true],
    ['zh_TW', 'zh-Hant', false],
    ['zh-HK', 'zh-Hant-HK', false],
    ['zh-MO', 'zh-Hant', true],
    ['en', 'en', false],
    ['en_US.UTF-8', 'en', false],
    ['en_GB', 'en', true],
    ['en-AU-u-ca-buddhist', 'en', true],
    ['pt-PT', 'pt-BR', true],
    ['iw_IL', 'he', false],
    ['sr-Latn-RS', null, true],
    ['de_DE', null, true],
    ['C', null, true],
    ['', null, true],
    ['not a locale', null, true],
    ['e'.repeat(40), null, true],
  ])('%s is served by %s', (locale, language, isFallback) => {
    const chooser = chooserOf('zh-Hans', 'zh-Hant', 'zh-Hant-HK', 'en', 'pt-BR', 'he', 'sr');
    expect(chooser.choose(locale)).toEqual({ language, isFallback });
  });

  test('prefers its own region, then a translation without a region', () => {
    expect(chooserOf('en-US', 'en', 'en-GB').choose('en_GB').language).toBe('en-GB');
    expect(chooserOf('en-US', 'en', 'en-GB').choose('en_AU').language).toBe('en');
    expect(chooserOf('en', 'en-US').choose('en_US').language).toBe('en-US');
    expect(chooserOf('zh_CN').choose('zh-Hans').language).toBe('zh_CN');
  });

  test('is counted per recipient', () => {
    const counts = countLanguages(chooserOf('en', 'fr'), [
      { locale: 'en_US', devices: 3 },
      { locale: 'en_GB', devices: 2 },
      { locale: 'fr', devices: 6 },
      { locale: null, devices: 1 },
      { locale: 'de', devices: 1 },
    ]);
    expect(replyLanguages(counts)).toEqual([
      { language: 'fr', devices: 6, fallback: 0 },
      { language: 'en', devices: 5, fallback: 2 },
      { language: null, devices: 2, fallback: 2 },
    ]);
  });
});

describe('translations', () => {
  test('replace members, and those of the device-specific objects one by one', () => {
    const data = {
      alert: 'a',
      badge: 1,
      ios: { sound: 's', alert: 'i' },
      aps: { alert: 'x', badge: 2 },
    };
    expect(translated(data, { alert: 'b', ios: { alert: 'j' }, aps: { alert: 'y' } })).toEqual({
      alert: 'b',
      badge: 1,
      ios: { sound: 's', alert: 'j' },
      aps: { alert: 'y', badge: 2 },
    });
  });

  test.each([
    [[], 'languages: expected an object by language'],
    [{ en: 'Hi' }, 'languages: expected an object with members'],
    [{ 'no tag': {} }, 'languages: expected language tags'],
    [{ en: { alert: 1 } }, 'languages: alert is a string'],
    [{ en: { title: 1 } }, 'languages: title is a string'],
    [{ 'zh-CN': {}, zh_cn: {} }, 'languages: two of its tags mean the same'],
    [
      Object.fromEntries(Array.from({ length: maxLanguages + 1 }, (_, i) => [`en-${100 + i}`, {}])),
      `languages: at most ${maxLanguages}`,
    ],
  ])('%j is refused', (value, text) => {
    expect(() => translationsOf(value)).toThrow(text);
  });

  test('are optional', () => {
    expect([undefined, null, {}].map(translationsOf)).toEqual([undefined, undefined, undefined]);
  });
});
