import { dayMs, hourMs } from '../../../clock.ts';
import type { Handle } from '../../pool.ts';

/** Sign-ups and bytes that a network address has used of an app's limits (`send_budget`). */
export interface SignUpUse {
  users: { n: number; since: Date };
  bytes: { n: number; since: Date };
}

/** Windows of the counts. */
export const signUpWindows = { usersMs: hourMs, bytesMs: dayMs } as const;

/**
 * Counts one new user and its bytes for a network address. Returns the new counts. Other calls for the address wait until
 * `tx` ends. The caller rolls `tx` back when a count is too high, which undoes the count.
 */
export async function countSignUp(
  tx: Handle,
  { appId, key, bytes }: { appId: string; key: string; bytes: number },
  now: Date,
): Promise<SignUpUse> {
  const before = (windowMs: number) => new Date(now.getTime() - windowMs);
  const { rows } = await tx.query<{ scope: string; n: number; since: Date }>(
    `INSERT INTO send_budget AS b (app_id, scope, key, since, n)
     VALUES ($1, 'signUpBytes', $2, $3, $4), ($1, 'signUps', $2, $3, 1)
     ON CONFLICT (app_id, scope, key) DO UPDATE
        SET n = CASE WHEN b.since <= CASE WHEN b.scope = 'signUps' THEN $5::timestamptz ELSE $6 END
                     THEN excluded.n ELSE b.n + excluded.n END,
            since = CASE WHEN b.since <= CASE WHEN b.scope = 'signUps' THEN $5::timestamptz ELSE $6 END
                         THEN excluded.since ELSE b.since END
     RETURNING scope, n, since`,
    [appId, key, now, bytes, before(signUpWindows.usersMs), before(signUpWindows.bytesMs)],
  );
  const of = (scope: string) => rows.find((row) => row.scope === scope) ?? { n: 0, since: now };
  return { users: of('signUps'), bytes: of('signUpBytes') };
}
