import { canonicalTime, timeOfDate } from '../client-values.ts';
import { refuse } from '../errors/errors.ts';
import type { Json, JsonObject } from '../json.ts';
import { canonicalDeviceType } from '../labels.ts';
import { readAcl } from '../objects/acl.ts';
import {
  applyWrites,
  isDeletion,
  isOperation,
  type Members,
  memberPath,
  type Write,
} from '../objects/operations.ts';
import {
  type Installation,
  type InstallationDraft,
  isAbsent,
  isObjectHint,
  isWireName,
  membersOf,
  neutralName,
} from './installation.ts';
import { checkedValue, draftOf } from './members.ts';
import { parseSubscription } from './subscription.ts';

/** Parsed body of POST or PUT. */
export interface InstallationChanges {
  writes: Write[];
  /** Neutral names of the members that the body writes. */
  touched: ReadonlySet<string>;
  /**
   * True if topic and team id were sent under their wire names, false if under their neutral names,
   * undefined if not sent.
   */
  hasWireNames: boolean | undefined;
  /** `objectId`, `createdAt` and `updatedAt` as sent. A body may repeat but not change them. */
  readOnly: ReadonlyMap<string, Json>;
}

const readOnlyNames = new Set(['objectId', 'createdAt', 'updatedAt']);

/**
 * Parses a body. Ignores private members (`_…`, metadata of SDKs and batches;
 * protocol/objects.md#private-members). Throws error 105 if a name is invalid, and the errors of
 * `checkedValue` for built-in members. Other values and the results of operations are checked when
 * they are applied. The members that never change take no operation, except `Delete` in a change,
 * which `checkChange` refuses. The object id of a registration must be a text.
 */
export function parseInstallationChanges(
  body: JsonObject,
  { isRegistration = false }: { isRegistration?: boolean } = {},
): InstallationChanges {
  const entries = Object.entries(body).filter(([name, value]) => !isObjectHint(name, value));
  const writes: Write[] = [];
  const readOnly = new Map<string, Json>();
  let hasWireNames: boolean | undefined;
  for (const [name, value] of entries) {
    const [first, ...inner] = memberPath(name);
    if (readOnlyNames.has(first)) {
      if (isRegistration && name === 'objectId' && typeof value !== 'string')
        throw refuse('incorrectType', 'objectId must be a text.');
      readOnly.set(name, value);
    } else {
      const neutral = neutralName(first);
      const isFixed =
        neutral === 'valid' || (isImmutable(neutral) && (isRegistration || !isDeletion(value)));
      const checked = inner.length === 0 ? checkedValue(neutral, value, { name, isFixed }) : value;
      writes.push({ path: [neutral, ...inner], value: checked, sentName: name });
    }
    hasWireNames = isWireName(first) ?? hasWireNames;
  }
  return {
    writes,
    touched: new Set(writes.map(({ path }) => path[0] ?? '')),
    hasWireNames,
    readOnly,
  };
}

/**
 * Returns the text that a body sets a member to. Returns undefined if the member is absent, an
 * operation or of another type.
 */
export function textIn(changes: InstallationChanges, name: string): string | undefined {
  const write = changes.writes.find(({ path }) => path.length === 1 && path[0] === name);
  return typeof write?.value === 'string' ? write.value : undefined;
}

/**
 * Returns the endpoint of the Web Push subscription that a body sets. Returns undefined if it sets
 * none or an invalid one.
 */
export function endpointIn(changes: InstallationChanges): string | undefined {
  const write = changes.writes.find(({ path }) => path.length === 1 && path[0] === 'subscription');
  const value = write?.value as Json | undefined;
  if (isAbsent(value) || value === '' || isOperation(value)) return undefined;
  return parseSubscription(value, 'subscription').endpoint;
}

/**
 * Applies changes to an installation. `current` is undefined for a new installation. Throws the
 * errors of `applyWrites` and `draftOf`.
 */
export function changedDraft(
  current: Installation | undefined,
  changes: InstallationChanges,
): InstallationDraft {
  const members = current ? membersOf(current) : new Map<string, Json>();
  applyWrites(members, changes.writes);
  if (changes.touched.has('ACL')) checkAcl(members);
  return draftOf(members, changes.hasWireNames ?? current?.hasWireNames ?? false);
}

