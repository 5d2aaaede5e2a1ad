import { describe, expect, test } from 'vitest';
import { deviceLanguages, idsInCsv, strictestOf } from '../../../ops/console/src/draft/limits.ts';

describe('limits and suggestions of the form', () => {
  test('take the strictest limit of the connectors that the audience has', () => {
    const connectors: Parameters<typeof strictestOf>[0] = [
      { id: 'apns', limits: { bodyBytes: 4096 } },
      { id: 'vendor_b', limits: { titleChars: 49 } },
      { id: 'vendor_e', limits: { titleChars: 40 } },
    ];
    const strictest = (...reached: string[]) => strictestOf(connectors, reached, 'titleChars');
    expect(strictest('apns', 'vendor_b')).toEqual({ id: 'vendor_b', most: 49 });
    expect(strictest('vendor_b', 'vendor_e')).toEqual({ id: 'vendor_e', most: 40 });
    expect(strictest('apns')).toBeUndefined();
  });

  test('add the shares of locales that need the same translation', () => {
    const locales = [
      { value: 'zh_CN', share: 0.3 },
      { value: 'zh-Hans-SG', share: 0.2 },
      { value: 'zh-TW', share: 0.1 },
      { value: 'en-GB', share: 0.4 },
      { value: 'no locale!', share: 0.1 },
    ];
    expect(deviceLanguages(locales)).toEqual([
      { tag: 'zh-Hans', share: 0.5 },
      { tag: 'en', share: 0.4 },
      { tag: 'zh-Hant', share: 0.1 },
    ]);
  });

  test('read ids from a column with a known heading, otherwise from the first column', () => {
    expect(idsInCsv('name,Device Token\r\nAnn,aa\r\nBo,"bb"\r\nBo,bb\r\n')).toEqual(['aa', 'bb']);
    expect(idsInCsv('\uFEFFaa\nbb;2\n\n')).toEqual(['aa', 'bb']);
    expect(idsInCsv('id0\nid1')).toEqual(['id0', 'id1']);
  });
});
