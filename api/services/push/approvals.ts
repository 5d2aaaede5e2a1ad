import type { Handle } from '../../../shared/db/pool.ts';
import {
  type Approval,
  findApproval,
  giveApproval,
  lockForApproval,
  noteFirstApproval,
} from '../../../shared/db/tables/scheduled-pushes.ts';
import { isSameName } from '../../../shared/domain/admin/names.ts';
import { hasRole, type Operator } from '../../../shared/domain/admin/operator.ts';
import { refuse } from '../../../shared/domain/errors/errors.ts';
import type { Push } from '../../../shared/domain/pushes/record.ts';
import { detail } from '../../../shared/domain/texts/texts.ts';

type ApprovedPush = Pick<Push, 'appId' | 'id' | 'createdBy' | 'createdToken'>;

/**
 * Throws 403 for the person that sent the push, by the token or by the name that its tokens have.
 */
export function requireOther({ name, tokenId }: Operator, { createdBy, createdToken }: ApprovedPush): void {
  if (createdBy === null) return;
  if (createdToken === tokenId) throw refuse('forbidden', detail('secondPerson'));
  if (isSameName(createdBy, name)) throw refuse('forbidden', detail('secondName'));
}

/**
 * Approves a push (protocol/admin-api.md#approvals). Nobody knows who sent a push by an app's own
 * keys, since every holder of the app has the app key: it needs an owner, or two operators of
 * different names. Returns `first` for the first of them, `resumed` for a push that goes on now,
 * `noted` for one that is not planned yet; undefined if it is done or approved. Throws 403 for the
 * first operator's second approval.
 */
export async function approve(
  tx: Handle,
  operator: Operator,
  push: ApprovedPush,
): Promise<'first' | 'resumed' | 'noted' | undefined> {
  const open = await lockForApproval(tx, push);
  if (!open || open.approval?.givenAt) return undefined;
  const { name: by, role } = operator;
  const firstBy = open.approval?.firstBy ?? null;
  const needsTwo = push.createdBy === null && !hasRole(role, 'owner');
  if (needsTwo && firstBy === null) {
    await noteFirstApproval(tx, push, by);
    return 'first';
  }
  if (needsTwo && firstBy !== null && isSameName(firstBy, by))
    throw refuse('forbidden', detail('secondApproval'));
  return giveApproval(tx, push, { by, isPaused: open.isPaused });
}

/** Tells whether a push waits for its approval: its devices were counted. */
export const isWaiting = (approval: Approval | undefined): boolean =>
  approval !== undefined && approval.above !== null && approval.givenAt === null;

/**
 * Returns the approval of a push as replies show it, with the number of operators who still have to
 * approve.
 */
export async function shownApproval(db: Handle, push: Pick<Push, 'appId' | 'id' | 'createdBy'>) {
  const found = await findApproval(db, push);
  if (!found) return null;
  const { above, firstBy, firstAt, givenBy, givenAt } = found;
  const missing = givenAt ? 0 : push.createdBy === null && firstAt === null ? 2 : 1;
  return {
    above,
    firstBy,
    firstAt: firstAt?.toISOString() ?? null,
    givenBy,
    givenAt: givenAt?.toISOString() ?? null,
    missing,
  };
}
