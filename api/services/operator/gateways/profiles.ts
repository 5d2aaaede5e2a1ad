import {
  checkCredentials,
  connectors,
  credentialsOf,
  inspectCredentials,
} from '../../../../connectors/registry.ts';
import type { Vault } from '../../../../shared/crypto.ts';
import type { Handle } from '../../../../shared/db/pool.ts';
import {
  deleteProfile,
  endRotation,
  listProfiles,
  openProfile,
  type ProfileEntry,
  putProfile,
  type RotatedProfile,
} from '../../../../shared/db/tables/profiles.ts';
import { maskedCredentials, maskText } from '../../../../shared/domain/admin/masking.ts';
import type { OperatorRole } from '../../../../shared/domain/admin/operator.ts';
import { Refusal, refuse } from '../../../../shared/domain/errors/errors.ts';
import type { JsonObject } from '../../../../shared/domain/json.ts';
import { jsonObject } from '../../../../shared/domain/json-schema.ts';
import {
  type ConnectorId,
  isConnectorId,
  profileConnectorIds,
} from '../../../../shared/domain/labels.ts';
import { reasonText } from '../../../../shared/domain/reasons.ts';
import { detail } from '../../../../shared/domain/texts/texts.ts';
import type { ApiDeps } from '../../deps.ts';
import { requireMaySetAddresses } from '../access/member-rights.ts';
import { noSuchApp, requireApp } from '../apps.ts';
import { recordChange } from '../audit/audit.ts';

/** Identifies a profile of an app. The default profile has the name `_default`. */
export interface ProfileId {
  appId: string;
  connector: string;
  name: string;
}

/**
 * Names of profiles (protocol/installations.md#installation-fields). The maximum length is
 * Carillon's choice.
 */
const namePattern = /^(?:_default|[A-Za-z][A-Za-z0-9_]{0,63})$/;

/**
 * Stores push profiles. No reply contains credentials
 * (protocol/admin-api.md#credentials-of-a-push-profile).
 */
export class ProfileService {
  readonly #deps: ApiDeps;

  constructor(deps: ApiDeps) {
    this.#deps = deps;
  }

  /**
   * Creates or replaces a profile. Throws error 404 if the connector or app is unknown. Throws
   * error 400 if the name or credentials are invalid or an address is private. Throws error 403 if
   * a caller below the role owner changes an address.
   */
  async put(
    { appId, connector, name }: ProfileId,
    sent: JsonObject,
    role: OperatorRole = 'owner',
  ): Promise<ProfileEntry> {
    const { db, vault, appCache } = this.#deps;
    const connectorId = connectorOf(connector);
    checkName(name);
    await requireApp(this.#deps, appId);
    const checked = checkedCredentials(connectorId, sent, this.#deps.clock.now());
    const id = { appId, connector: connectorId, name };
    await requireMaySetAddresses(this.#deps, id, { credentials: checked, role });
    const entry = await db.transaction(async (tx) => {
      const credentials = await completedCredentials(tx, vault, { ...id, sent: checked });
      const profile = { ...id, credentials };
      const put = await putProfile(tx, vault, profile);
      await endRotation(tx, profile);
      const after = maskedCredentials(credentials);
      const change = { action: 'profile.put', appId, target: `${connectorId}/${name}` };
      if (put)
        await recordChange(tx, {
          ...change,
          ...(isNewProfile(put) ? {} : { before: maskedMembers }),
          after,
        });
      return put;
    });
    appCache.forget(appId);
    return entry ?? noSuchApp();
  }

  async list(appId: string): Promise<ProfileEntry[]> {
    await requireApp(this.#deps, appId);
    return listProfiles(this.#deps.db, appId);
  }

  /** Deletes a profile. Throws error 404 if it does not exist. */
  async delete({ appId, connector, name }: ProfileId): Promise<void> {
    const connectorId = connectorOf(connector);
    checkName(name);
    const isDeleted = await this.#deps.db.transaction(async (tx) => {
      const hasDeleted = await deleteProfile(tx, appId, connectorId, name);
      const change = {
        action: 'profile.delete',
        appId,
        target: `${connectorId}/${name}`,
        before: maskedMembers,
      };
      if (hasDeleted) await recordChange(tx, change);
      return hasDeleted;
    });
    this.#deps.appCache.forget(appId);
    if (!isDeleted) noSuchProfile();
  }
}

export function noSuchProfile(): never {
  throw refuse('notFound', detail('noProfile'));
}

/**
 * Returns credentials in the form in which they are stored. Throws error 400 with the invalid
 * member, or if the credentials have expired.
 */
export function checkedCredentials(
  connector: ConnectorId,
  sent: JsonObject,
  nowMs: number,
): JsonObject {
  const checked = checkCredentials(connector, sent);
  if (!checked.ok) throw refuse('incorrectType', `${toErrorText(checked.error)}.`);
  const { refusal } = inspectCredentials(connector, checked.credentials, nowMs);
  if (refusal !== undefined) throw refuse('invalidParameter', reasonText(refusal));
  return jsonObject.parse(checked.credentials);
}

/**
 * Returns the credentials to store: those that were sent, with the members that the connector adds
 * (`Connector.complete`). Locks the stored profile until the transaction ends.
 */
export async function completedCredentials(
  tx: Handle,
  vault: Vault,
  { sent, ...id }: RotatedProfile & { sent: JsonObject },
): Promise<JsonObject> {
  const connector = connectors.get(connectorOf(id.connector));
  if (!connector?.complete) return sent;
  const stored = await openProfile(tx, vault, id, { isLocked: true });
  return jsonObject.parse(connector.complete(sent, stored?.credentials));
}

/** Earlier credentials in the audit. They are masked and never decrypted for it. */
const maskedMembers = { credentials: maskText };

const isNewProfile = ({ createdAt, updatedAt }: ProfileEntry): boolean =>
  createdAt.getTime() === updatedAt.getTime();

/** Returns a connector id. Throws error 404 if the connector has no profiles. */
export function connectorOf(text: string): ConnectorId {
  if (isConnectorId(text) && credentialsOf(text)) return text;
  throw new Refusal('notFound', {
    text: `There is no such connector: expected one of ${profileConnectorIds.join(', ')}.`,
  });
}

export function checkName(name: string): void {
  if (!namePattern.test(name)) throw refuse('invalidParameter', detail('profileName'));
}

/** Capitalizes a message, unless it begins with the name of a member. */
const toErrorText = (text: string) => (text.startsWith('there') ? `T${text.slice(1)}` : text);
