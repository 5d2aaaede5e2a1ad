import { z } from 'zod';
import { optional, refusedAs } from './checked.ts';

/**
 * Bodies of logins and of calls with codes and passwords (protocol/users.md, protocol/codes.md).
 */

const text = () => z.string().min(1);

const username = refusedAs(text(), { missing: 'usernameMissing', invalid: 'invalidUsername' });

/** A phone number. */
export const phone = refusedAs(text(), {
  missing: 'phoneMissing',
  invalid: 'invalidPhone',
}).describe('Number with a country code; one without it belongs to +86.');
/** A mail address; the service checks its form. */
export const address = z.string().min(1).meta({ format: 'email' });

const email = refusedAs(address, { missing: 'emailMissing', invalid: 'invalidEmail' }).describe(
  'Address of the account.',
);
const password = refusedAs(text().max(1024), {
  missing: 'passwordMissing',
  invalid: 'invalidPassword',
});
/** A code of an SMS. */
export const code = refusedAs(text(), { missing: 'invalidSmsCode', invalid: 'invalidSmsCode' });

/**
 * Login: an identifier with a password, or a number with a code
 * (protocol/users.md#calls-for-users).
 */
export const loginBody = z.object({
  username: username.nullish(),
  email: refusedAs(address, { invalid: 'invalidEmail' })
    .nullish()
    .describe('Address of the account.'),
  mobilePhoneNumber: phone.nullish(),
  // Of any length: one that is too long is a wrong one.
  password: refusedAs(text(), { missing: 'passwordMissing', invalid: 'invalidPassword' })
    .nullish()
    .describe('Password; required without `smsCode`.'),
  smsCode: code.nullish().describe('Code of a login; with `mobilePhoneNumber`.'),
});

const changedPassword = () =>
  refusedAs(text().max(1024), {
    missing: 'passwordMissing',
    invalid: 'invalidPassword',
    isNamed: true,
  });

/** Change of a password by its owner. */
export const passwordChange = z.object({
  old_password: changedPassword(),
  new_password: changedPassword(),
});

/** Number of a call with a code, which is part of the path. */
export const numberOnly = z.object({ mobilePhoneNumber: phone });

/** Verification of a number; the code is part of the path. */
export const phoneVerification = z.object({
  mobilePhoneNumber: refusedAs(z.string(), { invalid: 'invalidPhone' })
    .nullish()
    .describe('Number; by default that of the session, or the one the code was sent to.'),
});

/**
 * Minutes that a code is valid. Digits as a text are taken too, as the guide of the public service
 * shows them.
 */
export const ttlMinutes = z.preprocess(
  (value) => (typeof value === 'string' && /^\d{1,9}$/.test(value) ? Number(value) : value),
  z.number('expected minutes as a number'),
);

/** Request for a code of an account. */
export const codeRequest = z.object({
  mobilePhoneNumber: phone,
  validate_token: optional(z.string('expected a text').max(100)).describe(
    'Token of a solved captcha.',
  ),
  ttl: optional(ttlMinutes).describe('Minutes for which the code is valid.'),
});

/** Change of a number. */
export const phoneChange = z.object({ mobilePhoneNumber: phone, code });

/** New password by a code, which is part of the path. */
export const passwordReset = phoneVerification.extend({ password });

/** Request for a mail. */
export const mailRequest = z.object({ email });

/** Form with a new password; the page that answers it names its faults. */
export const passwordForm = z.object({
  password: z.string().optional(),
  repeat: z.string().optional().describe('The password again.'),
});
