import { z } from 'zod';
import { inspectCredentials } from '../../../../connectors/registry.ts';
import { Router } from '../../../../connectors/routing.ts';
import { openProfile, type StoredProfile } from '../../../../shared/db/tables/apps/profiles.ts';
import { countAudience } from '../../../../shared/db/tables/installations/audience.ts';
import { viewCredentials } from '../../../../shared/domain/admin/credential-view.ts';
import { meaningOf } from '../../../../shared/domain/admin/reasons/meaning.ts';
import type { App } from '../../../../shared/domain/apps/app.ts';
import type { ConnectorId } from '../../../../shared/domain/labels.ts';
import type { ApiDeps } from '../../deps.ts';
import { requireApp } from '../apps.ts';
import { plainPush } from '../devices/plain-push.ts';
import { connectorOf, noSuchProfile, type ProfileId } from './profiles.ts';

/** Devices whose route is looked at, the newest ones. */
const maxRouted = 100_000;

const credentialObject = z.record(z.string(), z.json()).catch({});
const environments = z.object({ environment: z.literal('dev') });

/** Profile with its decrypted credentials. */
interface OpenedProfile {
  id: ConnectorId;
  profile: StoredProfile & { createdAt: Date };
}

/** Shows a push profile without its secrets (protocol/admin-api.md#profiles). */
export class ProfileDetailService {
  readonly #deps: ApiDeps;

  constructor(deps: ApiDeps) {
    this.#deps = deps;
  }

  /** Throws 404 when there is no such app, connector or profile. */
  async get({ appId, connector, name }: ProfileId) {
    const { clock } = this.#deps;
    const app = await requireApp(this.#deps, appId);
    const { profile, id } = await this.open({ appId, connector, name });
    const { kind, expiresAtMs, problems } = inspectCredentials(id, profile.credentials, clock.now());
    return {
      connector: id,
      name,
      createdAt: profile.createdAt,
      updatedAt: profile.updatedAt,
      kind,
      ...viewCredentials(credentialObject.parse(profile.credentials)),
      notAfter: expiresAtMs === null ? null : new Date(expiresAtMs),
      ...(await this.#countServed(app, { connector: id, profile })),
      findings: problems,
      meanings: problems.map(meaningOf),
    };
  }

  /** Returns a profile with its decrypted credentials. Throws 404 when there is no such connector or profile. */
  async open({ appId, connector, name }: ProfileId): Promise<OpenedProfile> {
    const id = connectorOf(connector);
    // PostgreSQL refuses NUL, so no profile has such a name.
    if (name.includes('\0')) noSuchProfile();
    const { db, vault } = this.#deps;
    return { id, profile: (await openProfile(db, vault, { appId, connector: id, name })) ?? noSuchProfile() };
  }

  /** Counts the devices that a push of the profile's environment would reach by it. */
  async #countServed(
    app: App,
    { connector, profile }: { connector: ConnectorId; profile: StoredProfile },
  ): Promise<{ devices: number; devicesAreLeast?: true }> {
    const { appCache, clock, queries } = this.#deps;
    const profiles = await appCache.profiles(app.appId);
    const prod = environments.safeParse(profile.credentials).success ? 'dev' : 'prod';
    const router = new Router(app, profiles, plainPush(clock.now(), prod));
    const condition = {
      text: `app_id = $1 AND id IN (SELECT id FROM installation WHERE app_id = $1 ORDER BY id DESC LIMIT ${maxRouted + 1})`,
      values: [app.appId],
    };
    const found = await queries.read({ app, isMaster: true }, (tx) => countAudience(tx, condition));
    let devices = 0;
    for (const group of found.groups) {
      const route = router.route(group);
      const isServed =
        route.connector === connector && route.profile === profile.name && route.error === undefined;
      if (isServed) devices += group.devices;
    }
    return found.devices > maxRouted ? { devices, devicesAreLeast: true } : { devices };
  }
}
