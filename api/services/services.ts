import { AppService } from './apps.ts';
import { HealthService } from './health.ts';
import type { Means } from './means.ts';

/** What routes can call, one member per noun. */
export function createServices(means: Means) {
  return {
    directory: means.directory,
    apps: new AppService(means),
    health: new HealthService(means),
  };
}

export type Services = ReturnType<typeof createServices>;
