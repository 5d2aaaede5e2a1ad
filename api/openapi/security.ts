import type { JsonObject } from '../../shared/domain/json.ts';
import type { Route } from '../route.ts';

const header = (name: string, description: string): JsonObject => ({
  type: 'apiKey',
  in: 'header',
  name,
  description,
});

/** Ways to prove who calls. */
export const securitySchemes = {
  appId: header('X-LC-Id', 'Id of the app. Every call of an app sends it beside a key or a signature.'),
  appKey: header('X-LC-Key', 'App key.'),
  masterKey: header('X-LC-Key', 'Master key, with `,master` behind it.'),
  signature: header(
    'X-LC-Sign',
    'Signature in place of a key: `<md5 of timestamp and key in hex>,<timestamp in ms>`, and `,master` with the master key.',
  ),
  session: header('X-LC-Session', 'Session token of a user.'),
  adminToken: {
    type: 'http',
    scheme: 'bearer',
    description: 'CARILLON_ADMIN_TOKEN, or a token of `POST /console/api/tokens`.',
  },
  consoleSession: {
    type: 'apiKey',
    in: 'cookie',
    name: 'carillon',
    description: 'Session of the console; `__Host-carillon` where PUBLIC_URL is https.',
  },
  metricsToken: { type: 'http', scheme: 'bearer', description: 'METRICS_TOKEN, where it is set.' },
} as const satisfies JsonObject;

type SchemeName = keyof typeof securitySchemes;

/** Schemes that a call needs together; several sets are alternatives. */
const sets = (...alternatives: SchemeName[][]): JsonObject[] =>
  alternatives.map((names) => Object.fromEntries(names.map((name) => [name, []])));

/** Returns the credentials of a route. The secret of a receipt address is part of its path. */
export function securityOf({ auth, session, paths }: Route): JsonObject[] {
  if (paths.includes('/metrics')) return sets([], ['metricsToken']);
  switch (auth) {
    case 'none':
    case 'login':
      return [];
    case 'admin':
      return sets(['adminToken'], ['consoleSession']);
    case 'master':
    case 'scan':
      return sets(['appId', 'masterKey'], ['appId', 'signature']);
    default:
      return ofApp(session);
  }
}

function ofApp(session: Route['session']): JsonObject[] {
  const keys: SchemeName[][] = [
    ['appId', 'appKey'],
    ['appId', 'masterKey'],
    ['appId', 'signature'],
  ];
  if (session === undefined) return sets(...keys);
  const withSession = keys.map((names): SchemeName[] => [...names, 'session']);
  const needed: SchemeName[][] = [['appId', 'masterKey'], ...withSession];
  return session === 'required' ? sets(...needed) : sets(...keys, ...withSession);
}
