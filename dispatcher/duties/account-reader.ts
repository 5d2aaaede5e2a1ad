import { inspectCredentials } from '../../connectors/registry.ts';
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
import { type EndingCredentials, refreshAccountReading } from '../../shared/queue/report.ts';
import type { DispatcherDeps } from '../deps.ts';
import { noticeEnding } from './profiles.ts';

/** Profiles whose credentials a dispatcher knows, and those that it decrypts in one pass. */
const maxProfiles = 20_000;
const newAtOnce = 500;

type ReaderDeps = Pick<DispatcherDeps, 'db' | 'vault' | 'clock'>;
type NoticeDeps = Pick<DispatcherDeps, 'queue' | 'operatorMail'>;

const keyOf = ({ appId, connector, name }: ProfileVersion): string =>
  `${appId} ${connector} ${name}`;

/** When the credentials of a version of a profile end. */
interface KnownEnd {
  updatedAtMs: number;
  endsAtMs: number | null;
}

/**
 * Reads use and ends of credentials for the metrics, tells the operator of those that end, and
 * remembers the ends: a profile is decrypted once.
 */
export class AccountReader {
  #known = new Map<string, KnownEnd>();

  /** Reads, if no other dispatcher has done so lately. Returns 0: one pass is enough. */
  async run(deps: ReaderDeps & Partial<NoticeDeps>): Promise<number> {
    const { queue, operatorMail } = deps;
    await refreshAccountReading(deps.db, async () => {
      const credentials = await this.#readCredentials(deps);
      if (queue) await noticeEnding({ ...deps, queue, operatorMail }, credentials);
      return { credentials, oldSecrets: await readOldSecrets(deps) };
    });
    return 0;
  }

  async #readCredentials(deps: ReaderDeps): Promise<EndingCredentials[]> {
    const known = new Map<string, KnownEnd>();
    const ending: EndingCredentials[] = [];
    let opened = 0;
    for (const profile of await listProfileVersions(deps.db, maxProfiles)) {
      const key = keyOf(profile);
      const updatedAtMs = profile.updatedAt.getTime();
      let entry = this.#known.get(key);
      if (entry?.updatedAtMs !== updatedAtMs) {
        opened += 1;
        if (opened > newAtOnce) continue;
        entry = { updatedAtMs, endsAtMs: await readEnd(deps, profile) };
      }
      known.set(key, entry);
      const { appId, connector, name } = profile;
      if (entry.endsAtMs !== null)
        ending.push({ appId, connector, profile: name, endsAtMs: entry.endsAtMs });
    }
    this.#known = known;
    return ending;
  }
}

/**
 * Counts the values under other keys than the first; nothing with a single key, since it reads
 * every row.
 */
async function readOldSecrets({ db, vault }: ReaderDeps): Promise<Record<string, number>> {
  const [first, ...others] = vault.keyIds;
  if (others.length === 0) return {};
  const rotation = await findSecretRotation(db, first);
  // A count that takes too long must not stop the other readings: the last one of the rotation
  // stands for it.
  const counts = await countSealedValues(db, vault.keyIds).catch(() => rotation?.counts);
  return counts ? oldValues(counts, first, rotation?.unreadable) : {};
}

/**
 * Returns when the credentials of a profile end; null for those that do not say so or do not open.
 */
async function readEnd(
  { db, vault, clock }: ReaderDeps,
  profile: ProfileVersion,
): Promise<number | null> {
  if (!isConnectorId(profile.connector)) return null;
  const opened = await openProfile(db, vault, profile).catch(() => undefined);
  return opened
    ? inspectCredentials(profile.connector, opened.credentials, clock.now()).expiresAtMs
    : null;
}
