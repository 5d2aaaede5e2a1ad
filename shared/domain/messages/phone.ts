import { createRequire } from 'node:module';
import type { CountryCode, NumberType } from 'libphonenumber-js/max';

const require = createRequire(import.meta.url);

/**
 * Loads libphonenumber when the first number is parsed. It needs 7 MB, and sending pushes does not
 * need it.
 */
const loadParser = (): typeof import('libphonenumber-js/max') => require('libphonenumber-js/max');

/**
 * Phone number that is valid in the numbering plan of its country (protocol/users.md#user-fields:
 * E.123, +86 by default).
 */
export interface Phone {
  /**
   * Normalised number for storage, comparison and replies: `+`, country code and number without
   * blanks.
   */
  e164: string;
  /** Country calling code with a plus, such as `+86`. */
  callingCode: string;
  /**
   * ISO 3166 code of the country. Undefined if the number belongs to no country, such as a
   * satellite phone.
   */
  country: string | undefined;
  /**
   * Kinds of messages that the number can receive. Both are true if the country does not
   * distinguish mobile from landline numbers.
   */
  can: { sms: boolean; voice: boolean };
}

/**
 * Mobile numbers of China. Its operators use prefixes that libphonenumber does not know yet, such
 * as 146 and 148.
 */
const newerMobile = /^\+861[3-9]\d{9}$/;
const newerPhone = (e164: string): Phone => ({
  e164,
  callingCode: '+86',
  country: 'CN',
  can: { sms: true, voice: true },
});

/** Country of a number that is written without a country code (protocol/users.md#user-fields). */
const homeCountry: CountryCode = 'CN';

/**
 * Accepted characters of a phone number: digits and separators. Letters and extensions are refused.
 */
const acceptedSpelling = /^\+?[\d ().-]{3,30}$/;

const smsTypes: ReadonlySet<NumberType> = new Set<NumberType>([
  'MOBILE',
  'FIXED_LINE_OR_MOBILE',
  undefined,
]);
/**
 * Number types that a voice code may call. Calls to premium and shared-cost numbers would be
 * charged.
 */
const voiceTypes: ReadonlySet<NumberType> = new Set<NumberType>([
  ...smsTypes,
  'FIXED_LINE',
  'VOIP',
]);

/**
 * Parses a phone number as people write it. Returns undefined if the text is not a valid number.
 * All spellings of a number have the same `e164`.
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

/** True if the text is the ISO 3166 code of a country that has phone numbers. */
export const isCountry = (text: string): boolean => loadParser().isSupportedCountry(text);

/**
 * True if the number is a Chinese number. Voice codes and the free quota are only for Chinese
 * numbers.
 */
export const isDomesticPhone = (phone: Phone): boolean => phone.callingCode === '+86';
