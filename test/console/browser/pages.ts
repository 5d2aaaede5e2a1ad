import type { Scene } from './scene.ts';

/**
 * Page of the console. The tests and the pictures of the documentation use this list. To add a
 * page, add an entry.
 */
export interface ConsolePage {
  name: string;
  path: (scene: Scene) => string;
  /**
   * File name of its picture in `docs/images`, without `console-` and `.png`. Undefined if the
   * documentation shows none.
   */
  picture?: string;
}

const ofApp =
  (path = '') =>
  ({ app }: Scene): string =>
    `/apps/${app.appId}${path}`;
const ofPush =
  (path = '') =>
  ({ app, pushId }: Scene): string =>
    `/apps/${app.appId}/pushes/${pushId}${path}`;

export const consolePages: readonly ConsolePage[] = [
  { name: 'apps', path: () => '' },
  { name: 'overview', path: ofApp(), picture: 'overview' },
  { name: 'pushes', path: ofApp('/pushes') },
  { name: 'compose', path: ofApp('/pushes/new') },
  {
    name: 'compose: a copied push',
    path: ({ app, openPushId }) => `/apps/${app.appId}/pushes/new?from=${openPushId}`,
    picture: 'compose',
  },
  { name: 'compose: JSON', path: ofApp('/pushes/new?view=json') },
  { name: 'compose: curl', path: ofApp('/pushes/new?view=curl') },
  { name: 'scheduled pushes', path: ofApp('/pushes/scheduled') },
  { name: 'undelivered pushes', path: ofApp('/pushes/undelivered') },
  { name: 'recurring pushes', path: ofApp('/pushes/recurring') },
  { name: 'live activities', path: ofApp('/pushes/live-activities') },
  { name: 'push: progress', path: ofPush() },
  { name: 'push: failures', path: ofPush('?tab=failures') },
  { name: 'push: content', path: ofPush('?tab=content') },
  { name: 'push: audience', path: ofPush('?tab=audience') },
  { name: 'push: ids', path: ofPush('?tab=ids') },
  {
    name: 'open push',
    path: ({ app, openPushId }) => `/apps/${app.appId}/pushes/${openPushId}`,
    picture: 'push',
  },
  { name: 'why', path: (scene) => ofPush(`/devices/${scene.deviceId}`)(scene), picture: 'why' },
  { name: 'devices', path: ofApp('/devices') },
  { name: 'device', path: (scene) => ofApp(`/devices/${scene.deviceId}`)(scene) },
  { name: 'users', path: ofApp('/users') },
  { name: 'webhooks', path: ofApp('/webhooks') },
  { name: 'messages', path: ofApp('/messages') },
  { name: 'profiles', path: ofApp('/profiles') },
  { name: 'profile', path: ofApp('/profiles/apns/_default') },
  { name: 'new profile', path: ofApp('/profiles/fcm/_default') },
  { name: 'messages: budgets', path: ofApp('/messages?tab=budgets') },
  { name: 'messages: texts', path: ofApp('/messages?tab=texts') },
  { name: 'quotas', path: ofApp('/quotas') },
  { name: 'reports', path: ofApp('/reports') },
  { name: 'usage', path: ofApp('/usage') },
  {
    name: 'compare',
    path: ({ app, pushId, openPushId }) =>
      `/apps/${app.appId}/pushes/compare?a=${openPushId}&b=${pushId}`,
  },
  { name: 'settings', path: ofApp('/settings') },
  { name: 'settings: push', path: ofApp('/settings?tab=push') },
  { name: 'settings: accounts', path: ofApp('/settings?tab=accounts') },
  { name: 'move in', path: ofApp('/move-in') },
  { name: 'operating', path: () => '/operating' },
  { name: 'go live', path: () => '/go-live' },
  { name: 'secret', path: () => '/secret' },
  { name: 'people', path: () => '/people' },
  { name: 'webhooks of the service', path: () => '/webhooks' },
  { name: 'audit', path: () => '/audit', picture: 'audit' },
  { name: 'guides', path: () => '/docs' },
  { name: 'guide', path: () => '/docs/sending' },
  { name: 'guide of a folder', path: () => '/docs/operate/alerts' },
  { name: 'guide in English only', path: () => '/docs/performance' },
  { name: 'a missing guide', path: () => '/docs/nothing' },
  { name: 'a missing push', path: ofApp('/pushes/nothing') },
  { name: 'a missing device', path: ofApp('/devices/nothing') },
  { name: 'a missing user', path: ofApp('/users/nobody') },
  { name: 'a missing page', path: ofApp('/nowhere') },
];
