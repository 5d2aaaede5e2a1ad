import { refuse } from '../errors/errors.ts';
import type { Json, JsonObject } from '../json.ts';
import { parsePhone } from '../messages/phone.ts';
import type { Members } from '../objects/operations.ts';

/** A row is read for every login: far below the 16 MB of the public service, far above what profiles hold. */
export const maxUserBytes = 1024 * 1024;
/** Members of a class there (protocol/objects.md#object-limits). */
const maxFields = 300;
/** An index entry of PostgreSQL holds some 2700 bytes. */
const maxUsernameLength = 255;
const maxEmailLength = 254;
/** Hashing costs time by length; nobody types more. */
export const maxPasswordBytes = 1024;

const emailForm = /^[^\s@\p{Cc}"<>(),:;[\]\\]{1,64}@[^\s@\p{Cc}"<>(),:;[\]\\]+\.[^\s@\p{Cc}"<>(),:;[\]\\]+$/u;

const isStorable = (text: string): boolean => text.isWellFormed() && !/\p{Cc}/u.test(text);

/** Throws 200 for an empty text, 217 for anything else that is no text or blank. Case and blanks inside count. */
export function readUsername(value: unknown): string {
  if (value === '') throw refuse('usernameMissing');
  const isSound =
    typeof value === 'string' &&
    value.trim() !== '' &&
    value.length <= maxUsernameLength &&
    isStorable(value);
  if (!isSound) throw refuse('invalidUsername');
  return value;
}

/** Throws 201 for an empty text, 218 for anything else that is no text, blank or endless. */
export function readPassword(value: unknown): string {
  if (value === '') throw refuse('passwordMissing');
  const isSound =
    typeof value === 'string' && value.trim() !== '' && Buffer.byteLength(value) <= maxPasswordBytes;
  if (!isSound) throw refuse('invalidPassword');
  return value;
}

/** Throws 125. Case counts (protocol/users.md#user-fields); control characters never reach a mail header. */
export function readEmail(value: unknown): string {
  const isSound =
    typeof value === 'string' &&
    value.length <= maxEmailLength &&
    value.isWellFormed() &&
    emailForm.test(value);
  if (!isSound) throw refuse('invalidEmail');
  return value;
}

/** The number as E.164. Throws 127. */
export function readPhone(value: unknown): string {
  const phone = parsePhone(value);
  if (!phone) throw refuse('invalidPhone');
  return phone.e164;
}

/** The custom members of a user, or of what `noun` says. Throws 116 when there is too much. */
export function checkFields(members: Members, noun = 'A user'): JsonObject {
  if (members.size > maxFields) throw refuse('tooLarge', `${noun} has at most ${maxFields} members.`);
  const fields: Record<string, Json> = Object.fromEntries(members);
  if (Buffer.byteLength(JSON.stringify(fields)) > maxUserBytes)
    throw refuse('tooLarge', `${noun} is at most ${maxUserBytes} bytes.`);
  return fields;
}
