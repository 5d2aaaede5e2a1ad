import type { Handle } from '../../../../shared/db/pool.ts';
import { listKeptTokens } from '../../../../shared/db/tables/invalid-tokens.ts';
import { displayName } from '../../../../shared/domain/labels.ts';
import { type Finding, found } from './finding.ts';

/** Pushes that are told one by one. */
const mostShown = 20;

/** Tells which pushes of the last day found so many invalid tokens that their devices were kept. */
export async function checkInvalidTokens(db: Handle): Promise<Finding[]> {
  const kept = await listKeptTokens(db, mostShown);
  return kept.map(({ appId, objectId, connector, profile, answers, invalid, kept: devices, reason }) =>
    found({
      name: 'tokens',
      status: 'warn',
      code: 'tokensKept',
      params: {
        app: appId,
        push: objectId,
        gateway: displayName(connector),
        profile,
        answers,
        invalid,
        devices,
        reason,
      },
    }),
  );
}
