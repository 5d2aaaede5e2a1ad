import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  redirect,
} from '@tanstack/react-router';
import { Home } from './pages/home/home.tsx';
import { loadPage, Missing, PageFailure } from './pages/missing.tsx';
import { Shell } from './pages/shell/shell.tsx';
import {
  readAppFilters,
  readAuditFilters,
  readCompareSearch,
  readComposeSearch,
  readDeviceFilters,
  readMessageSearch,
  readOperatingSearch,
  readPeopleSearch,
  readPushFilters,
  readPushSearch,
  readQuotaSearch,
  readScheduledSearch,
  readSettingsSearch,
  readUndeliveredSearch,
  readUsageSearch,
  readUserFilters,
} from './search.ts';

const root = createRootRoute({ component: Shell, notFoundComponent: Missing });

const home = createRoute({
  getParentRoute: () => root,
  path: '/',
  validateSearch: readAppFilters,
  component: Home,
});
const login = createRoute({
  getParentRoute: () => root,
  path: '/login',
  beforeLoad: () => {
    throw redirect({ to: '/' });
  },
});
const app = createRoute({ getParentRoute: () => root, path: '/apps/$appId' });
const overview = createRoute({
  getParentRoute: () => app,
  path: '/',
  component: lazyRouteComponent(
    () => loadPage(() => import('./pages/overview/overview.tsx')),
    'Overview',
  ),
});
const pushes = createRoute({
  getParentRoute: () => app,
  path: '/pushes',
  validateSearch: readPushFilters,
  component: lazyRouteComponent(
    () => loadPage(() => import('./pages/pushes/pushes.tsx')),
    'Pushes',
  ),
});
const compose = createRoute({
  getParentRoute: () => app,
  path: '/pushes/new',
  validateSearch: readComposeSearch,
  component: lazyRouteComponent(
    () => loadPage(() => import('./pages/compose/compose.tsx')),
    'Compose',
  ),
});
const scheduled = createRoute({
  getParentRoute: () => app,
  path: '/pushes/scheduled',
  validateSearch: readScheduledSearch,
  component: lazyRouteComponent(
    () => loadPage(() => import('./pages/pushes/scheduled.tsx')),
    'Scheduled',
  ),
});
const undelivered = createRoute({
  getParentRoute: () => app,
  path: '/pushes/undelivered',
  validateSearch: readUndeliveredSearch,
  component: lazyRouteComponent(
    () => loadPage(() => import('./pages/pushes/undelivered.tsx')),
    'Undelivered',
  ),
});
const recurring = createRoute({
  getParentRoute: () => app,
  path: '/pushes/recurring',
  component: lazyRouteComponent(
    () => loadPage(() => import('./pages/recurring/recurring.tsx')),
    'Recurring',
  ),
});
const liveActivities = createRoute({
  getParentRoute: () => app,
  path: '/pushes/live-activities',
  component: lazyRouteComponent(
    () => loadPage(() => import('./pages/live-activities/live-activities.tsx')),
    'LiveActivities',
  ),
});
const push = createRoute({
  getParentRoute: () => app,
  path: '/pushes/$pushId',
  validateSearch: readPushSearch,
  component: lazyRouteComponent(() => loadPage(() => import('./pages/push/push.tsx')), 'Push'),
});
const why = createRoute({
  getParentRoute: () => app,
  path: '/pushes/$pushId/devices/$installation',
  component: lazyRouteComponent(() => loadPage(() => import('./pages/why/why.tsx')), 'Why'),
});
const devices = createRoute({
  getParentRoute: () => app,
  path: '/devices',
  validateSearch: readDeviceFilters,
  component: lazyRouteComponent(
    () => loadPage(() => import('./pages/devices/devices.tsx')),
    'Devices',
  ),
});
const device = createRoute({
  getParentRoute: () => app,
  path: '/devices/$deviceId',
  component: lazyRouteComponent(
    () => loadPage(() => import('./pages/devices/device.tsx')),
    'Device',
  ),
});
const profiles = createRoute({
  getParentRoute: () => app,
  path: '/profiles',
  component: lazyRouteComponent(
    () => loadPage(() => import('./pages/manage/profiles/profiles.tsx')),
    'Profiles',
  ),
});
const profile = createRoute({
  getParentRoute: () => app,
  path: '/profiles/$connector/$name',
  component: lazyRouteComponent(
    () => loadPage(() => import('./pages/manage/profiles/profile.tsx')),
    'Profile',
  ),
});
const users = createRoute({
  getParentRoute: () => app,
  path: '/users',
  validateSearch: readUserFilters,
  component: lazyRouteComponent(
    () => loadPage(() => import('./pages/manage/users/users.tsx')),
    'Users',
  ),
});
const user = createRoute({
  getParentRoute: () => app,
  path: '/users/$userId',
  component: lazyRouteComponent(
    () => loadPage(() => import('./pages/manage/users/user.tsx')),
    'User',
  ),
});
const messages = createRoute({
  getParentRoute: () => app,
  path: '/messages',
  validateSearch: readMessageSearch,
  component: lazyRouteComponent(
    () => loadPage(() => import('./pages/manage/messages/messages.tsx')),
    'Messages',
  ),
});
const compare = createRoute({
  getParentRoute: () => app,
  path: '/pushes/compare',
  validateSearch: readCompareSearch,
  component: lazyRouteComponent(
    () => loadPage(() => import('./pages/pushes/compare/compare.tsx')),
    'Compare',
  ),
});
const quotas = createRoute({
  getParentRoute: () => app,
  path: '/quotas',
  validateSearch: readQuotaSearch,
  component: lazyRouteComponent(
    () => loadPage(() => import('./pages/manage/usage/quotas.tsx')),
    'Quotas',
  ),
});
const reports = createRoute({
  getParentRoute: () => app,
  path: '/reports',
  validateSearch: readUsageSearch,
  component: lazyRouteComponent(
    () => loadPage(() => import('./pages/manage/reports/reports.tsx')),
    'Reports',
  ),
});
const usage = createRoute({
  getParentRoute: () => app,
  path: '/usage',
  validateSearch: readUsageSearch,
  component: lazyRouteComponent(
    () => loadPage(() => import('./pages/manage/usage/usage.tsx')),
    'Usage',
  ),
});
const settings = createRoute({
  getParentRoute: () => app,
  path: '/settings',
  validateSearch: readSettingsSearch,
  component: lazyRouteComponent(
    () => loadPage(() => import('./pages/manage/settings/settings.tsx')),
    'Settings',
  ),
});
const moveIn = createRoute({
  getParentRoute: () => app,
  path: '/move-in',
  component: lazyRouteComponent(
    () => loadPage(() => import('./pages/manage/move-in/move-in.tsx')),
    'MoveIn',
  ),
});
const webhooks = createRoute({
  getParentRoute: () => app,
  path: '/webhooks',
  component: lazyRouteComponent(
    () => loadPage(() => import('./pages/manage/webhooks/webhooks.tsx')),
    'AppWebhooks',
  ),
});
const serviceWebhooks = createRoute({
  getParentRoute: () => root,
  path: '/webhooks',
  component: lazyRouteComponent(
    () => loadPage(() => import('./pages/manage/webhooks/webhooks.tsx')),
    'ServiceWebhooks',
  ),
});
const operating = createRoute({
  getParentRoute: () => root,
  path: '/operating',
  validateSearch: readOperatingSearch,
  component: lazyRouteComponent(
    () => loadPage(() => import('./pages/operating/operating.tsx')),
    'Operating',
  ),
});
const secret = createRoute({
  getParentRoute: () => root,
  path: '/secret',
  component: lazyRouteComponent(
    () => loadPage(() => import('./pages/operating/secret/secret.tsx')),
    'Secret',
  ),
});
const goLive = createRoute({
  getParentRoute: () => root,
  path: '/go-live',
  component: lazyRouteComponent(
    () => loadPage(() => import('./pages/operating/go-live.tsx')),
    'GoLive',
  ),
});
const people = createRoute({
  getParentRoute: () => root,
  path: '/people',
  validateSearch: readPeopleSearch,
  component: lazyRouteComponent(
    () => loadPage(() => import('./pages/access/people.tsx')),
    'People',
  ),
});
const audit = createRoute({
  getParentRoute: () => root,
  path: '/audit',
  validateSearch: readAuditFilters,
  component: lazyRouteComponent(() => loadPage(() => import('./pages/access/audit.tsx')), 'Audit'),
});

const guidePage = lazyRouteComponent(
  () => loadPage(() => import('./pages/guides/guide-page.tsx')),
  'GuidePage',
);
const guideIndex = createRoute({
  getParentRoute: () => root,
  path: '/docs',
  component: guidePage,
});
const guide = createRoute({ getParentRoute: () => root, path: '/docs/$', component: guidePage });

export const router = createRouter({
  routeTree: root.addChildren([
    home,
    login,
    app.addChildren([
      overview,
      pushes,
      compose,
      scheduled,
      undelivered,
      recurring,
      liveActivities,
      push,
      compare,
      why,
      devices,
      device,
      users,
      user,
      profiles,
      profile,
      quotas,
      reports,
      usage,
      messages,
      webhooks,
      settings,
      moveIn,
    ]),
    operating,
    serviceWebhooks,
    secret,
    goLive,
    people,
    audit,
    guideIndex,
    guide,
  ]),
  basepath: '/console',
  defaultPreload: 'intent',
  // The page of another app, push or device is a new page. Entered texts, open dialogs and replies
  // of the previous object would otherwise stay.
  defaultRemountDeps: ({ params }) => params,
  defaultErrorComponent: PageFailure,
  scrollRestoration: true,
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}
