import { z } from 'zod';
import { connectors, inspectCredentials } from '../../../../connectors/registry.ts';
import { type Route, Router } from '../../../../connectors/routing.ts';
import { countAudience } from '../../../../shared/db/tables/audience.ts';
import {
  listProfiles,
  openProfile,
  type StoredProfile,
} from '../../../../shared/db/tables/profiles.ts';
import { viewCredentials } from '../../../../shared/domain/admin/credential-view.ts';
import { meaningOf } from '../../../../shared/domain/admin/reasons/meaning.ts';
import type { App, AppOptions } from '../../../../shared/domain/apps/app.ts';
import type { RotationState } from '../../../../shared/domain/apps/canary.ts';
import { jsonObject } from '../../../../shared/domain/json-schema.ts';
import { type ConnectorId, needsHybridPush } from '../../../../shared/domain/labels.ts';
import { reason, reasonText } from '../../../../shared/domain/reasons.ts';
import { callbackUrl } from '../../../../shared/http/outbound-addresses.ts';
import type { ApiDeps } from '../../deps.ts';
import { requireApp } from '../apps.ts';
import { plainPush } from '../devices/devices.ts';
import { connectorOf, noSuchProfile, type ProfileId, shownProfile } from './profiles.ts';

/**
 * Returns whether a connector's credentials have no effect because its devices get pushes by the
 * device channel.
 */
const isHybridOff = (
  connector: ConnectorId,
  { hybridPush }: Pick<AppOptions, 'hybridPush'>,
): boolean => !hybridPush && needsHybridPush(connector);

/**
 * Checks the credentials of a profile, and whether the options of its app let any device use them.
 */
export function inspectProfile(
  { connector, credentials }: { connector: ConnectorId; credentials: unknown },
  options: Pick<AppOptions, 'hybridPush'>,
  nowMs: number,
) {
  const found = inspectCredentials(connector, credentials, nowMs);
  if (!isHybridOff(connector, options)) return found;
  return { ...found, problems: [...found.problems, reason('hybridOff')] };
}

/** Maximum number of devices that are routed, newest first. */
const maxRouted = 100_000;

type Environment = 'prod' | 'dev';

/** Route, with the number of devices that a push would reach by it. */
export interface ServedDevices extends Route {
  devices: number;
}

interface RoutedDevices {
  /** Returns the routes of a push in an environment, most devices first. */
  routes: (prod: Environment) => ServedDevices[];
  /** True if the app has more devices than were counted. */
  areLeast: boolean;
}

/**
 * Reads the devices of an app once and groups them by the profiles through which pushes would reach
 * them. Throws error 124 after a timeout.
 */
export async function routeDevices(
  { appCache, clock, queries }: Pick<ApiDeps, 'appCache' | 'clock' | 'queries'>,
  app: App,
): Promise<RoutedDevices> {
  const profiles = await appCache.profiles(app.appId);
  const condition = {
    text: `app_id = $1 AND id IN (SELECT id FROM installation WHERE app_id = $1 ORDER BY id DESC
      LIMIT ${maxRouted + 1})`,
    values: [app.appId],
  };
  const found = await queries.read({ app, isMaster: true }, (tx) => countAudience(tx, condition));
  const routes = (prod: Environment): ServedDevices[] => {
    const router = new Router(app, profiles, plainPush(clock.now(), prod));
    const served = new Map<string, ServedDevices>();
    for (const group of found.groups) {
      const route = router.route(group);
      const key = JSON.stringify([route.connector, route.profile, route.error]);
      const existing = served.get(key);
      if (existing) existing.devices += group.devices;
      else served.set(key, { ...route, devices: group.devices });
    }
    return [...served.values()].sort((a, b) => b.devices - a.devices);
  };
  return { routes, areLeast: found.devices > maxRouted };
}

const credentialObject = jsonObject.catch({});
const environments = z.object({ environment: z.literal('dev') });

