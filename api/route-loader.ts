import { readdir } from 'node:fs/promises';
import { z } from 'zod';
import { operatorRoles } from '../shared/domain/admin/operator.ts';
import { moduleUrl } from '../shared/process/module-url.ts';
import type { Route } from './route.ts';

const routeModule = z.object({ default: z.array(z.custom<Route>((value) => isRoute(value))) });

function isRoute(value: unknown): boolean {
  return (
    typeof value === 'object' &&
    value !== null &&
    'paths' in value &&
    'run' in value &&
    hasLimit(value) &&
    hasRole(value)
  );
}

/**
 * Returns whether a route declares its body limit. Without a limit, the route would read bodies of
 * any size.
 */
function hasLimit(value: object): boolean {
  const limit = 'limit' in value ? value.limit : undefined;
  return (
    typeof limit === 'object' &&
    limit !== null &&
    'bodyBytesBelow' in limit &&
    isBytes(limit.bodyBytesBelow)
  );
}

/**
 * Returns whether a route of the admin API declares a role. Without a role, every token could call
 * it.
 */
const hasRole = (value: object): boolean =>
  !('auth' in value && value.auth === 'admin') ||
  ('role' in value && operatorRoles.some((role) => role === value.role));

const isBytes = (value: unknown): boolean => Number.isInteger(value) && Number(value) >= 0;

/** Loads the routes of every file in a folder, so that a new endpoint needs no entry in a list. */
export async function loadRoutes(
  folder: URL = new URL('./routes/', import.meta.url),
): Promise<Route[]> {
  const names = await readdir(folder, { recursive: true });
  const files = names.filter((name) => /\.[jt]s$/.test(name)).sort();
  const urls = files.map((name) => new URL(name, folder).href);
  const modules = await Promise.all(urls.map((url) => import(moduleUrl(url, url).href)));
  return modules.flatMap((module, i) => {
    const parsed = routeModule.safeParse(module);
    if (!parsed.success)
      throw new Error(
        `api/routes/${files[i]} has no default export that is a list of routes with limits and roles`,
      );
    return parsed.data.default;
  });
}
