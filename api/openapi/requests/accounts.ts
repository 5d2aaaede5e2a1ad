import { z } from 'zod';

/** Bodies of logins and of calls with codes and passwords, for the document only: the services check them. */

/** A phone number. */
export const phone = z.string().describe('Number with a country code; one without it belongs to +86.');
const email = z.string().describe('Address of the account.');
const password = z.string().max(1024);

/** Login: an identifier with a password, or a number with a code (protocol/users.md#calls-for-users). */
export const loginBody = z.object({
  username: z.string().optional(),
  email: email.optional(),
  mobilePhoneNumber: phone.optional(),
  password: password.optional().describe('Password; required without `smsCode`.'),
  smsCode: z.string().optional().describe('Code of a login; with `mobilePhoneNumber`.'),
});

/** Change of a password by its owner. */
export const passwordChange = z.object({ old_password: password, new_password: password });

/** Verification of a number; the code is part of the path. */
export const phoneVerification = z.object({
  mobilePhoneNumber: phone
    .optional()
    .describe('Number; by default that of the session, or the one the code was sent to.'),
});

/** Change of a number. */
/**
 * Minutes that a code is valid. Digits as a text are taken too, as the guide of the public service
 * shows them.
 */
export const ttlMinutes = z.preprocess(
  (value) => (typeof value === 'string' && /^\d{1,9}$/.test(value) ? Number(value) : value),
  z.number('expected minutes as a number'),
);

export const phoneChange = z.object({ mobilePhoneNumber: phone, code: z.string() });

/** New password by a code, which is part of the path. */
export const passwordReset = phoneVerification.extend({ password });

/** Request for a mail. */
export const mailRequest = z.object({ email });

/** Form with a new password. */
export const passwordForm = z.object({ password, repeat: password.describe('The password again.') });