/** Profile with its decrypted credentials. */
interface OpenedProfile {
  id: ConnectorId;
  profile: StoredProfile & { createdAt: Date; rotation: RotationState | null };
}

/** Returns push profiles without their secrets (protocol/admin-api.md#profiles). */
export class ProfileDetailService {
  readonly #deps: ApiDeps;

  constructor(deps: ApiDeps) {
    this.#deps = deps;
  }

  /** Returns a profile. Throws error 404 if the app, connector or profile does not exist. */
  async get({ appId, connector, name }: ProfileId) {
    const app = await requireApp(this.#deps, appId);
    const opened = await this.open({ appId, connector, name });
    return this.#describe(app, opened, await routeDevices(this.#deps, app));
  }

  /**
   * Returns all profiles of an app. Reads its devices once. Throws error 404 if the app does not
   * exist.
   */
  async list(appId: string) {
    const app = await requireApp(this.#deps, appId);
    const entries = await listProfiles(this.#deps.db, appId);
    if (entries.length === 0) return [];
    const routed = await routeDevices(this.#deps, app);
    const opened = await Promise.all(
      // A profile may be deleted in the meantime.
      entries.map(({ connector, name }) => this.#find({ appId, connector, name })),
    );
    return opened.flatMap((one) => (one ? [this.#describe(app, one, routed)] : []));
  }

  /**
   * Returns a profile with its decrypted credentials. Throws error 404 if the connector or profile
   * does not exist.
   */
  async open(id: ProfileId): Promise<OpenedProfile> {
    return (await this.#find(id)) ?? noSuchProfile();
  }

  async #find({ appId, connector, name }: ProfileId): Promise<OpenedProfile | undefined> {
    const id = connectorOf(connector);
    // PostgreSQL refuses NUL, so no profile has such a name.
    if (name.includes('\0')) return undefined;
    const { db, vault } = this.#deps;
    const profile = await openProfile(db, vault, { appId, connector: id, name });
    return profile && { id, profile };
  }

  #describe(app: App, { id, profile }: OpenedProfile, routed: RoutedDevices) {
    const { kind, expiresAtMs, problems } = inspectProfile(
      { connector: id, credentials: profile.credentials },
      app.options,
      this.#deps.clock.now(),
    );
    const { name, createdAt, messageClasses, updatedAt, rotation } = profile;
    return {
      ...shownProfile({ connector: id, name, createdAt, updatedAt, messageClasses }),
      connector: id,
      kind,
      ...viewCredentials(credentialObject.parse(profile.credentials)),
      notAfter: expiresAtMs === null ? null : new Date(expiresAtMs),
      ...servedBy({ id, profile }, routed),
      findings: problems.map(reasonText),
      meanings: problems.map(meaningOf),
      rotation,
      receiptUrl: this.#receiptUrl(app, id),
    };
  }

  /**
   * Returns the address for the receipts of a gateway. Some vendors send receipts only to an
   * address that was registered on their site. The address contains a secret.
   */
  #receiptUrl({ appId, options }: App, connector: ConnectorId): string | null {
    if (!connectors.get(connector)?.receipts) return null;
    const { config, vault } = this.#deps;
    const generation = options.receiptUrlGeneration;
    return callbackUrl(config.publicUrl, vault, { connector, appId, generation });
  }
}

/** Counts the devices that a push in the profile's environment would reach through the profile. */
function servedBy(
  { id, profile }: OpenedProfile,
  { routes, areLeast }: RoutedDevices,
): { devices: number; devicesAreLeast?: true } {
  const prod = environments.safeParse(profile.credentials).success ? 'dev' : 'prod';
  const own = routes(prod).find(
    ({ connector, profile: name, error }) =>
      connector === id && name === profile.name && error === undefined,
  );
  const devices = own?.devices ?? 0;
  return areLeast ? { devices, devicesAreLeast: true } : { devices };
}
