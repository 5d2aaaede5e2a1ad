import { Batcher } from '../../../shared/batcher.ts';
import { type Clock, minuteMs } from '../../../shared/clock.ts';
import { isConnectionFailure } from '../../../shared/db/limits/database-errors.ts';
import {
  type FoundInstallation,
  findInstallationsOfDevices,
  type GroupInsert,
  type GroupUpdate,
  writeInstallationGroup,
} from '../../../shared/db/tables/installation-saves.ts';
import { newObjectId } from '../../../shared/domain/ids.ts';
import {
  changedDraft,
  checkChange,
  checkNewInstallation,
} from '../../../shared/domain/installations/changes.ts';
import {
  comparedToken,
  type DeviceIds,
  findRegistered,
  takesRegistration,
} from '../../../shared/domain/installations/identity.ts';
import type { InstallationDraft } from '../../../shared/domain/installations/installation.ts';
import { memberBytes } from '../../../shared/domain/installations/members.ts';
import type { ApiDeps } from '../deps.ts';
import type { DeviceSave, SavedInstallation } from './installation-writer.ts';

/** Time for which an app shares no group with other apps, after one of its groups failed. */
const apartMs = 10_000;
/** Time for which an app's saves are not grouped, after a group with only its saves failed. */
const excludedMs = minuteMs;

/**
 * Remembers which apps may share groups. A group fails if one of its rows waits too long for
 * another transaction, or if PostgreSQL refuses a row. The error does not tell which row caused it.
 * Groups of single apps then show which app caused it, and delay no other apps.
 */
class SharedGroups {
  readonly #clock: Clock;
  readonly #apartUntilMs = new Map<string, number>();
  readonly #excludedUntilMs = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Returns whether an app shares no group with other apps. */
  isApart(appId: string): boolean {
    return this.#isBefore(this.#apartUntilMs, appId);
  }

  /** Returns whether an app's saves are not grouped. */
  isExcluded(appId: string): boolean {
    return this.#isBefore(this.#excludedUntilMs, appId);
  }

  /** Records that a group of these apps failed. */
  recordFailure(apps: ReadonlySet<string>): void {
    const nowMs = this.#clock.monotonicMs();
    const [only] = apps;
    if (apps.size === 1 && only !== undefined && this.isApart(only))
      this.#excludedUntilMs.set(only, nowMs + excludedMs);
    for (const appId of apps) this.#apartUntilMs.set(appId, nowMs + apartMs);
  }

  #isBefore(until: Map<string, number>, appId: string): boolean {
    if (until.size === 0) return false;
    const untilMs = until.get(appId);
    if (untilMs === undefined) return false;
    if (this.#clock.monotonicMs() < untilMs) return true;
    until.delete(appId);
    return false;
  }
}

/** Limits of groups of saves. */
const limits = { size: 64, maxWaiting: 2000, maxWaitMs: 5000 };

/**
 * Size of a body above which a save is written alone. Together with `size`, it limits the duration
 * of a group.
 */
const maxBodyBytes = 2048;

interface GroupedSave extends DeviceSave {
  appId: string;
}

/**
 * Decision on a save: a refusal, a row to write, or undefined if the save must be written alone.
 */
type Decision =
  | { error: unknown }
  | { insert: GroupInsert }
  | { update: GroupUpdate; before: FoundInstallation }
  | undefined;

/** Result of a save. Undefined if the save must be written alone. */
type Result = SavedInstallation | { error: unknown } | undefined;

/**
 * Saves installations of all apps in groups. For each group, one statement finds the devices, one
 * statement writes them, and one commit makes the writes durable. The caller must write a save
 * alone if it may wait for a lock, is large, or if its device is already being saved. No save can
 * therefore delay or fail the others of its group.
 */
export class SaveGroups {
  readonly #deps: Pick<ApiDeps, 'savesDb' | 'clock'>;
  readonly #groups: Batcher<GroupedSave, Result>;
  readonly #shared: SharedGroups;
  /** Ids of the devices whose save is in progress. */
  readonly #inProgress = new Set<string>();

