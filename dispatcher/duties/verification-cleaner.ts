import { hourMs } from '../../shared/clock.ts';
import type { Handle } from '../../shared/db/pool.ts';
import { deleteOldMessages } from '../../shared/db/tables/messages/outbox.ts';
import { deleteOldSends } from '../../shared/db/tables/messages/send-budgets.ts';
import { deleteOldConversions } from '../../shared/db/tables/messages/sms-conversion.ts';
import { deleteExpiredCaptchas } from '../../shared/db/tables/users/captchas.ts';
import { deleteExpiredLinks } from '../../shared/db/tables/users/link-tokens.ts';
import { deleteExpiredCodes } from '../../shared/db/tables/users/verification-codes.ts';

/** More than a day, the longest window of a limit. */
const sendRetentionMs = 25 * hourMs;
/** More than the window of the conversion rate, and than the time that a breaker stays open. */
const conversionRetentionMs = 3 * hourMs;
/** Retention of messages, which contain addresses and numbers: the same as of push records. */
const messageRetentionMs = 7 * 24 * hourMs;

/**
 * Deletes expired codes, captchas and links, messages after seven days, and counts outside every window; at most `limit`
 * rows of each table. Returns the largest number that it deleted from one table.
 */
export async function cleanVerification(db: Handle, nowMs: number, limit: number): Promise<number> {
  const now = new Date(nowMs);
  const before = (ageMs: number) => new Date(nowMs - ageMs);
  await deleteOldConversions(db, before(conversionRetentionMs));
  return Math.max(
    await deleteExpiredCodes(db, now, limit),
    await deleteExpiredCaptchas(db, now, limit),
    await deleteExpiredLinks(db, now, limit),
    await deleteOldSends(db, before(sendRetentionMs), limit),
    await deleteOldMessages(db, before(messageRetentionMs), limit),
  );
}
