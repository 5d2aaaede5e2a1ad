import { type NamedCredentials, toPushMessage } from '../../../connectors/contract/connector.ts';
import { connectors } from '../../../connectors/registry.ts';
import { readCredentials } from '../../../connectors/routing.ts';
import { type Handle, isStatementTimeout } from '../../../shared/db/pool.ts';
import type { StoredProfile } from '../../../shared/db/tables/apps/profiles.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import {
  appleDeviceTypes,
  type ConnectorId,
  displayName,
  labelsOf,
  requestedConnector,
  vendorIds,
} from '../../../shared/domain/labels.ts';
import type { PushOrder } from '../../../shared/domain/pushes/push.ts';
import { QueueFull } from '../../../shared/fairness/fair-queue.ts';
import { Params, targetCondition } from '../../../shared/query/targets/targets.ts';
import type { ApiDeps } from '../deps.ts';

/**
 * Time that the search for devices without a profile may run, and wait for a connection. When it takes longer, the push
 * is accepted, and such devices are counted `failed` with the message on the record.
 */
const searchTimeoutMs = 200;
const searchWaitMs = 100;

/** Group of devices without a profile. */
interface UnservedGroup {
  /** SQL that selects its installations. */
  condition: (params: Params) => string;
  /**
   * SQL that tells with one index look-up per type whether the app has any device of the group's types. `min` makes the
   * planner use the index on the types: for a plain EXISTS it may prefer a scan that ends at the first row.
   */
  hasAny: (params: Params) => string;
  message: string;
}

/**
 * Returns the message of the refusal when a device of the push needs a profile that is missing, else undefined
 * (protocol/admin-api.md#missing-profiles, protocol/push.md#profiles).
 */
export async function findMissingProfile(
  deps: ApiDeps,
  app: App,
  pushOrder: PushOrder,
): Promise<string | undefined> {
  const profiles = await deps.appCache.profiles(app.appId);
  const missing = pushOrder.target.kind === 'devices' ? missingForDevices(profiles, pushOrder) : undefined;
  if (missing) return missing;
  const groups = unservedGroups(app, profiles, pushOrder);
  return groups.length === 0 ? undefined : findUnserved(deps, app, { pushOrder, groups });
}

const validProfiles = (profiles: StoredProfile[], connector: ConnectorId): NamedCredentials<unknown>[] =>
  profiles
    .filter((profile) => profile.connector === connector)
    .flatMap((profile) => readCredentials(profile) ?? []);

/** Returns a message when no APNs profile can serve this push. The choice of a profile is made for each device later. */
function missingApnsProfile(
  profiles: StoredProfile[],
  pushOrder: PushOrder,
  deviceProfile: string,
): string | undefined {
  const apns = connectors.get('apns');
  const message = toPushMessage({ objectId: '', pushOrder, expiresAt: new Date(0), createdAt: new Date(0) });
  const traits = { deviceProfile, topic: null, teamId: null };
  const candidates = validProfiles(profiles, 'apns');
  const choice = apns?.choose?.(candidates, traits, message);
  // With several teams, each installation stores its own: an ambiguous team is no missing profile.
  if (!choice || choice.ok || /several teams/.test(choice.error)) return undefined;
  return `The iOS certificate file is expired or disabled: ${choice.error}.`;
}

function missingForDevices(profiles: StoredProfile[], pushOrder: PushOrder): string | undefined {
  if (pushOrder.target.kind !== 'devices') return undefined;
  const { deviceType, vendor, deviceProfile } = pushOrder.target;
  if (deviceType === 'ios') return missingApnsProfile(profiles, pushOrder, deviceProfile ?? '');
  const connector = vendor === null ? undefined : requestedConnector(vendor);
  if (!connector || connector === 'channel') return undefined;
  const name = deviceProfile || '_default';
  return hasProfile(profiles, connector, name)
    ? undefined
    : `There is no ${displayName(connector)} profile named ${name}.`;
}

/** Tells whether the app has a profile of that name under one of the connector's labels. */
function hasProfile(profiles: StoredProfile[], connector: ConnectorId, name: string): boolean {
  const labels: readonly string[] = labelsOf(connector);
  return profiles.some((profile) => labels.includes(profile.connector) && profile.name === name);
}

function unservedGroups(app: App, profiles: StoredProfile[], pushOrder: PushOrder): UnservedGroup[] {
  const groups: UnservedGroup[] = [];
  const missingApns = missingApnsProfile(profiles, pushOrder, '');
  if (missingApns)
    groups.push({
      condition: (params) =>
        `device_type = ANY(${params.add([...appleDeviceTypes])}) AND device_token IS NOT NULL AND coalesce(device_profile, '') = ''`,
      hasAny: (params) => `(${appleDeviceTypes.map((type) => hasAnyOfType(app, type, params)).join(' OR ')})`,
      message: missingApns,
    });
  if (!app.options.hybridPush) return groups;
  for (const vendor of vendorIds) {
    if (hasProfile(profiles, vendor, '_default')) continue;
    groups.push({
      condition: (params) =>
        `device_type = 'android' AND vendor = ${params.add(vendor)} AND registration_id IS NOT NULL AND coalesce(device_profile, '') = ''`,
      hasAny: (params) => hasAnyOfVendor(app, vendor, params),
      message: `There is no ${displayName(vendor)} profile named _default, and devices of that vendor need it.`,
    });
  }
  return groups;
}

function hasAnyOfType({ appId }: App, deviceType: string, params: Params): string {
  const type = params.add(deviceType);
  return `(SELECT min(device_type) FROM installation
            WHERE app_id = ${params.add(appId)} AND device_type >= ${type}) = ${type}`;
}

function hasAnyOfVendor({ appId }: App, vendor: string, params: Params): string {
  const name = params.add(vendor);
  return `(SELECT min(vendor) FROM installation
            WHERE app_id = ${params.add(appId)} AND device_type = 'android' AND vendor >= ${name}) = ${name}`;
}

/** Returns the message of the first group that has a device among the recipients of the push. */
async function findUnserved(
  { queries, clock }: ApiDeps,
  app: App,
  { pushOrder, groups }: { pushOrder: PushOrder; groups: UnservedGroup[] },
): Promise<string | undefined> {
  const params = new Params();
  const target = targetCondition(app, pushOrder, { params, nowMs: clock.now() });
  const branches = groups.map(
    (group, i) =>
      // AND stops at a false first part: the devices of the push are searched only in a group that is not empty.
      `WHEN ${group.hasAny(params)}
        AND EXISTS (SELECT 1 FROM installation WHERE ${target} AND ${group.condition(params)}) THEN ${i}`,
  );
  try {
    const search = (tx: Handle) =>
      tx.query<{ found: number | null }>(`SELECT CASE ${branches.join(' ')} END AS found`, params.values);
    const limit = { timeoutMs: searchTimeoutMs, maxWaitMs: searchWaitMs };
    // The search counts against the app's share of client queries, also with the master key.
    const { rows } = await queries.read({ app, isMaster: false }, search, limit);
    const found = rows[0]?.found;
    return typeof found === 'number' ? groups[found]?.message : undefined;
  } catch (error) {
    if (isStatementTimeout(error) || error instanceof QueueFull) return undefined;
    throw error;
  }
}
