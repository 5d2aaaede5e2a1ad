import { inspectCredentials } from '../../connectors/registry.ts';
import { SealError } from '../../shared/crypto.ts';
import {
  listProfileVersions,
  openProfile,
  type ProfileVersion,
} from '../../shared/db/tables/profiles.ts';
import {
  countSealedValues,
  findSecretRotation,
  oldValues,
} from '../../shared/db/tables/secrets.ts';
import { isConnectorId } from '../../shared/domain/labels.ts';
import { type EndingCredentials, refreshAccountSample } from '../../shared/queue/report.ts';
import type { DispatcherDeps } from '../deps.ts';
import { noticeEnding } from './profiles.ts';
import { noticeQuotas } from './quota-notices.ts';

/** Maximum profiles whose credentials are cached, and maximum profiles to decrypt in one pass. */
const maxProfiles = 20_000;
const newAtOnce = 500;

type ReaderDeps = Pick<DispatcherDeps, 'db' | 'vault' | 'clock'>;
type NoticeDeps = Pick<DispatcherDeps, 'queue' | 'operatorMail' | 'webhooks'>;

/** When the credentials of one version of a profile expire. */
interface CachedExpiry {
  updatedAtMs: number;
  endsAtMs: number | null;
}

/**
 * Reads the use and the expiry of credentials for the metrics, and notifies the operator before
 * credentials expire. It caches the expiry, so that each profile is decrypted once.
 */
export class AccountReader {
  #cachedExpiries = new Map<string, CachedExpiry>();

  /**
   * Reads, unless another dispatcher has done so recently. A notice that fails does not stop the
   * others, and the metrics are stored. Its error is thrown at the end.
   */
  async run(deps: ReaderDeps & Partial<NoticeDeps>): Promise<void> {
    const { queue, operatorMail, webhooks } = deps;
    const errors: unknown[] = [];
    const collect = (error: unknown) => void errors.push(error);
    await refreshAccountSample(
      deps.db,
      async () => {
        const credentials = await this.#readCredentials(deps);
        if (queue && webhooks)
          await noticeEnding({ ...deps, queue, webhooks, operatorMail }, credentials).catch(
            collect,
          );
        return { credentials, oldSecrets: await readOldSecrets(deps) };
      },
      async ({ caps, quotas }) => {
        if (webhooks) await noticeQuotas(webhooks, { caps, quotas }).catch(collect);
      },
    );
    if (errors.length > 0) throw errors[0];
  }

  async #readCredentials(deps: ReaderDeps): Promise<EndingCredentials[]> {
    const currentExpiries = new Map<string, CachedExpiry>();
    const ending: EndingCredentials[] = [];
    let opened = 0;
    for (const profile of await listProfileVersions(deps.db, maxProfiles)) {
      const { appId, connector, name } = profile;
      const key = `${appId} ${connector} ${name}`;
      const updatedAtMs = profile.updatedAt.getTime();
      let entry = this.#cachedExpiries.get(key);
      if (entry?.updatedAtMs !== updatedAtMs) {
        opened += 1;
        if (opened > newAtOnce) continue;
        entry = { updatedAtMs, endsAtMs: await readEnd(deps, profile) };
      }
      currentExpiries.set(key, entry);
      if (entry.endsAtMs !== null)
        ending.push({ appId, connector, profile: name, endsAtMs: entry.endsAtMs });
    }
    this.#cachedExpiries = currentExpiries;
    return ending;
  }
}

/**
 * Counts the values that are not encrypted with the first key. Skipped if there is a single key,
 * because it reads every row.
 */
async function readOldSecrets({ db, vault }: ReaderDeps): Promise<Record<string, number>> {
  const [first, ...others] = vault.keyIds;
  if (others.length === 0) return {};
  const rotation = await findSecretRotation(db, first);
  // A count that takes too long must not stop the other samples. The last count of the rotation is
  // used then.
  const counts = await countSealedValues(db, vault.keyIds).catch(() => rotation?.counts);
  return counts ? oldValues(counts, first, rotation?.unreadable) : {};
}

/**
 * Returns when the credentials of a profile expire. Returns null if they have no expiry or cannot
 * be decrypted. Throws if the database fails, so that nothing is cached.
 */
async function readEnd(
  { db, vault, clock }: ReaderDeps,
  profile: ProfileVersion,
): Promise<number | null> {
  if (!isConnectorId(profile.connector)) return null;
  const opened = await openProfile(db, vault, profile).catch((error: unknown) => {
    if (error instanceof SealError) return undefined;
    throw error;
  });
  return opened
    ? inspectCredentials(profile.connector, opened.credentials, clock.now()).expiresAtMs
    : null;
}
