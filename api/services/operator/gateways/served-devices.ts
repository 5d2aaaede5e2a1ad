import { type Route, Router } from '../../../../connectors/routing.ts';
import { countAudience } from '../../../../shared/db/tables/audience.ts';
import type { App } from '../../../../shared/domain/apps/app.ts';
import type { ApiDeps } from '../../deps.ts';
import { plainPush } from '../devices/plain-push.ts';

/** Devices whose route is looked at, the newest ones. */
const maxRouted = 100_000;

export type Environment = 'prod' | 'dev';

/** Route with the number of devices that a push would reach by it. */
export interface ServedDevices extends Route {
  devices: number;
}

export interface RoutedDevices {
  /** Routes of a push in an environment, the most devices first. */
  routes: (prod: Environment) => ServedDevices[];
  /** Whether the app has more devices than were looked at. */
  areLeast: boolean;
}

/** Reads the devices of an app once, and tells by which profiles pushes would reach them. Throws 124. */
export async function routeDevices(
  { appCache, clock, queries }: Pick<ApiDeps, 'appCache' | 'clock' | 'queries'>,
  app: App,
): Promise<RoutedDevices> {
  const profiles = await appCache.profiles(app.appId);
  const condition = {
    text: `app_id = $1 AND id IN (SELECT id FROM installation WHERE app_id = $1 ORDER BY id DESC LIMIT ${maxRouted + 1})`,
    values: [app.appId],
  };
  const found = await queries.read({ app, isMaster: true }, (tx) => countAudience(tx, condition));
  const routes = (prod: Environment): ServedDevices[] => {
    const router = new Router(app, profiles, plainPush(clock.now(), prod));
    const served = new Map<string, ServedDevices>();
    for (const group of found.groups) {
      const route = router.route(group);
      const key = JSON.stringify([route.connector, route.profile, route.error]);
      const known = served.get(key);
      if (known) known.devices += group.devices;
      else served.set(key, { ...route, devices: group.devices });
    }
    return [...served.values()].sort((a, b) => b.devices - a.devices);
  };
  return { routes, areLeast: found.devices > maxRouted };
}
