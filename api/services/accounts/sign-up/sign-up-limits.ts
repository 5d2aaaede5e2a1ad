import type { Handle } from '../../../../shared/db/pool.ts';
import { countSignUp, signUpWindows } from '../../../../shared/db/tables/sign-in.ts';
import type { App } from '../../../../shared/domain/apps/app.ts';
import { Refusal } from '../../../../shared/domain/errors/errors.ts';
import { draftBytes, type UserDraft } from '../../../../shared/domain/users/user.ts';
import type { ApiDeps } from '../../deps.ts';
import { ipAddressKey } from '../../sms/budgets.ts';

/**
 * Counts a new user against the limits of its network address, as part of `tx` (options
 * `signUpsPerAddressPerHour` and `signUpBytesPerAddressPerDay`). If a limit is exceeded, throws 429
 * with the seconds until the window ends, and the rollback of `tx` undoes the count. Counts nothing
 * without an `ipAddress`, which servers of the app do not have (`signUpIpAddress`).
 */
export async function takeSignUpBudget(
  deps: Pick<ApiDeps, 'vault' | 'clock'>,
  tx: Handle,
  { app, draft, ipAddress }: { app: App; draft: UserDraft; ipAddress: string | undefined },
): Promise<void> {
  if (ipAddress === undefined) return;
  const { signUpsPerAddressPerHour, signUpBytesPerAddressPerDay } = app.options;
  const nowMs = deps.clock.now();
  const key = ipAddressKey(deps, ipAddress);
  const count = { appId: app.appId, key, bytes: draftBytes(draft) };
  const { users, bytes } = await countSignUp(tx, count, new Date(nowMs));
  const ends = [
    ...(users.n > signUpsPerAddressPerHour ? [users.since.getTime() + signUpWindows.usersMs] : []),
    ...(bytes.n > signUpBytesPerAddressPerDay
      ? [bytes.since.getTime() + signUpWindows.bytesMs]
      : []),
  ];
  if (ends.length === 0) return;
  throw new Refusal('tooManyRequests', {
    text: 'Too many users sign up from this network address.',
    retryAfterSeconds: Math.max(1, Math.ceil((Math.max(...ends) - nowMs) / 1000)),
  });
}
