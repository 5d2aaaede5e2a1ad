import type { Handle } from '../../shared/db/pool.ts';
import { deleteOldMessages } from '../../shared/db/tables/messages/outbox.ts';
import { deleteOldSends } from '../../shared/db/tables/messages/send-budgets.ts';
import { deleteOldConversions } from '../../shared/db/tables/messages/sms-conversion.ts';
import { deleteExpiredCaptchas } from '../../shared/db/tables/users/captchas.ts';
import { deleteExpiredLinks } from '../../shared/db/tables/users/link-tokens.ts';
import { deleteExpiredCodes } from '../../shared/db/tables/users/verification-codes.ts';

const hourMs = 3_600_000;
/** The longest window that a limit counts over is a day. */
const sendRetentionMs = 25 * hourMs;
/** Longer than the hour over which the use of codes is measured, and than a breaker stays open. */
const conversionRetentionMs = 3 * hourMs;
/** Messages hold addresses and numbers: kept as long as push records. */
const messageRetentionMs = 7 * 24 * hourMs;

/**
 * Removes codes, captchas and links that have expired, messages after seven days, and counts that no limit asks for;
 * at most `limit` rows of each. Gives the most that it removed of one.
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
