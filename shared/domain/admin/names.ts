import { z } from 'zod';
import { refuse } from '../errors/errors.ts';
import { isPathPart } from '../path.ts';
import { detail } from '../texts/texts.ts';

const maxLength = 100;

/**
 * Characters that nobody sees: control and format characters (such as zero-width blanks and marks
 * that change the direction), separators of lines, and half characters.
 */
const unseen = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u;

/**
 * Returns a name that people read, without blanks around it. Throws 1 for one that is empty, long,
 * or has unseen characters.
 */
export function displayNameOf(name: string): string {
  const trimmed = name.trim();
  if (trimmed === '' || trimmed.length > maxLength || unseen.test(trimmed))
    throw refuse('invalidParameter', detail('itemName', { n: maxLength }));
  return trimmed;
}

/**
 * Returns the name of a stored item that is a part of its path, such as an audience or an SMS
 * template, without blanks around it. Throws 1 for a name that a path cannot hold or that people
 * cannot read.
 */
export function itemNameOf(name: string): string {
  const shown = displayNameOf(name);
  if (!isPathPart(shown)) throw refuse('invalidParameter', detail('itemPath'));
  return shown;
}

/**
 * Returns a text that is the same for names which people take for one: of another case, with other
 * blanks, with full-width or with unseen characters.
 */
const nameKey = (name: string): string =>
  name
    .normalize('NFKC')
    .replaceAll(/[\s\p{Cc}\p{Cf}]/gu, '')
    .toUpperCase()
    .toLowerCase();

/**
 * Tells whether people would take a name for one of this service: `admin` is the holder of
 * CARILLON_ADMIN_TOKEN, and names of commands and decisions in the audit begin with `carillon`.
 */
function isReservedName(name: string): boolean {
  const key = nameKey(name);
  return key === 'admin' || key.startsWith('carillon');
}

/** Name of a person or a machine, composed (NFC), without blanks around it. */
export const callerName = z
  .string('expected a text')
  .trim()
  .normalize('NFC')
  .min(1, 'must not be empty')
  .max(maxLength, `must be at most ${maxLength} characters`)
  .refine((text) => !unseen.test(text), 'must not hold control or format characters')
  .refine((text) => !isReservedName(text), 'is a name of this service: choose another one');

/** Tells whether people take two names for one. */
export const isSameName = (one: string, other: string): boolean => nameKey(one) === nameKey(other);
