import { type NamedCredentials, toPushMessage } from '../../../connectors/contract/connector.ts';
import { connectors } from '../../../connectors/registry.ts';
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
 * How long the look for devices without a profile may take, and wait for its turn. When it takes longer the push is
 * accepted, and such devices are counted `failed` with the sentence on the record.
 */
const probeTimeoutMs = 200;
const probeWaitMs = 100;

/** Devices of one kind that no profile serves. */
interface UnservedGroup {
  condition: (params: Params) => string;
  message: string;
}

/**
 * A push that needs a profile that is missing is refused at the call (protocol/admin-api.md#missing-profiles,
 * protocol/push.md#profiles). Gives the sentence, or undefined when all is served.
 */
export async function findMissingProfile(
  deps: ApiDeps,
  app: App,
  pushOrder: PushOrder,
): Promise<string | undefined> {
  const profiles = await deps.appCache.profiles(app.appId);
  const listed = pushOrder.target.kind === 'devices' ? missingForDevices(profiles, pushOrder) : undefined;
  if (listed) return listed;
  const groups = unservedGroups(app, profiles, pushOrder);
  return groups.length === 0 ? undefined : findUnserved(deps, app, { pushOrder, groups });
}

function named(profiles: StoredProfile[], connector: ConnectorId): NamedCredentials<unknown>[] {
  const schema = connectors.get(connector)?.credentials;
  return profiles.flatMap((profile) => {
    if (profile.connector !== connector || !schema) return [];
    const parsed = schema.safeParse(profile.credentials);
    return parsed.success ? [{ name: profile.name, credentials: parsed.data }] : [];
  });
}

/** True when some profile of APNs can serve this push at all; which one is decided device by device. */
function apnsProblem(
  profiles: StoredProfile[],
  pushOrder: PushOrder,
  deviceProfile: string,
): string | undefined {
  const apns = connectors.get('apns');
  const message = toPushMessage({ objectId: '', pushOrder, expiresAt: new Date(0), createdAt: new Date(0) });
  const traits = { deviceProfile, topic: null, teamId: null };
  const candidates = named(profiles, 'apns');
  const choice = apns?.choose?.(candidates, traits, message);
  // Teams are told apart by what each installation stored: not knowing which is no hole.
  if (!choice || choice.ok || /several teams/.test(choice.error)) return undefined;
  return `The iOS certificate file is expired or disabled: ${choice.error}.`;
}

function missingForDevices(profiles: StoredProfile[], pushOrder: PushOrder): string | undefined {
  if (pushOrder.target.kind !== 'devices') return undefined;
  const { deviceType, vendor, deviceProfile } = pushOrder.target;
  if (deviceType === 'ios') return apnsProblem(profiles, pushOrder, deviceProfile ?? '');
  const connector = vendor === null ? undefined : requestedConnector(vendor);
  if (!connector || connector === 'channel') return undefined;
  const name = deviceProfile || '_default';
  return has(profiles, connector, name)
    ? undefined
    : `There is no ${displayName(connector)} profile named ${name}.`;
}

/** Whether there is a profile of that name under one of the connector's labels. */
function has(profiles: StoredProfile[], connector: ConnectorId, name: string): boolean {
  const labels: readonly string[] = labelsOf(connector);
  return profiles.some((profile) => labels.includes(profile.connector) && profile.name === name);
}

function unservedGroups(app: App, profiles: StoredProfile[], pushOrder: PushOrder): UnservedGroup[] {
  const groups: UnservedGroup[] = [];
  const problem = apnsProblem(profiles, pushOrder, '');
  if (problem)
    groups.push({
      condition: (params) =>
        `device_type = ANY(${params.add([...appleDeviceTypes])}) AND device_token IS NOT NULL AND coalesce(device_profile, '') = ''`,
      message: problem,
    });
  if (!app.options.hybridPush) return groups;
  for (const vendor of vendorIds) {
    if (has(profiles, vendor, '_default')) continue;
    groups.push({
      condition: (params) =>
        `device_type = 'android' AND vendor = ${params.add(vendor)} AND registration_id IS NOT NULL AND coalesce(device_profile, '') = ''`,
      message: `There is no ${displayName(vendor)} profile named _default, and devices of that vendor need it.`,
    });
  }
  return groups;
}

async function findUnserved(
  { queries, clock }: ApiDeps,
  app: App,
  { pushOrder, groups }: { pushOrder: PushOrder; groups: UnservedGroup[] },
): Promise<string | undefined> {
  const params = new Params();
  const target = targetCondition(app, pushOrder, { params, nowMs: clock.now() });
  const tests = groups.map(
    (group, i) =>
      `WHEN EXISTS (SELECT 1 FROM installation WHERE ${target} AND ${group.condition(params)}) THEN ${i}`,
  );
  try {
    const look = (tx: Handle) =>
      tx.query<{ group: number | null }>(`SELECT CASE ${tests.join(' ')} END AS hole`, params.values);
    const limit = { timeoutMs: probeTimeoutMs, maxWaitMs: probeWaitMs };
    // The condition of a push takes the app's share of client queries, whichever key sent it.
    const { rows } = await queries.read({ app, isMaster: false }, look, limit);
    const found = rows[0]?.group;
    return typeof found === 'number' ? groups[found]?.message : undefined;
  } catch (error) {
    if (isStatementTimeout(error) || error instanceof QueueFull) return undefined;
    throw error;
  }
}
