/** Group of calls in the reference, and tag of the document. */
export interface Area {
  title: string;
  /** Page of docs/reference that lists the calls. */
  page: 'http-api' | 'admin-http-api';
  /** Page of docs/reference/protocol with the rules of these calls. */
  rules: string;
  /**
   * Returns whether a path belongs to the area. The first area that returns true contains the path.
   */
  has(path: string): boolean;
  /** Operations that a reader needs first, in this order. */
  first?: readonly string[];
}

const under =
  (...prefixes: string[]) =>
  (path: string) =>
    prefixes.some((prefix) => path.startsWith(prefix));

/** Matches paths of apps that begin with `/1.1/`. */
const ofApps = (pattern: RegExp) => (path: string) =>
  path.startsWith('/1.1/') && pattern.test(path);

/**
 * Matches paths of the admin API by their first part behind `/console/api` or
 * `/console/api/apps/:appId`.
 */
const ofOperators =
  (...parts: string[]) =>
  (path: string) =>
    parts.includes(/^\/console\/(?:api\/)?(?:apps\/:appId\/)?([^/]+)/.exec(path)?.[1] ?? '');

/** Areas in the order of the reference: calls of apps, then calls of operators. */
export const areas: readonly Area[] = [
  {
    title: 'Pushes',
    page: 'http-api',
    rules: 'push',
    has: under('/1.1/push', '/1.1/notifications', '/1.1/scheduledPush'),
    first: ['sendPush', 'sendPushToDevices', 'getPush', 'listPushes', 'deletePush'],
  },
  {
    title: 'Installations',
    page: 'http-api',
    rules: 'installations',
    has: under('/1.1/installations', '/1.1/webpush'),
  },
  {
    title: 'Live Activities',
    page: 'http-api',
    rules: 'live-activities',
    has: under('/1.1/liveActivities'),
    first: ['reportLiveActivityToken', 'startLiveActivity', 'changeLiveActivity'],
  },
  {
    title: 'Users and sessions',
    page: 'http-api',
    rules: 'users',
    has: under('/1.1/users', '/1.1/login'),
    first: ['signUp', 'login', 'signInByPhone', 'getOwnUser', 'getUser', 'updateUser', 'listUsers'],
  },
  {
    title: 'Codes, phones and mail',
    page: 'http-api',
    rules: 'codes',
    has: ofApps(/sms|phone|mail|password|captcha/i),
    first: ['requestSmsCode', 'verifySmsCode'],
  },
  { title: 'Roles', page: 'http-api', rules: 'roles', has: under('/1.1/roles') },
  {
    title: 'Cloud functions',
    page: 'http-api',
    rules: 'functions',
    has: under('/1.1/functions', '/1.1/call'),
  },
  { title: 'Queries, batches and others', page: 'http-api', rules: 'queries', has: under('/1.1/') },
  {
    title: 'Routers, receipts and health',
    page: 'http-api',
    rules: 'channel',
    has: (path) => !path.startsWith('/console/'),
  },
  {
    title: 'Admin: apps',
    page: 'admin-http-api',
    rules: 'admin-api',
    // The calls of an app itself end with its id.
    has: (path) =>
      /^\/console\/api\/apps(\/:appId)?$/.test(path) ||
      ofOperators('keys', 'move-in', 'usage', 'reports')(path),
  },
  {
    title: 'Admin: gateways',
    page: 'admin-http-api',
    rules: 'admin-api',
    has: ofOperators('profiles', 'breakers', 'quotas', 'failed-receipts'),
    first: ['putProfile', 'getProfile', 'checkProfile', 'listProfiles', 'deleteProfile'],
  },
  {
    title: 'Admin: sending',
    page: 'admin-http-api',
    rules: 'admin-api',
    has: ofOperators('push', 'audience', 'scheduled', 'fields', 'channels', 'liveActivities'),
    first: ['explainPush', 'sendAppPush'],
  },
  {
    title: 'Admin: pushes',
    page: 'admin-http-api',
    rules: 'admin-api',
    has: ofOperators('notifications', 'undelivered', 'freeze', 'freezes'),
    first: ['listAppPushes', 'getAppPush', 'getPushProgress', 'cancelPush', 'explainDevice'],
  },
  {
    title: 'Admin: recurring pushes',
    page: 'admin-http-api',
    rules: 'admin-api',
    has: ofOperators('recurring-pushes'),
    first: ['createRecurringPush'],
  },
  {
    title: 'Admin: saved items',
    page: 'admin-http-api',
    rules: 'admin-api',
    has: ofOperators('push-templates', 'audiences', 'test-devices'),
  },
  {
    title: 'Admin: devices',
    page: 'admin-http-api',
    rules: 'admin-api',
    has: ofOperators('installations'),
  },
  { title: 'Admin: users', page: 'admin-http-api', rules: 'admin-api', has: ofOperators('users') },
  {
    title: 'Admin: mail and SMS',
    page: 'admin-http-api',
    rules: 'admin-api',
    has: ofOperators('outbox', 'sms-state', 'sms-templates', 'sms-signatures', 'captchas'),
    first: ['listOutbox'],
  },
  {
    title: 'Admin: webhooks',
    page: 'admin-http-api',
    rules: 'admin-api',
    has: ofOperators('webhooks'),
    first: ['putWebhook'],
  },
  {
    title: 'Admin: access',
    page: 'admin-http-api',
    rules: 'admin-api',
    has: ofOperators(
      ...['tokens', 'session', 'sessions', 'login-methods', 'login-links', 'audit', 'oidc'],
    ),
    first: ['createConsoleToken', 'listConsoleTokens', 'deleteConsoleToken', 'listAudit'],
  },
  {
    title: 'Admin: service',
    page: 'admin-http-api',
    rules: 'admin-api',
    has: under('/console/'),
    first: ['runDoctor', 'getOverview'],
  },
];

/** The parts of a route that decide its place in the reference. */
interface Placed {
  operation: string;
  paths: readonly string[];
}

/** Returns the area of a route's first path. */
export function areaOf({ paths }: Pick<Placed, 'paths'>): Area {
  const [path = ''] = paths;
  const area = areas.find(({ has }) => has(path));
  if (!area) throw new Error(`no area has ${path}`);
  return area;
}

/** Returns the routes of an area: `first` in its order, then the others in their order. */
export function routesOf<R extends Placed>(area: Area, routes: readonly R[]): R[] {
  const { first = [] } = area;
  const rank = ({ operation }: Placed) => {
    const at = first.indexOf(operation);
    return at === -1 ? first.length : at;
  };
  return routes.filter((route) => areaOf(route) === area).sort((a, b) => rank(a) - rank(b));
}
