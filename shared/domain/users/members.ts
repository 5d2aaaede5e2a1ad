import { refuse } from '../errors/errors.ts';
import type { Json, JsonObject } from '../json.ts';
import { parsePhone } from '../messages/phone.ts';
import type { Members } from '../objects/operations.ts';

/** Limit of a user. Every login reads the row, so the limit is far below the 16 MB of the public service. */
export const maxUserBytes = 1024 * 1024;
/** Limit of custom members, as on the public service (protocol/objects.md#object-limits). */
const maxFields = 300;
/** A user name: not blank, without control characters, and short enough for an index. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the characters that are refused
export const usernameForm = /^(?=.*\S)[^\x00-\x1f\x7f-\x9f]{1,255}$/;
const maxEmailLength = 254;
/** Limit of a password: the time of hashing grows with its length. */
export const maxPasswordBytes = 1024;

const emailForm = /^[^\s@\p{Cc}"<>(),:;[\]\\]{1,64}@[^\s@\p{Cc}"<>(),:;[\]\\]+\.[^\s@\p{Cc}"<>(),:;[\]\\]+$/u;

/** Reads a user name; case and inner blanks are significant. Throws 200 for an empty one, 217 for an invalid one. */
export function readUsername(value: unknown): string {
  if (value === '') throw refuse('usernameMissing');
  const isValid = typeof value === 'string' && usernameForm.test(value) && value.isWellFormed();
  if (!isValid) throw refuse('invalidUsername');
  return value;
}

/** Reads a password. Throws 201 for an empty one, 218 for a blank, too long or other invalid one. */
export function readPassword(value: unknown): string {
  if (value === '') throw refuse('passwordMissing');
  const isValid =
    typeof value === 'string' && value.trim() !== '' && Buffer.byteLength(value) <= maxPasswordBytes;
  if (!isValid) throw refuse('invalidPassword');
  return value;
}

/**
 * Reads an e-mail address; case is significant (protocol/users.md#user-fields). Throws 125, also for control
 * characters, which must not reach a mail header.
 */
export function readEmail(value: unknown): string {
  const isValid =
    typeof value === 'string' &&
    value.length <= maxEmailLength &&
    value.isWellFormed() &&
    emailForm.test(value);
  if (!isValid) throw refuse('invalidEmail');
  return value;
}

/** Reads a phone number and returns it as E.164. Throws 127. */
export function readPhone(value: unknown): string {
  const phone = parsePhone(value);
  if (!phone) throw refuse('invalidPhone');
  return phone.e164;
}

/** Checks the custom members of a user, or of the object that `noun` names. Throws 116 for too many or too large ones. */
export function checkFields(members: Members, noun = 'A user'): JsonObject {
  if (members.size > maxFields) throw refuse('tooLarge', `${noun} has at most ${maxFields} members.`);
  const fields: Record<string, Json> = Object.fromEntries(members);
  if (Buffer.byteLength(JSON.stringify(fields)) > maxUserBytes)
    throw refuse('tooLarge', `${noun} is at most ${maxUserBytes} bytes.`);
  return fields;
}
