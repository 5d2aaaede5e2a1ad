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
import type { ApiDeps } from '../deps.ts';
import type { DeviceSave, SavedInstallation } from './installation-writer.ts';

/** Time for which an app shares no group with others after a group failed that it was in. */
const apartMs = 10_000;
/** Time for which an app is in no group after one of its own failed. */
const excludedMs = minuteMs;

/**
 * Remembers which apps may share groups. A group fails when one of its rows waits too long for
 * another transaction, or PostgreSQL refuses it; which row it was is not known. Groups of single
 * apps show whose it was, and delay no others.
 */
class SharedGroups {
  readonly #clock: Clock;
  readonly #apartUntilMs = new Map<string, number>();
  readonly #excludedUntilMs = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Tells whether an app shares no group with others. */
  isApart(appId: string): boolean {
    return this.#isBefore(this.#apartUntilMs, appId);
  }

  /** Tells whether an app is in no group. */
  isExcluded(appId: string): boolean {
    return this.#isBefore(this.#excludedUntilMs, appId);
  }

  /** Notes that a group of these apps failed. */
  noteFailure(apps: ReadonlySet<string>): void {
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

/** Limits of saves in groups. */
const limits = { size: 64, maxWaiting: 2000, maxWaitMs: 5000 };

/**
 * Size of a body from which a save is written by itself. Together with `size` it limits the
 * duration of a group.
 */
const maxBodyBytes = 2048;

interface GroupedSave extends DeviceSave {
  appId: string;
  bodyBytes: number;
}

/**
 * Decision on a save: a refusal, a row to write, or undefined for a save that must be written by
 * itself.
 */
type Decision =
  | { error: unknown }
  | { insert: GroupInsert }
  | { update: GroupUpdate; before: FoundInstallation }
  | undefined;

/** Result of a save: undefined if it must be written by itself. */
type Result = SavedInstallation | { error: unknown } | undefined;

/**
 * Saves installations of all apps in groups: one statement looks the devices of a group up, one
 * writes it, and one commit makes it durable. A save that may wait for a lock, is large, or whose
 * device is being saved already, is left to its caller, so that no save delays or fails others of
 * its group.
 */
export class SaveGroups {
  readonly #deps: Pick<ApiDeps, 'savesDb' | 'clock'>;
  readonly #groups: Batcher<GroupedSave, Result>;
  readonly #shared: SharedGroups;
  /** Ids of the devices that are being saved. */
  readonly #underWay = new Set<string>();

  constructor(deps: Pick<ApiDeps, 'savesDb' | 'clock'>) {
    this.#deps = deps;
    this.#shared = new SharedGroups(deps.clock);
    this.#groups = new Batcher<GroupedSave, Result>({
      ...limits,
      fairBy: ({ appId }) => appId,
      // One group is written while the next one is looked up.
      concurrency: deps.savesDb.use.limit,
      isApart: (appId) => this.#shared.isApart(appId),
      run: (saves) => this.#run(saves),
      // Each caller saves its own device, and gets the error that is its own.
      runOne: async () => undefined,
      isShared: isConnectionFailure,
    });
  }

  /**
   * Saves a device in a group. Returns undefined, and has written nothing then, if the caller must
   * save it. Throws the refusals of `InstallationWriter.save`, and `QueueFull`.
   */
  async save(
    appId: string,
    device: DeviceSave,
    bodyBytes: number,
  ): Promise<SavedInstallation | undefined> {
    if (bodyBytes > maxBodyBytes || this.#shared.isExcluded(appId)) return undefined;
    const keys = keysOf(appId, device.ids);
    if (keys.length === 0 || keys.some((key) => this.#underWay.has(key))) return undefined;
    for (const key of keys) this.#underWay.add(key);
    try {
      const result = await this.#groups.run({ ...device, appId, bodyBytes });
      // It is written by itself, and counted there.
      if (!result) device.storage?.refund();
      if (result && 'error' in result) throw result.error;
      return result;
    } finally {
      for (const key of keys) this.#underWay.delete(key);
    }
  }

  async #run(saves: GroupedSave[]): Promise<Result[]> {
    try {
      return await this.#write(saves);
    } catch (error) {
      if (!isConnectionFailure(error))
        this.#shared.noteFailure(new Set(saves.map(({ appId }) => appId)));
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

/** Returns a text for each id of a device. */
function keysOf(appId: string, ids: DeviceIds): string[] {
  const keys: string[] = [];
  for (const [name, id] of Object.entries({ ...ids, deviceToken: tokenOf(ids) }))
    if (id !== undefined) keys.push(`${appId} ${name} ${id}`);
  return keys;
}

const tokenOf = ({ deviceToken }: DeviceIds) =>
  deviceToken === undefined ? undefined : comparedToken(deviceToken);

/**
 * Decides on a save. `chosen` has the keys of the installations that earlier saves of the group
 * change.
 */
function decide(save: GroupedSave, found: FoundInstallation[], chosen: Set<number>): Decision {
  if (found.some(({ isSmall }) => !isSmall)) return undefined;
  const { appId, ids, changes, storage, bodyBytes } = save;
  try {
    const installations = found.map(({ installation }) => installation);
    const current = findRegistered(installations, ids, changes);
    if (current) save.requireWrite(current);
    const draft = changedDraft(current, changes);
    if (takesRegistration(installations, current, draft)) return undefined;
    if (!current) {
      checkNewInstallation(draft, changes);
      storage?.create(bodyBytes);
      return { insert: { appId, objectId: newObjectId(), draft } };
    }
    checkChange(current, draft, { changes, isRegistration: true });
    const before = found.find(({ installation }) => installation === current);
    if (!before || chosen.has(current.id) || !hasSameIds(draft, current)) return undefined;
    chosen.add(current.id);
    return { update: { appId, id: current.id, row: before.row, draft }, before };
  } catch (error) {
    return { error };
  }
}

/**
 * Tells whether a change keeps the unique ids. Others may meet those of another installation and
 * wait for it.
 */
const hasSameIds = (a: InstallationDraft, b: InstallationDraft): boolean =>
  a.deviceToken === b.deviceToken && a.installationId === b.installationId;
