import { type CanaryCounts, judgeCanary, type RotationState } from '../../../domain/apps/canary.ts';
import type { Database, Handle } from '../../pool.ts';
import { insertAudit } from '../console/audit.ts';
import {
  addCanaryCounts,
  findRotation,
  lockRotation,
  type ProfileRotation,
  promoteCandidate,
  type RotatedProfile,
  rollBackCandidate,
} from './profile-rotations.ts';

/** Name of the actor of a decision in the audit. */
const actorName = 'carillon (canary)';

/** Answers of one batch to a candidate. */
export interface CanaryAnswers extends Omit<CanaryCounts, 'batches'> {
  /** The first answer that was not an acceptance, for the operator; holds no token. */
  detail: string | null;
}

/**
 * Adds the answers of a batch to the canary that was staged at `stagedAt`, and promotes or rolls it back if they suffice.
 * Returns the state that was decided; undefined without a decision.
 */
export function recordCanary(
  db: Pick<Database, 'transaction'>,
  profile: RotatedProfile & { stagedAt: Date },
  { detail, ...answers }: CanaryAnswers & { nowMs: number },
): Promise<RotationState | undefined> {
  return db.transaction(async (tx) => {
    await lockRotation(tx, profile);
    const { stagedAt } = profile;
    const rotation = await addCanaryCounts(tx, profile, { ...answers, batches: 1, stagedAt });
    return rotation && settle(tx, rotation, { nowMs: answers.nowMs, detail });
  });
}

/** Decides on a canary by its age; undefined without a decision. */
export function reviewCanary(
  db: Pick<Database, 'transaction'>,
  profile: RotatedProfile,
  nowMs: number,
): Promise<RotationState | undefined> {
  return db.transaction(async (tx) => {
    const rotation = await lockRotation(tx, profile);
    if (rotation?.state !== 'canary') return undefined;
    return settle(tx, rotation, { nowMs, detail: null });
  });
}

/** Promotes or rolls back a locked canary if its counts or its age say so, with an entry in the audit. */
async function settle(
  tx: Handle,
  rotation: ProfileRotation,
  { nowMs, detail }: { nowMs: number; detail: string | null },
): Promise<RotationState | undefined> {
  const verdict = judgeCanary(rotation, nowMs - rotation.changedAt.getTime());
  if (!verdict) return undefined;
  const isPromoted = verdict.to === 'promoted';
  if (isPromoted) await promoteCandidate(tx, rotation);
  else await rollBackCandidate(tx, rotation, { reason: verdict.reason, detail });
  const { appId, connector, name, asked, accepted, refused, worse } = rotation;
  const reason = isPromoted ? null : verdict.reason;
  await insertAudit(tx, {
    ...{ appId, actorName, actorRole: 'operator', tokenId: null, address: '', requestId: '' },
    action: isPromoted ? 'profile.promote' : 'profile.rollback',
    target: `${connector}/${name}`,
    before: { state: 'canary' },
    after: { state: verdict.to, reason, asked, accepted, refused, worse },
  });
  return (await findRotation(tx, rotation))?.state;
}
