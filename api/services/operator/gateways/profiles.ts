import { classesError } from '../../../../connectors/contract/profile-classes.ts';
import {
  checkCredentials,
  connectors,
  credentialsOf,
  inspectCredentials,
} from '../../../../connectors/registry.ts';
import type { Vault } from '../../../../shared/crypto.ts';
import type { Handle } from '../../../../shared/db/pool.ts';
import { lockAppRow } from '../../../../shared/db/tables/apps.ts';
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
import type { Json, JsonObject } from '../../../../shared/domain/json.ts';
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
   * error 400 if the name, credentials or message classes are invalid or an address is private.
   * Absent message classes are kept; null removes them. Throws error 403 if
   * a caller below the role owner changes an address.
   */
  async put(
    { appId, connector, name }: ProfileId,
    { messageClasses, ...sent }: JsonObject,
    role: OperatorRole = 'owner',
  ): Promise<ShownProfile> {
    const { db, vault, appCache } = this.#deps;
    const connectorId = connectorOf(connector);
    checkName(name);
    await requireApp(this.#deps, appId);
    const checked = checkedCredentials(connectorId, sent, this.#deps.clock.now());
    const classes = checkedClasses(connectorId, messageClasses);
    const id = { appId, connector: connectorId, name };
    await requireMaySetAddresses(this.#deps, id, { credentials: checked, role });
    const entry = await db.transaction(async (tx) => {
      const credentials = await completedCredentials(tx, vault, { ...id, sent: checked });
      const profile = { ...id, credentials, messageClasses: classes };
      const put = await putProfile(tx, vault, profile);
      await endRotation(tx, profile);
      const after = {
        ...maskedCredentials(credentials),
        ...(classes === undefined ? {} : { messageClasses: classes }),
      };
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
    return shownProfile(entry ?? noSuchApp());
  }

  async list(appId: string): Promise<ShownProfile[]> {
    await requireApp(this.#deps, appId);
    return (await listProfiles(this.#deps.db, appId)).map(shownProfile);
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

/** Profile as replies show it. */
export type ShownProfile = Omit<ProfileEntry, 'messageClasses'> & { messageClasses?: JsonObject };

/** Leaves out message classes if the profile has none. */
export const shownProfile = ({ messageClasses, ...entry }: ProfileEntry): ShownProfile => ({
  ...entry,
  ...(messageClasses ? { messageClasses } : {}),
});

/**
 * Returns the message classes of a profile; null removes them, undefined keeps them. Throws error
 * 400 with the wrong member.
 */
function checkedClasses(
  connector: ConnectorId,
  classes: Json | undefined,
): JsonObject | null | undefined {
  if (classes === undefined || classes === null) return classes;
  const sender = connectors.get(connector);
  const error = sender ? classesError(sender, classes) : null;
  if (error !== null) throw refuse('incorrectType', detail('classesRefused', { why: error }));
  return jsonObject.parse(classes);
}

/**
 * Returns the credentials to store: those that were sent, with the members that the connector adds
 * (`Connector.complete`). Locks the app and the stored profile until the transaction ends, so that
 * concurrent calls do not create two pairs of keys.
 */
export async function completedCredentials(
  tx: Handle,
  vault: Vault,
  { sent, ...id }: RotatedProfile & { sent: JsonObject },
): Promise<JsonObject> {
  const connector = connectors.get(connectorOf(id.connector));
  if (!connector?.complete) return sent;
  await lockAppRow(tx, id.appId);
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
