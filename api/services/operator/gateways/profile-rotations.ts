import {
  findRotation,
  lockRotation,
  type ProfileRotation,
  promoteCandidate,
  rollBackCandidate,
  saveCheck,
  stageCandidate,
} from '../../../../shared/db/tables/profiles.ts';
import { maskedCredentials } from '../../../../shared/domain/admin/masking.ts';
import type { OperatorRole } from '../../../../shared/domain/admin/operator.ts';
import type { RollbackReason, RotationState } from '../../../../shared/domain/apps/canary.ts';
import { refuse } from '../../../../shared/domain/errors/errors.ts';
import type { JsonObject } from '../../../../shared/domain/json.ts';
import { detail } from '../../../../shared/domain/texts/texts.ts';
import type { ApiDeps } from '../../deps.ts';
import { requireMaySetAddresses } from '../access/member-rights.ts';
import { requireApp } from '../apps.ts';
import { recordChange } from '../audit/audit.ts';
import type { ProfileCheckService } from './profile-check.ts';
import {
  checkedCredentials,
  checkName,
  completedCredentials,
  connectorOf,
  noSuchProfile,
  type ProfileId,
} from './profiles.ts';

type Checks = Pick<ProfileCheckService, 'checkCandidate'>;

/** Reason of a rollback that an operator requested. */
const byOperator: RollbackReason = 'operator';

/**
 * Rotates the credentials of a profile with a canary
 * (protocol/admin-api.md#rotation-of-credentials).
 */
export class ProfileRotationService {
  readonly #deps: ApiDeps;
  readonly #checks: Checks;

  constructor(deps: ApiDeps, checks: Checks) {
    this.#deps = deps;
    this.#checks = checks;
  }

  /**
   * Returns the rotation of a profile. Throws error 404 if the profile does not exist or was never
   * rotated.
   */
  async get(id: ProfileId): Promise<ProfileRotation> {
    const profile = await this.#checkId(id);
    return (await findRotation(this.#deps.db, profile)) ?? noRotation();
  }

  /**
   * Stages candidate credentials and checks them with the gateway. If the gateway accepts them,
   * real pushes try them, unless `waitsForPromotion` is true. Otherwise they stay staged with the
   * reason. Throws error 404 if the profile does not exist, error 400 if the credentials are
   * invalid, and as `requireMaySetAddresses`.
   */
  async stage(
    id: ProfileId,
    sent: JsonObject,
    { waitsForPromotion, role }: { waitsForPromotion: boolean; role: OperatorRole },
  ): Promise<ProfileRotation> {
    const { db, vault } = this.#deps;
    const checkedId = await this.#checkId(id);
    const checked = checkedCredentials(connectorOf(id.connector), sent, this.#deps.clock.now());
    await requireMaySetAddresses(this.#deps, checkedId, { credentials: checked, role });
    const { staged, credentials } = await db.transaction(async (tx) => {
      const credentials = await completedCredentials(tx, vault, { ...checkedId, sent: checked });
      const rotation = await stageCandidate(tx, vault, { ...checkedId, credentials });
      if (rotation)
        await this.#audit(tx, checkedId, 'profile.stage', {
          after: maskedCredentials(credentials),
        });
      return { staged: rotation, credentials };
    });
    if (!staged) return noSuchProfile();
    const { ok, reason, sentence } = await this.#checks.checkCandidate(
      connectorOf(id.connector),
      credentials,
    );
    const to = ok ? (waitsForPromotion ? 'checked' : 'canary') : 'staged';
    const result = { stagedAt: staged.stagedAt, to, reason, detail: ok ? null : sentence } as const;
    const saved = await db.transaction((tx) => saveCheck(tx, checkedId, result));
    this.#deps.appCache.forget(id.appId);
    return saved ?? this.get(id);
  }

  /**
   * Makes the candidate the current version. Throws error 409 if the gateway did not accept it in
   * the check.
   */
  promote(id: ProfileId): Promise<ProfileRotation> {
    return this.#change(id, 'profile.promote', async (tx, rotation) => {
      if (rotation.state !== 'checked' && rotation.state !== 'canary')
        throw refuse('conflict', detail('noCandidate', { state: rotation.state }));
      await promoteCandidate(tx, rotation);
    });
  }

  /**
   * Drops the candidate, or restores the version before a promotion. Throws error 409 if there is
   * neither.
   */
  rollBack(id: ProfileId): Promise<ProfileRotation> {
    return this.#change(id, 'profile.rollback', async (tx, rotation) => {
      if (
        rotation.state === 'rolled_back' ||
        (rotation.state === 'promoted' && !rotation.hasPrevious)
      )
        throw refuse('conflict', detail('nothingBefore'));
      await rollBackCandidate(tx, rotation, { reason: byOperator });
    });
  }

  async #change(
    id: ProfileId,
    action: string,
    change: (tx: Parameters<typeof lockRotation>[0], rotation: ProfileRotation) => Promise<void>,
  ): Promise<ProfileRotation> {
    const checkedId = await this.#checkId(id);
    const changed = await this.#deps.db.transaction(async (tx) => {
      const rotation = (await lockRotation(tx, checkedId)) ?? noRotation();
      await change(tx, rotation);
      const after = (await findRotation(tx, checkedId)) ?? noRotation();
      await this.#audit(tx, checkedId, action, {
        before: { state: rotation.state },
        after: { state: after.state },
      });
      return after;
    });
    this.#deps.appCache.forget(id.appId);
    return changed;
  }

  #audit(
    tx: Parameters<typeof recordChange>[0],
    { appId, connector, name }: ProfileId,
    action: string,
    change: { before?: { state: RotationState }; after: JsonObject },
  ): Promise<void> {
    return recordChange(tx, { action, appId, target: `${connector}/${name}`, ...change });
  }

  async #checkId({ appId, connector, name }: ProfileId): Promise<ProfileId> {
    const checkedId = { appId, connector: connectorOf(connector), name };
    checkName(name);
    await requireApp(this.#deps, appId);
    return checkedId;
  }
}

function noRotation(): never {
  throw refuse('notFound', detail('neverStaged'));
}
