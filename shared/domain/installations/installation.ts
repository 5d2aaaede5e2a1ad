import { isJsonObject, type Json, type JsonObject } from '../json.ts';
import { type Acl, validAcl } from '../objects/acl.ts';
import type { Members } from '../objects/operations.ts';
import { storedSubscription, subscriptionDocument } from './subscription.ts';

/**
 * An installation of an app on a device, as clients see it
 * (protocol/installations.md#installation-fields, develop/architecture.md#data).
 */
export interface StoredInstallation extends InstallationDraft {
  objectId: string;
  createdAt: Date;
  updatedAt: Date;
}

/** An installation with its internal id. */
export interface Installation extends StoredInstallation {
  /** Internal id. Never part of a reply. */
  id: number;
}

/** Members of an installation that clients write. Null means absent. */
export interface InstallationDraft {
  deviceType: string;
  deviceToken: string | null;
  installationId: string | null;
  /** Canonical id of the vendor, or an unknown name in lower case. */
  vendor: string | null;
  /** The vendor as the client sent it. */
  vendorName: string | null;
  /** Id at the vendor's gateway; for Web Push, the endpoint of the subscription. */
  registrationId: string | null;
  /** Keys of the Web Push subscription, as `storedKeys` writes them. */
  subscriptionKeys: string | null;
  deviceProfile: string | null;
  topic: string | null;
  teamId: string | null;
  /** True if topic and team id were sent under their wire names. */
  hasWireNames: boolean;
  channels: string[] | null;
  valid: boolean;
  timeZone: string | null;
  badge: number | null;
  /** All other members. */
  fields: JsonObject;
}

/**
 * Returns the ACL of an installation (protocol/installations.md#acl); null if it has none. An
 * invalid ACL, from before ACLs were checked, is ignored.
 */
export function aclOf({ fields }: Pick<InstallationDraft, 'fields'>): Acl | null {
  const { ACL: value } = fields;
  return isJsonObject(value) ? validAcl(value) : null;
}

/**
 * Columns of an installation that decide its route: the routing key. Devices with equal routing
 * keys have the same route.
 */
export interface RoutingKey {
  device_type: string;
  vendor: string | null;
  device_profile: string | null;
  topic: string | null;
  team_id: string | null;
  has_token: boolean;
  has_registration: boolean;
  has_installation_id: boolean;
}

/** Neutral names by wire name (protocol/labels.md#members-of-apns). */
const neutralNames = new Map([
  ['apnsTopic', 'pgwTopic'],
  ['apnsTeamId', 'pgwTeamId'],
]);
const wireNames = new Map([...neutralNames].map(([wire, neutral]) => [neutral, wire]));

/** Returns the neutral name of a member. */
export const neutralName = (name: string): string => neutralNames.get(name) ?? name;

/** Returns the wire name of a member. Members with only one name are returned unchanged. */
export const wireName = (name: string): string => wireNames.get(name) ?? name;

/**
 * Returns true for a wire name and false for its neutral name. Returns undefined if the member has
 * only one name.
 */
export function isWireName(name: string): boolean | undefined {
  if (neutralNames.has(name)) return true;
  return wireNames.has(name) ? false : undefined;
}

/** True if a record has a member under its wire name. */
export function hasWireName(record: JsonObject): boolean {
  for (const name of neutralNames.keys()) if (Object.hasOwn(record, name)) return true;
  return false;
}

/** Returns the built-in members under their neutral names. Absent members are null. */
function builtIns(draft: InstallationDraft): [string, Json][] {
  const subscription = storedSubscription(draft.registrationId, draft.subscriptionKeys);
  return [
    ['deviceType', draft.deviceType],
    ['deviceToken', draft.deviceToken],
    ['installationId', draft.installationId],
    ['vendor', draft.vendorName],
    ['registrationId', subscription ? null : draft.registrationId],
    ['subscription', subscription && subscriptionDocument(subscription)],
    ['deviceProfile', draft.deviceProfile],
    ['pgwTopic', draft.topic],
    ['pgwTeamId', draft.teamId],
    ['channels', draft.channels],
    ['valid', draft.valid],
    ['timeZone', draft.timeZone],
    ['badge', draft.badge],
  ];
}

/** Returns all present members under their neutral names, for operations. */
export function membersOf(draft: InstallationDraft): Members {
  const present = builtIns(draft).filter(([, value]) => value !== null);
  return new Map([...Object.entries(draft.fields), ...present]);
}

/**
 * Returns the installation for a reply. Members have the names they were stored with
 * (protocol/labels.md#stored-names), and absent members are left out. Times are ISO 8601 with
 * milliseconds. `hasSubscription` adds the Web Push subscription, which only the master key reads.
 */
export function installationDocument(
  installation: StoredInstallation,
  { hasAcl, hasSubscription }: { hasAcl: boolean; hasSubscription: boolean },
): JsonObject {
  const members = [...membersOf(installation)].filter(
    ([name]) => (hasAcl || name !== 'ACL') && (hasSubscription || name !== 'subscription'),
  );
  const named = members.map(([name, value]): [string, Json] => [
    installation.hasWireNames ? wireName(name) : name,
    value,
  ]);
  return Object.fromEntries([
    ...named,
    ['objectId', installation.objectId],
    ['createdAt', installation.createdAt.toISOString()],
    ['updatedAt', installation.updatedAt.toISOString()],
  ]);
}

/** Returns the members of a document whose neutral names are in `names`. */
export function pickMembers(document: JsonObject, names: ReadonlySet<string>): JsonObject {
  return Object.fromEntries(
    Object.entries(document).filter(([name]) => names.has(neutralName(name))),
  );
}

/** True if a value means that a built-in member is absent. */
export const isAbsent = (value: Json | undefined): value is null | undefined =>
  value === undefined || value === null;

/** True if a member only describes the object, as SDKs send it. Such members are not stored. */
export function isObjectHint(name: string, value: unknown): boolean {
  return (
    name.startsWith('_') ||
    (name === 'className' && value === '_Installation' && !isJsonObject(value))
  );
}

/**
 * Path of the WebSocket for devices. The router endpoints return it (protocol/channel.md#router).
 */
export const channelPath = '/1.1/channel';

/**
 * Time that a device may cache a reply of a router endpoint (protocol/clients.md#app-router,
 * protocol/channel.md#router).
 */
export const routeTtlSeconds = 3600;
