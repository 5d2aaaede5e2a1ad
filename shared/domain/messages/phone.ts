import { type CountryCode, type NumberType, parsePhoneNumberFromString } from 'libphonenumber-js/max';

/** A phone number that exists in its country's numbering plan (protocol/users.md#user-fields: E.123, +86 by default). */
export interface Phone {
  /** As it is stored, compared and answered: `+`, country code, number, no blanks. */
  e164: string;
  /** Country calling code with its plus, such as `+86`. */
  callingCode: string;
  /** What it can be reached by. Numbers of countries that do not tell mobile from fixed can both. */
  can: { sms: boolean; voice: boolean };
}

/** A number without a country code belongs here (protocol/users.md#user-fields). */
const homeCountry: CountryCode = 'CN';

/** What people write: digits in groups, at most 15 by E.164. Letters, extensions and control characters are none. */
const written = /^\+?[\d ().-]{3,30}$/;

const takesSms: ReadonlySet<NumberType> = new Set<NumberType>(['MOBILE', 'FIXED_LINE_OR_MOBILE', undefined]);
/** Premium and shared-cost numbers would charge us for calling them. */
const takesCalls: ReadonlySet<NumberType> = new Set<NumberType>([...takesSms, 'FIXED_LINE', 'VOIP']);

/**
 * Reads a phone number as people write it; undefined for anything else, whatever its type. Two ways of writing
 * the same number give the same `e164`.
 */
export function parsePhone(text: unknown): Phone | undefined {
  if (typeof text !== 'string' || !written.test(text.trim())) return undefined;
  const parsed = parsePhoneNumberFromString(text.trim(), { defaultCountry: homeCountry, extract: false });
  if (!parsed?.isValid() || parsed.ext !== undefined) return undefined;
  const type = parsed.getType();
  return {
    e164: parsed.number,
    callingCode: `+${parsed.countryCallingCode}`,
    can: { sms: takesSms.has(type), voice: takesCalls.has(type) },
  };
}

/** Whether a number is of the home edition's country: voice codes and the free quota are for these only. */
export const isDomesticPhone = (phone: Phone): boolean => phone.callingCode === '+86';
