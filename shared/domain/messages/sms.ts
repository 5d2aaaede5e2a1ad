/** Rules of SMS and voice messages (protocol/codes.md#general-code-service and protocol/codes.md#limits). */

/** What a message is for; each has codes of its own. */
export type SmsType = 'general' | 'notification' | 'login' | 'verifyPhone' | 'changePhone' | 'resetPassword';
export type TemplateType = 'verification' | 'notification';
/** What the limits per number tell apart. */
export type SendKind = TemplateType | 'voice';

const second = 1000;
const minute = 60 * second;
export const hourMs = 60 * minute;
export const dayMs = 24 * hourMs;

export interface NumberLimits {
  minGapMs: number;
  perHour: number;
  perDay: number;
}

/** Per number, and per signature where it is a text (protocol/codes.md#limits). */
export const numberLimits: Record<SendKind, NumberLimits> = {
  verification: { minGapMs: minute, perHour: Number.POSITIVE_INFINITY, perDay: 10 },
  notification: { minGapMs: minute, perHour: Number.POSITIVE_INFINITY, perDay: 15 },
  voice: { minGapMs: 30 * second, perHour: 3, perDay: 5 },
};
/** Between any two messages to a number, whatever they are. */
export const minGapOfAnyMs = 10 * second;

/** Minutes. */
export const codeTtl = { default: 10, forPhoneChange: 6, max: 30 } as const;
/** Wrong tries after which a code is of no use: with ten codes a day, 50 guesses at a million. */
export const maxCodeAttempts = 5;

/**
 * Codes that come back without their number: tries of one network address within the window, and how many of the
 * newest codes asked for from there are looked at. So 60 guesses an hour at ten codes, whoever guesses.
 */
export const numberlessCode = { tries: 10, windowMs: 10 * minute, candidates: 10 } as const;

/** Messages to one block of 10,000 numbers an hour: people are spread, pumped ranges are not. */
export const blockPerHour = 1000;
/** Domestic messages without charge (protocol/codes.md#prices). */
export const freeMessages = 100;
/** Currency units per message beyond those. */
export const prices = { domestic: 0.05, abroad: 0.5 } as const;
/** Balance that making or changing a template needs. */
export const templateBalance = 200;

/** When sending to a country is broken off: of so many codes sent within the hour, fewer than the share were used. */
export const pumping = {
  windowMs: hourMs,
  bucketMs: 5 * minute,
  minSent: 100,
  minUsedShare: 0.1,
  openMs: hourMs,
} as const;
