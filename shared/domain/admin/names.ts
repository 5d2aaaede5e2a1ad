import { z } from 'zod';
import { refuse } from '../errors/errors.ts';
import { isPathPart } from '../path.ts';
import { detail } from '../texts/texts.ts';

const maxLength = 100;

/**
 * Invisible characters: control and format characters (such as zero-width spaces and direction
 * marks), line separators, and lone surrogates.
 */
const invisibleCharacters = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u;

/**
 * Returns a name for people, trimmed. Throws error 1 if the name is empty, too long or contains
 * invisible characters.
 */
export function displayNameOf(name: string): string {
  const trimmed = name.trim();
  if (trimmed === '' || trimmed.length > maxLength || invisibleCharacters.test(trimmed))
    throw refuse('invalidParameter', detail('itemName', { n: maxLength }));
  return trimmed;
}

/**
 * Returns the name of a stored item that is part of its path, such as an audience or an SMS
 * template. The name is trimmed. Throws error 1 if the name is invalid or cannot be part of a path.
 */
export function itemNameOf(name: string): string {
  const trimmed = displayNameOf(name);
  if (!isPathPart(trimmed)) throw refuse('invalidParameter', detail('itemPath'));
  return trimmed;
}

/**
 * Normalises a name, so that names which people would confuse are equal. They may differ in case,
 * blanks, full-width characters and invisible characters.
 */
const nameKey = (name: string): string =>
  name
    .normalize('NFKC')
    .replaceAll(/[\s\p{Cc}\p{Cf}]/gu, '')
    .toUpperCase()
    .toLowerCase();

/**
 * True if people would confuse a name with a name of this service. `admin` is the holder of
 * CARILLON_ADMIN_TOKEN. In the audit, names of commands and decisions begin with `carillon`.
 */
function isReservedName(name: string): boolean {
  const key = nameKey(name);
  return key === 'admin' || key.startsWith('carillon');
}

/** Name of a person or machine, trimmed and composed (NFC). */
export const callerName = z
  .string('expected a text')
  .trim()
  .normalize('NFC')
  .min(1, 'must not be empty')
  .max(maxLength, `must be at most ${maxLength} characters`)
  .refine((text) => !invisibleCharacters.test(text), 'must not hold control or format characters')
  .refine((text) => !isReservedName(text), 'is a name of this service: choose another one');

/** True if people would confuse two names. */
export const isSameName = (one: string, other: string): boolean => nameKey(one) === nameKey(other);
