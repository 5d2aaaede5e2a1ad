import { toPushMessage } from '../../../connectors/contract/connector.ts';
import { connectors } from '../../../connectors/registry.ts';
import { candidatesOf } from '../../../connectors/routing.ts';
import { Batcher } from '../../../shared/batcher.ts';
import { runForApp } from '../../../shared/db/limits/client-pool.ts';
import { isStatementTimeout } from '../../../shared/db/limits/database-errors.ts';
import type { Handle } from '../../../shared/db/pool.ts';
import { type DeviceKind, haveDevices } from '../../../shared/db/tables/audience.ts';
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
import {
  isUnselective,
  Params,
  pointTarget,
  targetCondition,
} from '../../../shared/query/targets/targets.ts';
import { QueueFull } from '../../../shared/semaphore.ts';
import type { ApiDeps } from '../deps.ts';
import { type Kind, keyOf } from './absent-kinds.ts';

/**
 * Time limits of a search and of its wait for a connection. After them, the push is accepted
 * (`findUnserved`).
 */
const searchTimeoutMs = 200;
const searchWaitMs = 100;

/** Maximum number of devices of a kind that are compared with the condition of a push. */
const comparedDevices = 1000;

/** Limits of batches. One statement searches the devices of `size` apps. */
const batchLimits = { size: 100, concurrency: 1, maxWaiting: 1000, maxWaitMs: searchWaitMs };
/**
 * Key under which batches take database connections, where each app has a key. A batch belongs to
 * no app, so its key contains a blank, which app ids do not.
 */
const batchKey = 'device kinds';

/** Kinds of devices that no profile serves. */
interface UnservedGroup {
  kinds: Kind[];
  /** SQL condition that selects these devices among the installations of the kinds. */
  condition: string;
  message: Detail;
}

/** Groups of one app to search for. */
interface SearchRequest {
  appId: string;
  groups: UnservedGroup[];
}

/**
 * Searches the recipients of a push for devices that no profile serves. Most apps have no such
 * device, so an index search is enough. Pushes that arrive together share its statement.
 */
class UnservedDevices {
  readonly #deps: ApiDeps;
  readonly #batcher: Batcher<SearchRequest, UnservedGroup[]>;

  constructor(deps: ApiDeps) {
    this.#deps = deps;
    this.#batcher = new Batcher({
      ...batchLimits,
      fairBy: ({ appId }) => appId,
      run: (requests) => runForApp(batchKey, () => this.#existing(requests)),
    });
  }

  /**
   * Returns the first group that has a device among the recipients of the push. If no index serves
   * the condition, compares at most a thousand devices of each kind. Ends after a fifth of a
   * second. If no device is found within these limits, the push is accepted. Unserved devices are
   * then counted as `failed`, with the text in the record.
   */
  async find(
    app: App,
    pushOrder: PushOrder,
    groups: UnservedGroup[],
  ): Promise<UnservedGroup | undefined> {
    const { absentKinds } = this.#deps;
    const unknown = groups.filter(({ kinds }) =>
      kinds.some((kind) => !absentKinds.has(app.appId, kind)),
    );
    if (unknown.length === 0) return undefined;
    try {
      const existing = await this.#batcher.run({ appId: app.appId, groups: unknown });
      return existing.length === 0 ? undefined : await this.#search(app, pushOrder, existing);
    } catch (error) {
      if (isStatementTimeout(error) || error instanceof QueueFull) return undefined;
      throw error;
    }
  }

  /** Returns the groups of each request that contain any device. */
  async #existing(requests: SearchRequest[]): Promise<UnservedGroup[][]> {
    const kinds = new Map<string, DeviceKind>();
    for (const { appId, groups } of requests)
      for (const kind of groups.flatMap((group) => group.kinds))
        kinds.set(keyOf(appId, kind), { appId, ...kind });
    const found = await this.#deps.admissionDb.transaction(
      (tx) => haveDevices(tx, [...kinds.values()]),
      {
        statementTimeoutMs: searchTimeoutMs,
      },
    );
    const existing = new Set([...kinds.keys()].filter((_, i) => found[i]));
    for (const [key, kind] of kinds)
      if (!existing.has(key)) this.#deps.absentKinds.add(kind.appId, kind);
    return requests.map(({ appId, groups }) =>
      groups.filter((group) => group.kinds.some((kind) => existing.has(keyOf(appId, kind)))),
    );
  }

  async #search(
    app: App,
    pushOrder: PushOrder,
    groups: UnservedGroup[],
  ): Promise<UnservedGroup | undefined> {
    const { queries, clock } = this.#deps;
    const params = new Params();
    const target = targetCondition(app, pushOrder, { params, nowMs: clock.now() });
    const branches = groups.flatMap((group, i) => {
      const condition = `${target} AND ${kindsCondition(group, params)} AND ${group.condition}`;
      return sourcesOf(app, pushOrder, { group, params }).map(
        (source) => `WHEN EXISTS (SELECT FROM ${source} WHERE ${condition}) THEN ${i}`,
      );
    });
    const search = (tx: Handle) =>
      tx.query<{ found: number | null }>(
        `SELECT CASE ${branches.join(' ')} END AS found`,
        params.values,
      );
    const limit = { timeoutMs: searchTimeoutMs, maxWaitMs: searchWaitMs };
    // `isMaster: false` makes the search count against the app's share of client queries, even for
    // the master key.
    const { rows } = await queries.read({ app, isMaster: false }, search, limit);
    const found = rows[0]?.found;
    return typeof found === 'number' ? groups[found] : undefined;
  }
}

/**
 * Returns the tables to search, in order: first some devices of the group, then all devices if an
 * index finds the recipients.
 */
