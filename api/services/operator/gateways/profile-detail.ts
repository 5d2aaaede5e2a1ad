import { z } from 'zod';
import { listProfiles, openProfile, type StoredProfile } from '../../../../shared/db/tables/profiles.ts';
import { viewCredentials } from '../../../../shared/domain/admin/credential-view.ts';
import { meaningOf } from '../../../../shared/domain/admin/reasons/meaning.ts';
import type { App } from '../../../../shared/domain/apps/app.ts';
import type { RotationState } from '../../../../shared/domain/apps/canary.ts';
import { jsonObject } from '../../../../shared/domain/json-schema.ts';
import type { ConnectorId } from '../../../../shared/domain/labels.ts';
import { reasonText } from '../../../../shared/domain/reasons.ts';
import type { ApiDeps } from '../../deps.ts';
import { requireApp } from '../apps.ts';
import { inspectProfile } from './profile-problems.ts';
import { connectorOf, noSuchProfile, type ProfileId } from './profiles.ts';
import { type RoutedDevices, routeDevices } from './served-devices.ts';

const credentialObject = jsonObject.catch({});
const environments = z.object({ environment: z.literal('dev') });

/** Profile with its decrypted credentials. */
interface OpenedProfile {
  id: ConnectorId;
  profile: StoredProfile & { createdAt: Date; rotation: RotationState | null };
}

/** Shows a push profile without its secrets (protocol/admin-api.md#profiles). */
export class ProfileDetailService {
  readonly #deps: ApiDeps;

  constructor(deps: ApiDeps) {
    this.#deps = deps;
  }

  /** Throws 404 when there is no such app, connector or profile. */
  async get({ appId, connector, name }: ProfileId) {
    const app = await requireApp(this.#deps, appId);
    const opened = await this.open({ appId, connector, name });
    return this.#describe(app, opened, await routeDevices(this.#deps, app));
  }

  /** Shows all profiles of an app; reads its devices once. Throws 404 when there is no such app. */
  async list(appId: string) {
    const app = await requireApp(this.#deps, appId);
    const entries = await listProfiles(this.#deps.db, appId);
    if (entries.length === 0) return [];
    const routed = await routeDevices(this.#deps, app);
    const opened = await Promise.all(
      // A profile may be deleted in this time.
      entries.map(({ connector, name }) => this.#find({ appId, connector, name })),
    );
    return opened.flatMap((one) => (one ? [this.#describe(app, one, routed)] : []));
  }

  /** Returns a profile with its decrypted credentials. Throws 404 when there is no such connector or profile. */
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
    const { name, createdAt, updatedAt, rotation } = profile;
    return {
      ...{ connector: id, name, createdAt, updatedAt, kind },
      ...viewCredentials(credentialObject.parse(profile.credentials)),
      notAfter: expiresAtMs === null ? null : new Date(expiresAtMs),
      ...servedBy({ id, profile }, routed),
      findings: problems.map(reasonText),
      meanings: problems.map(meaningOf),
      rotation,
    };
  }
}

/** Counts the devices that a push of the profile's environment would reach by it. */
function servedBy(
  { id, profile }: OpenedProfile,
  { routes, areLeast }: RoutedDevices,
): { devices: number; devicesAreLeast?: true } {
  const prod = environments.safeParse(profile.credentials).success ? 'dev' : 'prod';
  const own = routes(prod).find(
    ({ connector, profile: name, error }) => connector === id && name === profile.name && error === undefined,
  );
  const devices = own?.devices ?? 0;
  return areLeast ? { devices, devicesAreLeast: true } : { devices };
}
