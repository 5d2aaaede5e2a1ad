import { hourMs, minuteMs } from '../../clock.ts';

/** Rules of SMS and voice messages (protocol/codes.md#general-code-service and protocol/codes.md#limits). */

/** Purpose of a message. A code is valid for its purpose only. */
export type SmsType = 'general' | 'notification' | 'login' | 'verifyPhone' | 'changePhone' | 'resetPassword';
export type TemplateType = 'verification' | 'notification';
/** Kind of message that the limits per number distinguish. */
export type SendKind = TemplateType | 'voice';

const second = 1000;

/** Limits of one kind of message. */
export interface NumberLimits {
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
 * Limits for codes that are submitted without their number: tries of one network address within the window, and the
 * newest codes requested from it that are compared. That allows 60 guesses an hour against ten codes.
 */
export const numberlessCode = { tries: 10, windowMs: 10 * minuteMs, maxCandidates: 10 } as const;

/** Messages per hour to one block of 10,000 numbers: SMS pumping uses contiguous ranges, users do not. */
export const blockPerHour = 1000;
/** Free domestic messages (protocol/codes.md#prices). */
export const freeMessages = 100;
/** Prices per further message, in currency units. */
export const prices = { domestic: 0.05, abroad: 0.5 } as const;
/** Balance required to create or change a template. */
export const templateBalance = 200;

/** Suspension of a country: fewer than `minUsedShare` of at least `minSent` codes sent within the window were used. */
export const pumping = {
  windowMs: hourMs,
  bucketMs: 5 * minuteMs,
  minSent: 100,
  minUsedShare: 0.1,
  openMs: hourMs,
} as const;
