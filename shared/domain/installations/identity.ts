import { refuse } from '../errors/errors.ts';
import { canonicalDeviceType, canonicalVendor, vendorOfDevice } from '../labels.ts';
import { type InstallationChanges, textIn } from './changes.ts';
import type { Installation, InstallationDraft } from './installation.ts';

/** Identity that a registering client sends; undefined members are unknown. */
export interface DeviceIds {
  objectId: string | undefined;
  installationId: string | undefined;
  deviceToken: string | undefined;
  /** Registration id of a vendor's gateway; unique among the vendor's devices. */
  registrationId: string | undefined;
}

/** Bytes written as hexadecimal digits, which may have either case: a token of APNs. */
const hexDigits = /^[0-9a-f]+$/i;

/**
 * Returns a device token as it is compared and sent; installations keep the spelling that the
 * client sent.
 */
export const comparedToken = (token: string): string =>
  hexDigits.test(token) ? token.toLowerCase() : token;

/**
 * Returns the stored texts that are equal to a device token: rows of older versions have it as it
 * was sent.
 */
export function namesOfToken(token: string): readonly string[] {
  const compared = comparedToken(token);
  return compared === token ? [token] : [compared, token];
}

/** Returns whether a text has the form of a public id. */
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

/** Returns whether the ids identify a device, even without a record. */
export const hasDeviceId = ({ installationId, deviceToken, registrationId }: DeviceIds): boolean =>
  [installationId, deviceToken, registrationId].some((id) => id !== undefined && id !== '');

/**
 * Adds the device type to changes without one. A client that expects its record to exist sends new
 * members only; the kind of identity implies the type. Android devices have a `registrationId`, or
 * an `installationId` alone.
 */
export function typedByIdentity(changes: InstallationChanges): InstallationChanges {
  if (changes.touched.has('deviceType')) return changes;
  const hasVendor = changes.touched.has('registrationId') || changes.touched.has('vendor');
  const isAndroid = hasVendor || !changes.touched.has('deviceToken');
  const write = { path: ['deviceType'], value: isAndroid ? 'android' : 'ios' };
  return { ...changes, writes: [...changes.writes, write] };
}

/** Drops an id that PostgreSQL cannot hold; the write refuses it later. */
const storable = (text: string | undefined): string | undefined =>
  text?.includes('\0') ? undefined : text;

/**
 * Chooses the registering installation among those that match the ids
 * (protocol/installations.md#registration): by objectId, else by installationId, device token, or
 * the vendor's registration id. An unknown objectId is ignored, so that a client whose record was
 * deleted registers again (protocol/installations.md#idle-installations). Throws 137 if the token
 * belongs to another installation.
 */
export function findRegistered(
  found: Installation[],
  ids: DeviceIds,
  changes: InstallationChanges,
): Installation | undefined {
  const named =
    found.find((one) => one.objectId === ids.objectId) ??
    found.find(
      (one) => ids.installationId !== undefined && one.installationId === ids.installationId,
    );
  const ofToken = holderOf(found, ids.deviceToken, named);
  const isTaken =
    ofToken !== undefined && (named ? ofToken !== named : !isSameDevice(ofToken, ids, changes));
  if (isTaken) throw refuse('duplicate');
  return named ?? ofToken ?? found.findLast((one) => isSameVendorId(one, ids, changes));
}

/**
 * Returns the installation with a device token; `preferred`, where older versions made one for each
 * spelling of it.
 */
function holderOf(
  found: readonly Installation[],
  token: string | undefined,
  preferred: Installation | undefined,
): Installation | undefined {
  if (token === undefined) return undefined;
  const compared = comparedToken(token);
  const holds = (one: Installation) =>
    one.deviceToken !== null && comparedToken(one.deviceToken) === compared;
  return preferred && holds(preferred) ? preferred : found.findLast(holds);
}

/**
 * Tells whether other installations have the registration id that one is saved with. The newest
 * registration owns it, so they lose it: the app was installed again
 * (protocol/installations.md#registration).
 */
export function takesRegistration(
  found: readonly Installation[],
  current: Installation | undefined,
  draft: InstallationDraft,
): boolean {
  const { registrationId } = draft;
  const vendor = vendorOfDevice(draft.deviceType, draft.vendor);
  if (registrationId === null || vendor === null) return false;
  const isOwner = (one: Installation) =>
    one.registrationId === registrationId && vendorOfDevice(one.deviceType, one.vendor) === vendor;
  return found.some((one) => one !== current && isOwner(one));
}

/**
 * Returns whether an installation with the same registration id is the same device: no other id
 * contradicts it.
 */
function isSameVendorId(
  installation: Installation,
  ids: DeviceIds,
  changes: InstallationChanges,
): boolean {
  const { registrationId, vendor } = installation;
  const sent = textIn(changes, 'vendor');
  return (
    registrationId !== null &&
    registrationId === ids.registrationId &&
    (sent === undefined || canonicalVendor(sent) === vendor) &&
    isSameDevice(installation, ids, changes)
  );
}

function isSameDevice(
  installation: Installation,
  ids: DeviceIds,
  changes: InstallationChanges,
): boolean {
  const deviceType = textIn(changes, 'deviceType') ?? installation.deviceType;
  const { installationId } = installation;
  return (
    canonicalDeviceType(deviceType) === canonicalDeviceType(installation.deviceType) &&
    (installationId === null || (ids.installationId ?? installationId) === installationId)
  );
}