function sourcesOf(
  app: App,
  pushOrder: PushOrder,
  { group, params }: { group: UnservedGroup; params: Params },
): string[] {
  const all = 'installation';
  if (pushOrder.target.kind === 'devices' || pointTarget(app.appId, pushOrder)) return [all];
  const some = someDevices(app, group, params);
  return isUnselective(pushOrder) ? [some] : [some, all];
}

const kindCondition = ({ deviceType, vendor }: Kind, params: Params): string =>
  `device_type = ${params.add(deviceType)}${vendor === null ? '' : ` AND vendor = ${params.add(vendor)}`}`;

const kindsCondition = ({ kinds }: UnservedGroup, params: Params): string =>
  `(${kinds.map((kind) => kindCondition(kind, params)).join(' OR ')})`;

/**
 * Returns a table expression with some devices of each kind. The sort order makes PostgreSQL use
 * the index on the kinds.
 */
function someDevices({ appId }: App, { kinds }: UnservedGroup, params: Params): string {
  const parts = kinds.map(
    (kind) =>
      `(SELECT * FROM installation WHERE app_id = ${params.add(appId)}
        AND ${kindCondition(kind, params)}
         ORDER BY vendor LIMIT ${comparedDevices})`,
  );
  return `(${parts.join(' UNION ALL ')}) AS installation`;
}

/**
 * Finds out whether a push needs a profile that the app does not have
 * (protocol/admin-api.md#missing-profiles, protocol/push.md#profiles).
 */
export class MissingProfiles {
  readonly #deps: ApiDeps;
  readonly #unserved: UnservedDevices;

  constructor(deps: ApiDeps) {
    this.#deps = deps;
    this.#unserved = new UnservedDevices(deps);
  }

  /**
   * Returns the text of the refusal if a device of the push needs a missing profile. Returns
   * undefined otherwise, and always for a redrive or a recall: its devices without a profile fail,
   * each with the reason.
   */
  async find(app: App, pushOrder: PushOrder): Promise<Detail | undefined> {
    if (pushOrder.redrive || pushOrder.recall) return undefined;
    const profiles = await this.#deps.appCache.profiles(app.appId);
    if (pushOrder.liveActivity?.target.kind === 'channel')
      return missingApnsProfile(profiles, pushOrder, '');
    const missing = missingForDevices(profiles, pushOrder);
    if (missing) return missing;
    const group = await this.#unserved.find(
      app,
      pushOrder,
      unservedGroups(app, profiles, pushOrder),
    );
    return group?.message;
  }
}

/**
 * Returns a text if no APNs profile can serve this push. Planning later chooses the profile of each
 * device.
 */
function missingApnsProfile(
  profiles: StoredProfile[],
  pushOrder: PushOrder,
  deviceProfile: string,
): Detail | undefined {
  const apns = connectors.get('apns');
  const message = toPushMessage({
    objectId: '',
    pushOrder,
    expiresAt: new Date(0),
    createdAt: new Date(0),
  });
  const device = { deviceProfile, topic: null, teamId: null };
  const candidates = candidatesOf(profiles).get('apns') ?? [];
  const choice = apns?.choose?.(candidates, device, message);
  // If there are several teams, each installation stores its own team. An ambiguous team then does
  // not mean that a profile is missing.
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
    : detail('noNamedProfile', { vendor: vendorName(connector), name });
}

/** Returns the name of a vendor. FCM has two connector ids, and a profile of either serves it. */
const vendorName = (connector: ConnectorId): string =>
  displayName(labelsOf(connector).find((label) => label === 'fcm') ?? connector);

/** Returns whether the app has a profile of this name under one of the connector's labels. */
function hasProfile(profiles: StoredProfile[], connector: ConnectorId, name: string): boolean {
  const labels: readonly string[] = labelsOf(connector);
  return profiles.some((profile) => labels.includes(profile.connector) && profile.name === name);
}

/** Conditions for devices that name no profile. */
const namesNoProfile = `coalesce(device_profile, '') = ''`;
const usesApns = `device_token IS NOT NULL AND ${namesNoProfile}`;
const usesVendor = `registration_id IS NOT NULL AND ${namesNoProfile}`;

/** HarmonyOS devices belong to Huawei, with or without a vendor. */
const harmonyKinds = harmonyDeviceTypes.map((deviceType) => ({ deviceType, vendor: null }));

/** Browsers, if the app has no profile for Web Push. */
const unservedBrowsers: UnservedGroup = {
  kinds: [{ deviceType: 'web', vendor: 'webpush' }],
  condition: usesVendor,
  message: detail('noVendorProfile', { vendor: displayName('webpush') }),
};

function unservedGroups(
  app: App,
  profiles: StoredProfile[],
  pushOrder: PushOrder,
): UnservedGroup[] {
  const message = missingApnsProfile(profiles, pushOrder, '');
  const kinds = appleDeviceTypes.map((deviceType) => ({ deviceType, vendor: null }));
  // A device with a token of a Live Activity may have no device token.
  const condition = pushOrder.liveActivity ? namesNoProfile : usesApns;
  const groups: UnservedGroup[] = message ? [{ kinds, condition, message }] : [];
  if (pushOrder.liveActivity) return groups;
  if (!hasProfile(profiles, 'webpush', '_default')) groups.push(unservedBrowsers);
  if (!app.options.hybridPush) return groups;
  const missing = vendorIds.filter((vendor) => !hasProfile(profiles, vendor, '_default'));
  return [
    ...groups,
    ...missing.map((vendor) => ({
      kinds: [{ deviceType: 'android', vendor }, ...(vendor === 'vendor_a' ? harmonyKinds : [])],
      condition: usesVendor,
      message: detail('noVendorProfile', { vendor: vendorName(vendor) }),
    })),
  ];
}
