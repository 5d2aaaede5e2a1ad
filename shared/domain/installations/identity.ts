import { refuse } from '../errors/errors.ts';
import { canonicalVendor } from '../labels.ts';
import { type InstallationChanges, textIn } from './changes.ts';
import type { Installation } from './installation.ts';

/** What a client that registers says of itself; undefined is unknown. */
export interface DeviceIds {
  objectId: string | undefined;
  installationId: string | undefined;
  deviceToken: string | undefined;
  /** Of a vendor's gateway; no two devices of a vendor have the same. */
  registrationId: string | undefined;
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
    registrationId: storable(textIn(changes, 'registrationId')),
  };
}

/** True where the ids name a device, whatever became of its record. */
export const hasDeviceId = ({ installationId, deviceToken, registrationId }: DeviceIds): boolean =>
  [installationId, deviceToken, registrationId].some((id) => id !== undefined && id !== '');

/**
 * The changes with a device type. A client that thinks its record is there sends only what is new: its kind of identity
 * says what it is. Android devices have a `registrationId`, or an `installationId` alone.
 */
export function typedByIdentity(changes: InstallationChanges): InstallationChanges {
  if (changes.touched.has('deviceType')) return changes;
  const hasVendor = changes.touched.has('registrationId') || changes.touched.has('vendor');
  const isAndroid = hasVendor || !changes.touched.has('deviceToken');
  const write = { path: ['deviceType'], value: isAndroid ? 'android' : 'ios' };
  return { ...changes, writes: [...changes.writes, write] };
}

/** A text that PostgreSQL cannot hold names nothing; that it is refused follows when it is written. */
const storable = (text: string | undefined): string | undefined => (text?.includes('\0') ? undefined : text);

/**
 * Which of the installations that the ids name is the one that registers (protocol/installations.md#registration): by objectId, else by installationId, else by device token, else by the id that a vendor gave. An
 * objectId that is gone names nothing, so that a client whose record was cleaned away registers again
 * (protocol/installations.md#idle-installations). Throws 137 when the token belongs to another installation.
 */
export function findRegistered(
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
  return named ?? ofToken ?? found.find((one) => isSameVendorId(one, ids, changes));
}

/** Vendors' ids are not unique here; what contradicts the rest of the identity is another device. */
function isSameVendorId(installation: Installation, ids: DeviceIds, changes: InstallationChanges): boolean {
  const { registrationId, vendor } = installation;
  const sent = textIn(changes, 'vendor');
  return (
    registrationId !== null &&
    registrationId === ids.registrationId &&
    (sent === undefined || canonicalVendor(sent) === vendor) &&
    isSameDevice(installation, ids, changes)
  );
}

function isSameDevice(installation: Installation, ids: DeviceIds, changes: InstallationChanges): boolean {
  const deviceType = textIn(changes, 'deviceType') ?? installation.deviceType;
  const { installationId } = installation;
  return (
    deviceType === installation.deviceType &&
    (installationId === null || (ids.installationId ?? installationId) === installationId)
  );
}
