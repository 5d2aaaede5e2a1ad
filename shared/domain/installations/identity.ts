import { refuse } from '../errors/errors.ts';
import { canonicalDeviceType, canonicalVendor, vendorOfDevice } from '../labels.ts';
import { endpointIn, type InstallationChanges, textIn } from './changes.ts';
import type { Installation, InstallationDraft } from './installation.ts';

/** Identity that a client sends when it registers. Undefined members are unknown. */
export interface DeviceIds {
  objectId: string | undefined;
  installationId: string | undefined;
  deviceToken: string | undefined;
  /** Registration id of the vendor's gateway. Unique among the devices of the vendor. */
  registrationId: string | undefined;
}

/** Hexadecimal digits in either case, as in an APNs token. */
const hexDigits = /^[0-9a-f]+$/i;

/**
 * Returns the canonical form of a device token, which is used for comparing and sending.
 * Installations store the spelling that the client sent.
 */
export const comparedToken = (token: string): string =>
  hexDigits.test(token) ? token.toLowerCase() : token;

/**
 * Returns the stored texts that mean the same device token. Rows of older versions contain the
 * spelling that the client sent.
 */
export function storedFormsOfToken(token: string): readonly string[] {
  const compared = comparedToken(token);
  return compared === token ? [token] : [compared, token];
}

/** True if a text has the form of a public id. */
export const isPublicId = (text: string): boolean => /^[A-Za-z0-9_-]{1,64}$/.test(text);

/**
 * Returns the ids in a body. Throws error 111 if `objectId` is not a valid id, because it selects a
 * record.
 */
export function deviceIdsOf(changes: InstallationChanges): DeviceIds {
  const objectId = changes.readOnly.get('objectId');
  if (objectId !== undefined && (typeof objectId !== 'string' || !isPublicId(objectId)))
    throw refuse('incorrectType', 'objectId must be the id of an object.');
  return {
    objectId,
    installationId: storable(textIn(changes, 'installationId')),
    deviceToken: storable(textIn(changes, 'deviceToken')),
    registrationId: storable(textIn(changes, 'registrationId')) ?? endpointIn(changes),
  };
}

/** True if the ids identify a device, even if it has no record. */
export const hasDeviceId = ({ installationId, deviceToken, registrationId }: DeviceIds): boolean =>
  [installationId, deviceToken, registrationId].some((id) => id !== undefined && id !== '');

/**
 * Adds the device type to changes that have none. A client that expects its record to exist sends
 * only new members. The ids then imply the type: Android devices have a `registrationId`, or only
 * an `installationId`.
 */
export function typedByIdentity(changes: InstallationChanges): InstallationChanges {
  if (changes.touched.has('deviceType')) return changes;
  const hasVendor = changes.touched.has('registrationId') || changes.touched.has('vendor');
  const isAndroid = hasVendor || !changes.touched.has('deviceToken');
  const write = { path: ['deviceType'], value: isAndroid ? 'android' : 'ios' };
  return { ...changes, writes: [...changes.writes, write] };
}

/** Drops an id that PostgreSQL cannot store. The write refuses it later. */
const storable = (text: string | undefined): string | undefined =>
  text?.includes('\0') ? undefined : text;

/**
 * Chooses the installation that registers among the installations that match the ids
 * (protocol/installations.md#registration). The order is objectId, installationId, device token,
 * and the vendor's registration id. An unknown objectId is ignored, so that a client whose record
 * was deleted can register again (protocol/installations.md#idle-installations). Throws error 137
 * if the token belongs to another installation.
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
 * Returns the installation with a device token. Older versions created an installation for each
 * spelling of a token. If several match, `preferred` is returned if it is one of them.
 */
function holderOf(
  found: readonly Installation[],
  token: string | undefined,
  preferred: Installation | undefined,
): Installation | undefined {
  if (token === undefined) return undefined;
  const compared = comparedToken(token);
  const hasToken = (one: Installation) =>
    one.deviceToken !== null && comparedToken(one.deviceToken) === compared;
  return preferred && hasToken(preferred) ? preferred : found.findLast(hasToken);
}

/**
 * True if the saved installation takes its registration id from other installations. The newest
 * registration owns the id, because the app was installed again
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
 * True if an installation with the same registration id is the same device, because no other id
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
