import { type NamedCredentials, toPushMessage } from '../../../connectors/contract/connector.ts';
import { connectors } from '../../../connectors/registry.ts';
import { readCredentials } from '../../../connectors/routing.ts';
import type { StoredProfile } from '../../../shared/db/tables/profiles.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import {
  appleDeviceTypes,
  type ConnectorId,
  displayName,
  harmonyDeviceTypes,
  labelsOf,
  requestedConnector,
  vendorIds,
} from '../../../shared/domain/labels.ts';
import type { PushOrder } from '../../../shared/domain/pushes/push.ts';
import { readReason } from '../../../shared/domain/reasons.ts';
import { type Detail, detail } from '../../../shared/domain/texts/texts.ts';
import type { ApiDeps } from '../deps.ts';
import { UnservedDevices, type UnservedGroup } from './unserved-devices.ts';

/**
 * Finds out whether a push needs a profile that is missing (protocol/admin-api.md#missing-profiles,
 * protocol/push.md#profiles).
 */
export class MissingProfiles {
  readonly #deps: ApiDeps;
  readonly #unserved: UnservedDevices;

  constructor(deps: ApiDeps) {
    this.#deps = deps;
    this.#unserved = new UnservedDevices(deps);
  }

  /**
   * Returns the message of the refusal when a device of the push needs a profile that is missing, else undefined. Devices of
   * a redrive without a profile fail again, each with the reason.
   */
  async find(app: App, pushOrder: PushOrder): Promise<Detail | undefined> {
    if (pushOrder.redrive) return undefined;
    const profiles = await this.#deps.appCache.profiles(app.appId);
    const missing = missingForDevices(profiles, pushOrder);
    if (missing) return missing;
    const group = await this.#unserved.find(app, pushOrder, unservedGroups(app, profiles, pushOrder));
    return group?.message;
  }
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
): Detail | undefined {
  const apns = connectors.get('apns');
  const message = toPushMessage({ objectId: '', pushOrder, expiresAt: new Date(0), createdAt: new Date(0) });
  const traits = { deviceProfile, topic: null, teamId: null };
  const candidates = validProfiles(profiles, 'apns');
  const choice = apns?.choose?.(candidates, traits, message);
  // With several teams, each installation stores its own: an ambiguous team is no missing profile.
  if (!choice || choice.ok || readReason(choice.error).code === 'severalTeams') return undefined;
  return detail('apnsCertificate', { why: choice.error });
}

function missingForDevices(profiles: StoredProfile[], pushOrder: PushOrder): Detail | undefined {
  if (pushOrder.target.kind !== 'devices') return undefined;
  const { deviceType, vendor, deviceProfile } = pushOrder.target;
  if (deviceType === 'ios') return missingApnsProfile(profiles, pushOrder, deviceProfile ?? '');
  const connector = vendor === null ? undefined : requestedConnector(vendor);
  if (!connector || connector === 'channel') return undefined;
  const name = deviceProfile || '_default';
  return hasProfile(profiles, connector, name)
    ? undefined
    : detail('noNamedProfile', { vendor: displayName(connector), name });
}

/** Tells whether the app has a profile of that name under one of the connector's labels. */
function hasProfile(profiles: StoredProfile[], connector: ConnectorId, name: string): boolean {
  const labels: readonly string[] = labelsOf(connector);
  return profiles.some((profile) => labels.includes(profile.connector) && profile.name === name);
}

/** Conditions on devices without a profile of their own. */
const usesApns = `device_token IS NOT NULL AND coalesce(device_profile, '') = ''`;
const usesVendor = `registration_id IS NOT NULL AND coalesce(device_profile, '') = ''`;

/** Devices of HarmonyOS are Huawei's, with or without a vendor. */
const harmonyKinds = harmonyDeviceTypes.map((deviceType) => ({ deviceType, vendor: null }));

function unservedGroups(app: App, profiles: StoredProfile[], pushOrder: PushOrder): UnservedGroup[] {
  const message = missingApnsProfile(profiles, pushOrder, '');
  const kinds = appleDeviceTypes.map((deviceType) => ({ deviceType, vendor: null }));
  const groups: UnservedGroup[] = message ? [{ kinds, condition: usesApns, message }] : [];
  if (!app.options.hybridPush) return groups;
  const missing = vendorIds.filter((vendor) => !hasProfile(profiles, vendor, '_default'));
  return [
    ...groups,
    ...missing.map((vendor) => ({
      kinds: [{ deviceType: 'android', vendor }, ...(vendor === 'vendor_a' ? harmonyKinds : [])],
      condition: usesVendor,
      message: detail('noVendorProfile', { vendor: displayName(vendor) }),
    })),
  ];
}