  constructor(deps: Pick<ApiDeps, 'savesDb' | 'clock'>) {
    this.#deps = deps;
    this.#shared = new SharedGroups(deps.clock);
    this.#groups = new Batcher<GroupedSave, Result>({
      ...limits,
      fairBy: ({ appId }) => appId,
      // One group is written while the statement for the next group finds its devices.
      concurrency: deps.savesDb.use.limit,
      isApart: (appId) => this.#shared.isApart(appId),
      run: (saves) => this.#run(saves),
      // If a group fails, each caller saves its own device and gets its own error.
      runOne: async () => undefined,
      isShared: isConnectionFailure,
    });
  }

  /**
   * Saves a device in a group. Returns undefined, without any write, if the caller must save the
   * device alone. Throws as `InstallationWriter.save`, and `QueueFull`.
   */
  async save(
    appId: string,
    device: DeviceSave,
    bodyBytes: number,
  ): Promise<SavedInstallation | undefined> {
    if (bodyBytes > maxBodyBytes || this.#shared.isExcluded(appId)) return undefined;
    const keys = keysOf(appId, device.ids);
    if (keys.length === 0 || keys.some((key) => this.#inProgress.has(key))) return undefined;
    for (const key of keys) this.#inProgress.add(key);
    try {
      const result = await this.#groups.run({ ...device, appId });
      // The save is written alone and counted there.
      if (!result) device.storage?.refund();
      if (result && 'error' in result) throw result.error;
      return result;
    } finally {
      for (const key of keys) this.#inProgress.delete(key);
    }
  }

  async #run(saves: GroupedSave[]): Promise<Result[]> {
    try {
      return await this.#write(saves);
    } catch (error) {
      if (!isConnectionFailure(error))
        this.#shared.recordFailure(new Set(saves.map(({ appId }) => appId)));
      throw error;
    }
  }

  async #write(saves: GroupedSave[]): Promise<Result[]> {
    const { savesDb } = this.#deps;
    const found = await findInstallationsOfDevices(savesDb, saves);
    const chosen = new Set<number>();
    const decisions = saves.map((save, i) => decide(save, found[i] ?? [], chosen));
    const now = new Date(this.#deps.clock.now());
    const inserts = decisions.flatMap((decision) =>
      decision && 'insert' in decision ? decision.insert : [],
    );
    const updates = decisions.flatMap((decision) =>
      decision && 'update' in decision ? decision.update : [],
    );
    const written = await writeInstallationGroup(savesDb, { inserts, updates, now });
    return decisions.map((decision): Result => {
      if (!decision || 'error' in decision) return decision;
      if ('insert' in decision) {
        const { objectId, draft } = decision.insert;
        if (!written.inserted.has(objectId)) return undefined;
        return {
          installation: { ...draft, objectId, createdAt: now, updatedAt: now },
          isNew: true,
        };
      }
      const {
        update,
        before: { installation },
      } = decision;
      if (!written.updated.has(update.id)) return undefined;
      const { objectId, createdAt } = installation;
      return {
        installation: { ...update.draft, objectId, createdAt, updatedAt: now },
        isNew: false,
      };
    });
  }
}

/** Returns one text for each id of a device. */
function keysOf(appId: string, ids: DeviceIds): string[] {
  const keys: string[] = [];
  for (const [name, id] of Object.entries({ ...ids, deviceToken: tokenOf(ids) }))
    if (id !== undefined) keys.push(`${appId} ${name} ${id}`);
  return keys;
}

const tokenOf = ({ deviceToken }: DeviceIds) =>
  deviceToken === undefined ? undefined : comparedToken(deviceToken);

/**
 * Decides on a save. `chosen` contains the ids of the installations that earlier saves of the group
 * change.
 */
function decide(save: GroupedSave, found: FoundInstallation[], chosen: Set<number>): Decision {
  if (found.some(({ isSmall }) => !isSmall)) return undefined;
  const { appId, ids, changes, storage } = save;
  try {
    const installations = found.map(({ installation }) => installation);
    const current = findRegistered(installations, ids, changes);
    if (current) save.requireWrite(current);
    const draft = changedDraft(current, changes);
    if (takesRegistration(installations, current, draft)) return undefined;
    if (!current) {
      checkNewInstallation(draft, changes);
      storage?.create(memberBytes(draft));
      return { insert: { appId, objectId: newObjectId(), draft } };
    }
    checkChange(current, draft, { changes, isRegistration: true });
    const before = found.find(({ installation }) => installation === current);
    if (!before || chosen.has(current.id) || !hasSameIds(draft, current)) return undefined;
    storage?.change(memberBytes(draft), memberBytes(current));
    chosen.add(current.id);
    return { update: { appId, id: current.id, row: before.row, draft }, before };
  } catch (error) {
    return { error };
  }
}

/**
 * Returns whether a change keeps the unique ids. Changed ids may conflict with another installation
 * and wait for it.
 */
const hasSameIds = (a: InstallationDraft, b: InstallationDraft): boolean =>
  a.deviceToken === b.deviceToken && a.installationId === b.installationId;
