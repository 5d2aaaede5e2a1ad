import type { Handle } from '../../../shared/db/pool.ts';
import {
  findInstallationsOfDevice,
  insertInstallation,
  takeRegistration,
  updateInstallation,
  updateInstallationVersion,
} from '../../../shared/db/tables/installations.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { refuse } from '../../../shared/domain/errors/errors.ts';
import { newObjectId } from '../../../shared/domain/ids.ts';
import {
  changedDraft,
  checkChange,
  checkNewInstallation,
  checkReturn,
  type InstallationChanges,
} from '../../../shared/domain/installations/changes.ts';
import {
  type DeviceIds,
  findRegistered,
  takesRegistration,
  typedByIdentity,
} from '../../../shared/domain/installations/identity.ts';
import type {
  Installation,
  InstallationDraft,
  StoredInstallation,
} from '../../../shared/domain/installations/installation.ts';
import { memberBytes } from '../../../shared/domain/installations/members.ts';
import type { StorageAccount } from '../client-storage.ts';
import type { ApiDeps } from '../deps.ts';

/** Result of a save. */
export interface SavedInstallation {
  installation: StoredInstallation;
  isNew: boolean;
}

/** Identity and members that a device sends about itself. */
export interface DeviceSave {
  ids: DeviceIds;
  changes: InstallationChanges;
  /** True if the device was deleted and registers again under its former object id. */
  isReturning?: boolean;
  /** Counts what the save stores. Undefined for servers of the app. */
  storage?: StorageAccount | undefined;
  /** Throws error 403 if the installation's ACL denies the caller. */
  requireWrite(current: Installation): void;
}

/** Maximum number of tries if concurrent calls register the same device. */
const maxTries = 10;

/** Writes installations. */
export class InstallationWriter {
  readonly #deps: Pick<ApiDeps, 'clock'>;

  constructor(deps: Pick<ApiDeps, 'clock'>) {
    this.#deps = deps;
  }

  /**
   * Saves without a transaction: reads without a lock, and writes only if nothing has changed since
   * the read. Returns undefined, without any write, if a concurrent call was faster or if several
   * rows must be written. Throws as `save`.
   */
  async saveAtOnce(
    db: Handle,
    app: App,
    device: DeviceSave,
  ): Promise<SavedInstallation | undefined> {
    const { ids, changes, storage } = device;
    const found = await findInstallationsOfDevice(db, app.appId, ids);
    const current = findRegistered([...found.keys()], ids, changes);
    const draft = current ? changedDraft(current, changes) : draftOfNew(device);
    if (takesRegistration([...found.keys()], current, draft)) return undefined;
    if (!current) {
      const inserted = await this.#insert(db, app, device, draft);
      return inserted && { installation: inserted, isNew: true };
    }
    device.requireWrite(current);
    checkChange(current, draft, { changes, isRegistration: true });
    storage?.change(memberBytes(draft), memberBytes(current));
    const update = { id: current.id, draft, now: this.#now(), version: found.get(current) ?? '' };
    const saved = await updateInstallationVersion(db, app.appId, update);
    return saved && { installation: saved, isNew: false };
  }

  /**
   * Updates the installation that the ids name (`findRegistered`), or creates one, as part of `tx`.
   * A device therefore never has two installations. Throws errors 105, 111, 112, 114, 116, 117,
   * 137.
   */
  async save(tx: Handle, app: App, device: DeviceSave): Promise<SavedInstallation> {
    const { ids, changes } = device;
    for (let tries = 0; tries < maxTries; tries += 1) {
      const found = await findInstallationsOfDevice(tx, app.appId, ids, { isLocked: true });
      const current = findRegistered([...found.keys()], ids, changes);
      const { storage, requireWrite } = device;
      if (current)
        return this.change(tx, app, {
          current,
          changes,
          storage,
          requireWrite,
          isRegistration: true,
        });
      const inserted = await this.#insert(tx, app, device, draftOfNew(device));
      // Undefined means that a concurrent call created the installation.
      if (!inserted) continue;
      await takeRegistration(tx, app.appId, inserted);
      return { installation: inserted, isNew: true };
    }
    throw refuse('duplicate');
  }

  /** Changes a locked installation. Throws as `save`. */
  async change(
    tx: Handle,
    app: App,
    {
      current,
      changes,
      storage,
      requireWrite,
      isRegistration,
    }: Pick<DeviceSave, 'changes' | 'storage' | 'requireWrite'> & {
      current: Installation;
      isRegistration: boolean;
    },
  ): Promise<SavedInstallation> {
    requireWrite(current);
    const draft = changedDraft(current, changes);
    checkChange(current, draft, { changes, isRegistration });
    storage?.change(memberBytes(draft), memberBytes(current));
    const installation = await updateInstallation(tx, app.appId, {
      id: current.id,
      draft,
      now: this.#now(),
    });
    const isOwner =
      draft.registrationId === current.registrationId && draft.vendor === current.vendor;
    if (isRegistration || !isOwner) await takeRegistration(tx, app.appId, installation);
    return { installation, isNew: false };
  }

  async #insert(
    db: Handle,
    app: App,
    { ids, storage, isReturning = false }: DeviceSave,
    draft: InstallationDraft,
  ): Promise<Installation | undefined> {
    const objectId = (isReturning ? ids.objectId : undefined) ?? newObjectId();
    storage?.create(memberBytes(draft));
    const inserted = await insertInstallation(db, app.appId, { objectId, draft, now: this.#now() });
    if (!inserted) storage?.refund();
    return inserted;
  }

  #now(): Date {
    return new Date(this.#deps.clock.now());
  }
}

/** Returns the checked members of a new installation. */
function draftOfNew({ ids, changes, isReturning = false }: DeviceSave): InstallationDraft {
  const draft = changedDraft(undefined, isReturning ? typedByIdentity(changes) : changes);
  if (isReturning) checkReturn(draft, changes, ids.objectId);
  else checkNewInstallation(draft, changes);
  return draft;
}
