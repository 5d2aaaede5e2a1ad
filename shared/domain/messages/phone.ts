import { createRequire } from 'node:module';
import type { CountryCode, NumberType } from 'libphonenumber-js/max';

const require = createRequire(import.meta.url);

/** Loads the library with the first number: it takes 7 MB, and sending pushes needs none of it. */
const loadParser = (): typeof import('libphonenumber-js/max') => require('libphonenumber-js/max');

/**
 * Phone number that is valid in its country's numbering plan (protocol/users.md#user-fields: E.123,
 * +86 by default).
 */
export interface Phone {
  /** Form for storage, comparison and replies: `+`, country code, number, no blanks. */
  e164: string;
  /** Country calling code with its plus, such as `+86`. */
  callingCode: string;
  /**
   * ISO 3166 code of the country; undefined for numbers of no country, such as those of satellites.
   */
  country: string | undefined;
  /**
   * Supported kinds of messages; both where the country does not distinguish mobile from fixed
   * numbers.
   */
  can: { sms: boolean; voice: boolean };
}

/**
 * Mobile numbers of China. Its operators use prefixes that the library does not know yet, such as
 * 146 and 148.
 */
const newerMobile = /^\+861[3-9]\d{9}$/;
const newerPhone = (e164: string): Phone => ({
  e164,
  callingCode: '+86',
  country: 'CN',
  can: { sms: true, voice: true },
});

/** Country of a number without a country code (protocol/users.md#user-fields). */
const homeCountry: CountryCode = 'CN';

/** Accepted spelling: groups of digits (E.164 allows 15), without letters and extensions. */
const acceptedSpelling = /^\+?[\d ().-]{3,30}$/;

const smsTypes: ReadonlySet<NumberType> = new Set<NumberType>([
  'MOBILE',
  'FIXED_LINE_OR_MOBILE',
  undefined,
]);
/** Types that voice codes may call; premium and shared-cost numbers would charge the caller. */
const voiceTypes: ReadonlySet<NumberType> = new Set<NumberType>([
  ...smsTypes,
  'FIXED_LINE',
  'VOIP',
]);

/**
 * Parses a phone number as people write it; returns undefined for any other value. Two spellings of
 * a number return the same `e164`.
 */
export function parsePhone(text: unknown): Phone | undefined {
  if (typeof text !== 'string' || !acceptedSpelling.test(text.trim())) return undefined;
  const { parsePhoneNumberFromString } = loadParser();
  const parsed = parsePhoneNumberFromString(text.trim(), {
    defaultCountry: homeCountry,
    extract: false,
  });
  if (!parsed || parsed.ext !== undefined) return undefined;
  if (newerMobile.test(parsed.number)) return newerPhone(parsed.number);
  if (!parsed.isValid()) return undefined;
  const type = parsed.getType();
  return {
    e164: parsed.number,
    callingCode: `+${parsed.countryCallingCode}`,
    country: parsed.country,
    can: { sms: smsTypes.has(type), voice: voiceTypes.has(type) },
  };
}

/** Tells whether a text is the ISO 3166 code of a country that has phone numbers. */
export const isCountry = (text: string): boolean => loadParser().isSupportedCountry(text);

/**
 * Tells whether a number belongs to the home edition's country; voice codes and the free quota are
 * for these only.
 */
export const isDomesticPhone = (phone: Phone): boolean => phone.callingCode === '+86';
