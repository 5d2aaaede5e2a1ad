import { SealError, type Vault } from '../../../../shared/crypto.ts';
import type { Handle } from '../../../../shared/db/pool.ts';
import { listAppIds } from '../../../../shared/db/tables/apps.ts';
import { countSubscriptionKeys } from '../../../../shared/db/tables/installations.ts';
import {
  listProfiles,
  openProfile,
  type RotatedProfile,
} from '../../../../shared/db/tables/profiles.ts';
import { keyIdOf } from '../../../../shared/domain/installations/subscription.ts';
import { publicKeysOf } from '../../installations/web-push-keys.ts';
import { type Finding, found } from './checks.ts';

interface KeyCheck {
  db: Handle;
  vault: Vault;
  /** Maximum number of apps to check, oldest first. All apps if absent. */
  maxApps?: number;
}

/**
 * Counts the Web Push installations of each VAPID key. A replaced key without installations is no
 * longer needed. Installations of a key that no profile has cannot be reached.
 */
export async function checkWebPushKeys({ db, vault, maxApps }: KeyCheck): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const appId of (await listAppIds(db)).slice(0, maxApps)) {
    const profiles = await listProfiles(db, appId);
    const own = profiles.filter(({ connector }) => connector === 'webpush');
    const ids = own.map(({ connector, name }) => ({ appId, connector, name }));
    const known = ids.length > 0 && (await keysOf(db, vault, ids));
    if (known) findings.push(...(await ofApp(db, appId, known)));
  }
  return findings;
}

interface KeyUse {
  profile: string;
  isCurrent: boolean;
}

async function ofApp(
  db: Handle,
  appId: string,
  known: ReadonlyMap<string, KeyUse>,
): Promise<Finding[]> {
  const counted = await countSubscriptionKeys(db, appId);
  const counts = new Map(counted.map(({ keyId, devices }) => [keyId, devices]));
  const used = [...known].map(([key, { profile, isCurrent }]) =>
    found({
      name: 'web push',
      status: 'ok',
      code: isCurrent ? 'webPushKey' : 'replacedWebPushKey',
      params: { app: appId, profile, key, devices: counts.get(key) ?? 0 },
    }),
  );
  const lost = counted.filter(({ keyId }) => keyId !== '' && !known.has(keyId));
  return [
    ...used,
    ...lost.map(({ keyId: key, devices }) =>
      found({
        name: 'web push',
        status: 'warn',
        code: 'lostWebPushKey',
        params: { app: appId, key, devices },
      }),
    ),
  ];
}

/**
 * Returns the keys of the profiles of an app. Returns undefined if a profile cannot be decrypted,
 * because any key may then be its key. `checkCredentials` reports the profile.
 */
async function keysOf(
  db: Handle,
  vault: Vault,
  ids: readonly RotatedProfile[],
): Promise<Map<string, KeyUse> | undefined> {
  const known = new Map<string, KeyUse>();
  try {
    for (const id of ids) {
      const profile = await openProfile(db, vault, id);
      const keys = profile ? publicKeysOf([profile], id.name) : [];
      for (const [i, key] of keys.entries())
        known.set(keyIdOf(key), { profile: id.name, isCurrent: i === 0 });
    }
    return known;
  } catch (error) {
    if (error instanceof SealError) return undefined;
    throw error;
  }
}
