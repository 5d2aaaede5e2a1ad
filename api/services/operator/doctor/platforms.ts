import type { Vault } from '../../../../shared/crypto.ts';
import type { Handle } from '../../../../shared/db/pool.ts';
import { listApps } from '../../../../shared/db/tables/apps.ts';
import { listPlatforms } from '../../../../shared/db/tables/users.ts';
import { anonymous } from '../../../../shared/domain/users/auth-data.ts';
import { isAlwaysChecked } from '../../../../shared/domain/users/auth-platforms.ts';
import { type Finding, found } from './finding.ts';

/** Limit on names in a line. */
const maxNames = 5;

/**
 * Warns of apps whose users have accounts on third-party platforms that are not checked: any caller that knows the id of
 * such an account can sign in as its user. Does not see platforms without users. Throws when an app cannot be decrypted.
 */
export async function checkPlatforms({
  db,
  vault,
  maxApps,
}: {
  db: Handle;
  vault: Vault;
  maxApps?: number;
}): Promise<Finding[]> {
  const findings: Finding[] = [];
  const apps = (await listApps(db, vault)).slice(0, maxApps);
  for (const { appId, options } of apps) {
    if (options.checkedPlatformsOnly) continue;
    const unchecked = (await listPlatforms(db, appId)).filter(
      (platform) => isUncheckable(platform) && !Object.hasOwn(options.authPlatforms, platform),
    );
    if (unchecked.length === 0) continue;
    const names = unchecked.slice(0, maxNames).join(', ') + (unchecked.length > maxNames ? ', …' : '');
    const params = { app: appId, platforms: names };
    findings.push(found({ name: 'platforms', status: 'warn', code: 'uncheckedPlatforms', params }));
  }
  if (findings.length > 0) return findings;
  return [found({ name: 'platforms', status: 'ok', code: 'platformsFine', params: { apps: apps.length } })];
}

/** Checks that logins by this platform are possible without a check: not for UnionIDs, anonymous and identity token ones. */
const isUncheckable = (platform: string): boolean =>
  !platform.startsWith('_') && platform !== anonymous && !isAlwaysChecked(platform);
