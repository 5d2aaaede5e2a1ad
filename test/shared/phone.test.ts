import { describe, expect, test } from 'vitest';
import { isDomesticPhone, parsePhone } from '../../shared/domain/messages/phone.ts';

describe('a phone number', () => {
  test.each([
    null,
    13800138000,
    { $ne: 1 },
    ['13800138000'],
    '',
    ' ',
    '110',
    '12345',
    '+86138001380001',
    '+8613800138000x3',
    '13800138000;ext=5',
    '13800138000\n13800138001',
    'tel:+8613800138000',
    '+8613800138000,+8613800138001',
    '+999123456789',
    '12012345678',
    '+86 120 1234 5678',
    '1461234567',
    '146123456789',
    '١٣٨٠٠١٣٨٠٠٠',
    '1'.repeat(10_000),
  ])('is not %j', (text) => {
    expect(parsePhone(text)).toBeUndefined();
  });

  test.each([
    ['13800138000', '+8613800138000'],
    ['+8613800138000', '+8613800138000'],
    ['+86 138 0013 8000', '+8613800138000'],
    [' 138-0013-8000 ', '+8613800138000'],
    ['+1 (415) 555-2671', '+14155552671'],
    ['+44 7911 123456', '+447911123456'],
    ...[
      '130',
      '140',
      '144',
      '146',
      '148',
      '149',
      '154',
      '165',
      '166',
      '172',
      '179',
      '191',
      '198',
      '199',
    ].map((prefix) => [`${prefix}12345678`, `+86${prefix}12345678`]),
  ])('is %j, like %s', (text, e164) => {
    expect(parsePhone(text)?.e164).toBe(e164);
  });

  test('has the kinds of messages that it can receive', () => {
    expect(parsePhone('13800138000')?.can).toEqual({ sms: true, voice: true });
    expect(parsePhone('+86 10 12345678')?.can).toEqual({ sms: false, voice: true });
    // Premium rate number of the United States, for which the caller pays.
    expect(parsePhone('+1 900 555 2671')?.can).toEqual({ sms: false, voice: false });
  });

  test('with a new Chinese prefix receives messages', () => {
    for (const number of ['14612345678', '+86 148 1234 5678'])
      expect(parsePhone(number)?.can).toEqual({ sms: true, voice: true });
  });

  test('is domestic in China', () => {
    const domestic = parsePhone('13800138000');
    const foreign = parsePhone('+14155552671');
    expect(domestic && isDomesticPhone(domestic)).toBe(true);
    expect(foreign && isDomesticPhone(foreign)).toBe(false);
  });
});
