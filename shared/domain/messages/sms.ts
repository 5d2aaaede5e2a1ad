import { hourMs, minuteMs } from '../../clock.ts';

/**
 * Rules of SMS and voice messages (protocol/codes.md#general-code-service and
 * protocol/codes.md#limits).
 */

/** Purpose of a message. A code is valid for its purpose only. */
export type SmsType =
  | 'general'
  | 'notification'
  | 'login'
  | 'verifyPhone'
  | 'changePhone'
  | 'resetPassword';
export type TemplateType = 'verification' | 'notification';
/** Kind of message that the limits per number distinguish. */
export type SendKind = TemplateType | 'voice';

const second = 1000;

/** Limits of one kind of message. */
interface NumberLimits {
  minGapMs: number;
  perHour: number;
  perDay: number;
}

/** Limits per number, for texts also per signature (protocol/codes.md#limits). */
export const numberLimits: Record<SendKind, NumberLimits> = {
  verification: { minGapMs: minuteMs, perHour: Number.POSITIVE_INFINITY, perDay: 10 },
  notification: { minGapMs: minuteMs, perHour: Number.POSITIVE_INFINITY, perDay: 15 },
  voice: { minGapMs: 30 * second, perHour: 3, perDay: 5 },
};
/** Minimum gap between any two messages to a number. */
export const minGapOfAnyMs = 10 * second;

/** Validity of codes in minutes. */
export const codeTtl = { default: 10, forPhoneChange: 6, max: 30 } as const;
/** Tries per code: with ten codes a day, 50 guesses out of a million. */
export const maxCodeAttempts = 5;

/**
 * Limits for codes that are submitted without their number: tries of one network address within the
 * window, and the newest codes requested from it that are compared. That allows 60 guesses an hour
 * against ten codes.
 */
export const numberlessCode = { tries: 10, windowMs: 10 * minuteMs, maxCandidates: 10 } as const;

/**
 * Messages per hour to one block of 10,000 numbers: SMS pumping uses contiguous ranges, users do
 * not.
 */
export const blockPerHour = 1000;
/** Free domestic messages (protocol/codes.md#prices). */
export const freeMessages = 100;
/** Prices per further message, in currency units. */
export const prices = { domestic: 0.05, abroad: 0.5 } as const;
/** Balance required to create or change a template. */
export const templateBalance = 200;

/**
 * Suspension of a country: fewer than `minUsedShare` of at least `minSent` codes sent within the
 * window were used.
 */
export const pumping = {
  windowMs: hourMs,
  bucketMs: 5 * minuteMs,
  minSent: 100,
  minUsedShare: 0.1,
  openMs: hourMs,
} as const;

/**
 * User-chosen texts in mails and SMS to other people. They must not contain links, which could
 * advertise or phish.
 */

/**
 * Schemes, `www.`, numeric addresses, and letters with a dot before letters (`example.com`,
 * `例子。中国`).
 */
const link =
  /https?|:\/\/|www\.|\d{1,3}(?:\.\d{1,3}){3}|[\p{L}\p{N}-]\.\p{L}|[\p{L}\p{N}-][\u3002](?:[a-z]{2,}|中国|公司|网络|网址)/iu;

/** Zero-width characters, which would hide a link from the pattern but not from a reader. */
const invisible = /[\p{Cf}\p{Mn}\u115f\u1160\u3164]/gu;

/**
 * Folds full-width letters, ligatures and other variants of a character into the plain one (Unicode
 * NFKC).
 */
export const plainText = (text: string): string => text.normalize('NFKC');

/** Tells whether a text contains a link, or text that mail and SMS programs turn into one. */
export function holdsLink(text: string): boolean {
  return link.test(plainText(text.replace(invisible, '')));
}

const maxNameChars = 40;

/**
 * Returns a user name for a mail: at most 40 plain characters, or an empty text for a name with a
 * link. The recipient may be another person, and a sign-up must not send them advertisements.
 */
export function shownName(name: string): string {
  if (holdsLink(name)) return '';
  const plain = plainText(name)
    .replace(/[\p{Cc}\p{Bidi_Control}]+/gu, ' ')
    .trim();
  const characters = [...plain];
  return characters.length <= maxNameChars
    ? plain
    : `${characters.slice(0, maxNameChars - 1).join('')}…`;
}
