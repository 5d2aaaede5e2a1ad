import type { App } from '../shared/domain/apps/app.ts';
import type { RoutingKey } from '../shared/domain/installations/installation.ts';
import {
  type ConnectorId,
  isAppleDeviceType,
  isConnectorId,
  labelsOf,
  needsHybridPush,
  requestedConnector,
  vendorOfDevice,
} from '../shared/domain/labels.ts';
import { originalTarget } from '../shared/domain/pushes/push.ts';
import { reason } from '../shared/domain/reasons.ts';
import {
  type MassLimit,
  type MessageSource,
  type NamedCredentials,
  type ProfileChoice,
  toPushMessage,
} from './contract/connector.ts';
import type { ProfileClasses } from './contract/message-class.ts';
import { connectors } from './registry.ts';

/** Push profile as stored, with decrypted credentials. */
export interface Profile {
  connector: string;
  name: string;
  credentials: unknown;
  /** Members of the vendor by message class. Null or absent if the profile has none. */
  messageClasses?: ProfileClasses | null;
}

/**
 * Returns `messageClasses` of a profile; undefined if the profile does not exist or has none. The
 * labels of one gateway are separate.
 */
export const classesOf = (
  profiles: readonly Profile[],
  connector: string,
  name: string,
): ProfileClasses | undefined =>
  profiles.find((profile) => profile.connector === connector && profile.name === name)
    ?.messageClasses ?? undefined;

/** Profiles that can serve devices, by connector. */
type Candidates = ReadonlyMap<ConnectorId, NamedCredentials<unknown>[]>;

/**
 * Caches the candidates of a list of profiles. Checking credentials takes longer than planning a
 * push, and the app cache keeps a list for many pushes.
 */
const checkedLists = new WeakMap<readonly Profile[], Candidates>();

/** Returns the profiles whose connector exists and whose credentials match its schema. */
export function candidatesOf(profiles: readonly Profile[]): Candidates {
  const checked = checkedLists.get(profiles);
  if (checked) return checked;
  const candidates = new Map<ConnectorId, NamedCredentials<unknown>[]>();
  for (const profile of profiles) {
    const candidate = readCredentials(profile);
    if (!candidate || !isConnectorId(profile.connector)) continue;
    const existing = candidates.get(profile.connector) ?? [];
    candidates.set(profile.connector, [...existing, candidate]);
  }
  checkedLists.set(profiles, candidates);
  return candidates;
}

/**
 * Returns the checked credentials of a profile. Returns undefined if the connector is unknown or
 * the credentials do not match its schema. `carillon doctor` reports both.
 */
export function readCredentials(profile: Profile): NamedCredentials<unknown> | undefined {
  const schema = isConnectorId(profile.connector)
    ? connectors.get(profile.connector)?.credentials
    : undefined;
  const parsed = schema?.safeParse(profile.credentials);
  return parsed?.success ? { name: profile.name, credentials: parsed.data } : undefined;
}

const noDeviceToken = reason('noDeviceToken');
const noInstallationId = reason('noInstallationId');

/**
 * Connector and profile that serve a device. `error` is the stored reason why the device cannot be
 * served.
 */
export interface Route {
  connector: ConnectorId;
  profile: string;
  error?: string;
}

/**
 * Decides which connector and profile serve a device (protocol/push.md#hybrid-push,
 * protocol/push.md#credentials-for-ios). Devices with the same routing key share a cached decision,
 * because a push to millions of devices has few different routing keys.
 */
export class Router {
  readonly #app: App;
  readonly #push: MessageSource;
  readonly #candidates: Candidates;
  readonly #routes = new Map<string, Route>();

  constructor(app: App, profiles: Profile[], push: MessageSource) {
    this.#app = app;
    this.#push = push;
    this.#candidates = candidatesOf(profiles);
  }

  /** Returns the profiles of this app that limit the number of devices per push. */
  massLimits(): (MassLimit & { connector: ConnectorId; profile: string })[] {
    const message = toPushMessage(this.#push);
    return [...this.#candidates].flatMap(([connector, candidates]) =>
      candidates.flatMap(({ name, credentials }) => {
        const limit = connectors.get(connector)?.massLimit?.(credentials, message);
        return limit ? [{ ...limit, connector, profile: name }] : [];
      }),
    );
  }

  /**
   * Returns the route of all devices with a routing key. Calls `read` to parse the key only if the
   * route is not cached.
   */
  routeOf(key: string, read: (key: string) => RoutingKey): Route {
    const cached = this.#routes.get(key);
    if (cached) return cached;
    const route = this.route(read(key));
    this.#routes.set(key, route);
    return route;
  }

  /** Decides the route of a device. */
  route(target: RoutingKey): Route {
    const connector = this.#connectorOf(target);
    if (connector === 'channel') return this.#deviceChannel(target);
    if (connector === 'apns' && !target.has_token && !this.#push.pushOrder.liveActivity)
      return { connector, profile: '', error: noDeviceToken };
    let error = '';
    for (const label of labelsOf(connector)) {
      const choice = this.#choose(label, target);
      if (choice.ok) return { connector: label, profile: choice.profile };
      error ||= choice.error;
    }
    return { connector, profile: '', error };
  }

  #connectorOf(target: RoutingKey): ConnectorId {
    const listed = originalTarget(this.#push.pushOrder);
    if (listed.kind === 'devices' && listed.vendor !== null)
      return requestedConnector(listed.vendor) ?? 'channel';
    // Only Apple's devices report tokens of Live Activities.
    if (this.#push.pushOrder.liveActivity || isAppleDeviceType(target.device_type)) return 'apns';
    const vendor = vendorOfDevice(target.device_type, target.vendor);
    if (!target.has_registration || vendor === null) return 'channel';
    const requested = requestedConnector(vendor) ?? 'channel';
    return this.#app.options.hybridPush || !needsHybridPush(requested) ? requested : 'channel';
  }

  #deviceChannel(target: RoutingKey): Route {
    const route = { connector: 'channel', profile: target.device_type } as const;
    return target.has_installation_id ? route : { ...route, error: noInstallationId };
  }

  #choose(connectorId: ConnectorId, target: RoutingKey): ProfileChoice {
    const connector = connectors.get(connectorId);
    if (!connector)
      return { ok: false, error: reason('notOnThisServer', { connector: connectorId }) };
    const listed = originalTarget(this.#push.pushOrder);
    const requested = listed.kind === 'devices' ? listed.deviceProfile : null;
    const deviceProfile = requested ?? target.device_profile ?? '';
    const candidates = this.#candidates.get(connectorId) ?? [];
    if (connector.choose) {
      const criteria = { deviceProfile, topic: target.topic, teamId: target.team_id };
      return connector.choose(candidates, criteria, toPushMessage(this.#push));
    }
    const name = deviceProfile || '_default';
    if (candidates.some((candidate) => candidate.name === name)) return { ok: true, profile: name };
    return {
      ok: false,
      error: reason('noProfileNamed', { connector: connectorId, profile: name }),
    };
  }
}
