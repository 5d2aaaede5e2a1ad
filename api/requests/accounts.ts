import { z } from 'zod';
import { optional, refusedAs } from './checked.ts';

const text = () => z.string().min(1);

const username = refusedAs(text(), { missing: 'usernameMissing', invalid: 'invalidUsername' });

/** A phone number. */
export const phone = refusedAs(text(), {
  missing: 'phoneMissing',
  invalid: 'invalidPhone',
}).describe('Number with a country code. Without a country code, it belongs to +86.');
/** A mail address. The service checks its form. */
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
 * Body of a login: an identifier with a password, or a number with a code
 * (protocol/users.md#calls-for-users).
 */
export const loginBody = z.object({
  username: username.nullish().describe('Name of the account.'),
  email: refusedAs(address, { invalid: 'invalidEmail' })
    .nullish()
    .describe('Address of the account.'),
  mobilePhoneNumber: phone.nullish(),
  // Has no maximum length, because a password that is too long is simply wrong.
  password: refusedAs(text(), { missing: 'passwordMissing', invalid: 'invalidPassword' })
    .nullish()
    .describe('Password. Required without `smsCode`.'),
  smsCode: code.nullish().describe('Code of a login, together with `mobilePhoneNumber`.'),
});

const changedPassword = () =>
  refusedAs(text().max(1024), {
    missing: 'passwordMissing',
    invalid: 'invalidPassword',
    isNamed: true,
  });

/** Body with which a user changes the password. */
export const passwordChange = z.object({
  old_password: changedPassword().describe('Current password.'),
  new_password: changedPassword().describe('New password.'),
});

/** Body with a number. The code is part of the path. */
export const numberOnly = z.object({ mobilePhoneNumber: phone });

/** Body that verifies a number. The code is part of the path. */
export const phoneVerification = z.object({
  mobilePhoneNumber: refusedAs(z.string(), { invalid: 'invalidPhone' })
    .nullish()
    .describe(
      'Number. By default the number of the session, or the number that the code was sent to.',
    ),
});

/**
 * Minutes for which a code is valid. Digits as a text are accepted too, because the public
 * service's guide shows them.
 */
export const ttlMinutes = z.preprocess(
  (value) => (typeof value === 'string' && /^\d{1,9}$/.test(value) ? Number(value) : value),
  z.number('expected minutes as a number'),
);

/** Body of a request for a code of an account. */
export const codeRequest = z.object({
  mobilePhoneNumber: phone,
  validate_token: optional(z.string('expected a text').max(100)).describe(
    'Token of a solved captcha.',
  ),
  ttl: optional(ttlMinutes).describe('Minutes for which the code is valid.'),
});

/** Body that changes a number. */
export const phoneChange = z.object({
  mobilePhoneNumber: phone,
  code: code.describe('Code that was sent to the new number.'),
});

/** Body with a new password. The code is part of the path. */
export const passwordReset = phoneVerification.extend({
  password: password.describe('New password.'),
});

/** Body of a request for a mail. */
export const mailRequest = z.object({ email });

/** Form with a new password. If it is invalid, the page in the reply names the error. */
export const passwordForm = z.object({
  password: z.string().optional().describe('New password.'),
  repeat: z.string().optional().describe('The password again.'),
});
