import { hourMs, minuteMs } from '../../clock.ts';

/**
 * Rules of SMS and voice messages (protocol/codes.md#general-code-service and
 * protocol/codes.md#limits).
 */

/** Purpose of a message. A code is only valid for its purpose. */
export type SmsType =
  | 'general'
  | 'notification'
  | 'login'
  | 'verifyPhone'
  | 'changePhone'
  | 'resetPassword';
export type TemplateType = 'verification' | 'notification';
/** Kinds of messages with separate limits per number. */
export type SendKind = TemplateType | 'voice';

const second = 1000;

/** Limits of one kind of message. */
interface NumberLimits {
  minGapMs: number;
  perHour: number;
  perDay: number;
}

/**
 * Limits per number. For text messages they also count per signature (protocol/codes.md#limits).
 */
export const numberLimits: Record<SendKind, NumberLimits> = {
  verification: { minGapMs: minuteMs, perHour: Number.POSITIVE_INFINITY, perDay: 10 },
  notification: { minGapMs: minuteMs, perHour: Number.POSITIVE_INFINITY, perDay: 15 },
  voice: { minGapMs: 30 * second, perHour: 3, perDay: 5 },
};
/** Minimum gap between two messages of any kind to the same number. */
export const minGapOfAnyMs = 10 * second;

/** How long codes are valid, in minutes. */
export const codeTtl = { default: 10, forPhoneChange: 6, max: 30 } as const;
/** Attempts per code. With ten codes a day, this allows 50 guesses out of a million. */
export const maxCodeAttempts = 5;

/**
 * Limits for codes that are submitted without their number: attempts per network address in the
 * window, and how many of the newest codes requested from this address are compared. This allows 60
 * guesses per hour against ten codes.
 */
export const numberlessCode = { tries: 10, windowMs: 10 * minuteMs, maxCandidates: 10 } as const;

/**
 * Messages per hour to a block of 10,000 numbers. SMS pumping uses contiguous numbers; users do
 * not.
 */
export const blockPerHour = 1000;
/** Number of free domestic messages (protocol/codes.md#prices). */
export const freeMessages = 100;
/** Price of each further message, in currency units. */
export const prices = { domestic: 0.05, abroad: 0.5 } as const;
/** Minimum balance to create or change a template, for an app that has a balance. */
export const templateBalance = 200;

/**
 * Limits at which a country is suspended: of at least `minSent` codes sent in the window, a share
 * below `minUsedShare` was used.
 */
export const pumping = {
  windowMs: hourMs,
  bucketMs: 5 * minuteMs,
  minSent: 100,
  minUsedShare: 0.1,
  openMs: hourMs,
} as const;

/**
 * Texts in mails and SMS that users choose and other people receive. They must not contain links,
 * which could be used for advertising or phishing.
 */

/**
 * Matches schemes, `www.`, numeric addresses, and a letter, a dot and a letter (`example.com`,
 * `例子。中国`).
 */
const link =
  /https?|:\/\/|www\.|\d{1,3}(?:\.\d{1,3}){3}|[\p{L}\p{N}-]\.\p{L}|[\p{L}\p{N}-][\u3002](?:[a-z]{2,}|中国|公司|网络|网址)/iu;

/** Zero-width characters. They hide a link from the pattern but not from a reader. */
const invisible = /[\p{Cf}\p{Mn}\u115f\u1160\u3164]/gu;

/**
 * Replaces full-width letters, ligatures and other variants of characters by the plain characters
 * (Unicode NFKC).
 */
export const plainText = (text: string): string => text.normalize('NFKC');

/** True if a text contains a link, or text that mail and SMS programs convert to a link. */
export function containsLink(text: string): boolean {
  return link.test(plainText(text.replace(invisible, '')));
}

const maxNameChars = 40;

/**
 * Returns a user name for a mail: at most 40 plain characters. Returns an empty text if the name
 * contains a link. The recipient may be another person, and a sign-up must not send them
 * advertisements.
 */
export function mailName(name: string): string {
  if (containsLink(name)) return '';
  const plain = plainText(name)
    .replace(/[\p{Cc}\p{Bidi_Control}]+/gu, ' ')
    .trim();
  const characters = [...plain];
  return characters.length <= maxNameChars
    ? plain
    : `${characters.slice(0, maxNameChars - 1).join('')}…`;
}