/** Checks an ACL that was written; null removes it. Throws error 123 if it is invalid. */
function checkAcl(members: Members): void {
  const value = members.get('ACL');
  if (isAbsent(value)) members.delete('ACL');
  else members.set('ACL', readAcl(value));
}

/**
 * Checks a new installation. It must have an id to reach it by: `deviceToken` for ios,
 * `installationId` for android, and one of the two for other types. A hybrid device also needs
 * `installationId`, because its `registrationId` alone is not enough
 * (protocol/installations.md#required-members). The server sets the times. Throws error 114, 111 or
 * 117.
 */
export function checkNewInstallation(draft: InstallationDraft, changes: InstallationChanges): void {
  const { deviceType, deviceToken, installationId, subscriptionKeys } = draft;
  if (deviceType === 'ios' && deviceToken === null) throw refuse('invalidDeviceToken');
  // A Web Push subscription is enough to reach a browser or an app.
  const isSubscribed = subscriptionKeys !== null;
  if (deviceType === 'android' && installationId === null && !isSubscribed)
    throw refuse('incorrectType', 'installationId is required for android.');
  if (deviceToken === null && installationId === null && !isSubscribed)
    throw refuse('incorrectType', 'installationId or deviceToken is required.');
  for (const name of changes.readOnly.keys()) if (name !== 'objectId') throw readOnlyKey(name);
}

/**
 * Like `checkNewInstallation`, for a deleted device that comes back with its old object id. The
 * device may send the times of its old record. For a vendor's device, `registrationId` is enough.
 * Throws error 114, 111 or 117.
 */
export function checkReturn(
  draft: InstallationDraft,
  changes: InstallationChanges,
  objectId: string | undefined,
): void {
  const { deviceType, deviceToken, installationId, registrationId, vendor } = draft;
  if (deviceType === 'ios' && deviceToken === null) throw refuse('invalidDeviceToken');
  const hasVendorId = registrationId !== null && vendor !== null;
  if (deviceType === 'android' && installationId === null && !hasVendorId)
    throw refuse(
      'incorrectType',
      'installationId, or registrationId and vendor, is required for android.',
    );
  const repeated = changes.readOnly.get('objectId');
  if (repeated !== undefined && repeated !== objectId) throw readOnlyKey('objectId');
}

const immutable = ['deviceType', 'installationId', 'deviceToken'] as const;
const isImmutable = (name: string): boolean => immutable.some((one) => one === name);

/**
 * Checks a change. Throws error 117 if an identity member changes
 * (protocol/installations.md#members-that-never-change). A new device token is accepted, because
 * gateways renew tokens. A registration (`isRegistration`) may contain an outdated object id.
 */
export function checkChange(
  current: Installation,
  draft: InstallationDraft,
  { changes, isRegistration }: { changes: InstallationChanges; isRegistration: boolean },
): void {
  for (const name of immutable) {
    const isRenewal = name === 'deviceToken' && draft.deviceToken !== null;
    const isSame =
      draft[name] === current[name] || (name === 'deviceType' && isSameType(current, draft));
    if (current[name] !== null && !isSame && !isRenewal) throw readOnlyKey(name);
  }
  for (const [name, value] of changes.readOnly) {
    // An installation that was found by its device ids keeps its object id, even if the client
    // sends another.
    if (
      name === 'objectId'
        ? !isRegistration && value !== current.objectId
        : !isTime(value, current, name)
    )
      throw readOnlyKey(name);
  }
}

const isSameType = (one: InstallationDraft, other: InstallationDraft): boolean =>
  canonicalDeviceType(one.deviceType) === canonicalDeviceType(other.deviceType);

function readOnlyKey(name: string): Error {
  return refuse('readOnlyKey', `The key is read only. The column is: '${name}'.`);
}

function isTime(value: Json, current: Installation, name: string): boolean {
  if (isOperation(value)) return false;
  const sent = typeof value === 'string' ? canonicalTime(value) : timeOfDate(value);
  const stored = name === 'createdAt' ? current.createdAt : current.updatedAt;
  return sent === stored.toISOString();
}
