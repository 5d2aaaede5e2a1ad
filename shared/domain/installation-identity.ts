import { refuse } from './errors.ts';
import type { Installation } from './installation.ts';
import { type InstallationChanges, textIn } from './installation-changes.ts';

/** What a client that registers says of itself; undefined is unknown. */
export interface DeviceIds {
  objectId: string | undefined;
  installationId: string | undefined;
  deviceToken: string | undefined;
}

/** Public ids as they may stand in a path or a body. */
export const isPublicId = (text: string): boolean => /^[A-Za-z0-9_-]{1,64}$/.test(text);

/** Throws 111 when the objectId is no id: it selects a record, so nothing else may stand there. */
export function deviceIdsOf(changes: InstallationChanges): DeviceIds {
  const objectId = changes.readOnly.get('objectId');
  if (objectId !== undefined && (typeof objectId !== 'string' || !isPublicId(objectId)))
    throw refuse('incorrectType', 'objectId must be the id of an object.');
  return {
    objectId,
    installationId: storable(textIn(changes, 'installationId')),
    deviceToken: storable(textIn(changes, 'deviceToken')),
  };
}

/** A text that PostgreSQL cannot hold names nothing; that it is refused follows when it is written. */
const storable = (text: string | undefined): string | undefined => (text?.includes('\0') ? undefined : text);

/**
 * Which of the installations that the ids name is the one that registers (compat.md 8, "INFERRED safest
 * rule"): by objectId, else by installationId, else by device token. An objectId that is gone names
 * nothing, so that a client whose record was cleaned away registers anew (push.md "States"). Throws 137
 * when the token belongs to another installation.
 */
export function registeredAmong(
  found: Installation[],
  ids: DeviceIds,
  changes: InstallationChanges,
): Installation | undefined {
  const named =
    found.find((one) => one.objectId === ids.objectId) ??
    found.find((one) => ids.installationId !== undefined && one.installationId === ids.installationId);
  const ofToken = found.find((one) => ids.deviceToken !== undefined && one.deviceToken === ids.deviceToken);
  const isTaken = ofToken !== undefined && (named ? ofToken !== named : !isSameDevice(ofToken, ids, changes));
  if (isTaken) throw refuse('duplicate');
  return named ?? ofToken;
}

function isSameDevice(installation: Installation, ids: DeviceIds, changes: InstallationChanges): boolean {
  const deviceType = textIn(changes, 'deviceType') ?? installation.deviceType;
  const { installationId } = installation;
  return (
    deviceType === installation.deviceType &&
    (installationId === null || (ids.installationId ?? installationId) === installationId)
  );
}
