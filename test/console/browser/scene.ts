import type { Page } from 'playwright-core';
import { beforeAll } from 'vitest';
import type { App } from '../../../shared/domain/apps/app.ts';
import { testConfig } from '../../support/api.ts';
import { type TestService, useTestService } from '../../support/service.ts';
import { type PageOptions, useBrowser } from './browser.ts';

/** App with data for every page of the console. */
export interface Scene {
  app: App;
  /** Push that is done and has failures. */
  pushId: string;
  /** Push that waits for an open breaker. */
  openPushId: string;
  /** Device that the push did not reach. */
  deviceId: string;
  /**
   * Token of a device that every push reaches. The tokens of other devices are removed at some
   * time.
   */
  deviceToken: string;
}

const messages = [
  { title: 'Order shipped', alert: 'Your parcel is on its way. It arrives on Friday.' },
  { alert: '新品上架，限时八折' },
  { title: 'Build 4.2', alert: 'Faster search and a dark theme' },
];
/** The device channel refuses this form, because it is for iOS only. */
const partlyFailing = { alert: { title: 'Sale ends tonight', body: 'Everything −30 %' } };
const waiting = { title: 'Weekend', alert: 'Two for one, until Sunday' };

/** Matches the texts of the pushes. */
export const sceneTexts = /Order shipped|Build 4|Sale ends|Weekend|Two for one/;

/** Starts a service with the scene and a browser, for the tests of a file that visit every page. */
export function useScene() {
  const service = useTestService();
  const browser = useBrowser();
  const prepared: { scene?: Scene } = {};
  beforeAll(async () => {
    await service.dispatch();
    prepared.scene = await createScene(service);
  });
  const scene = (): Scene => {
    if (!prepared.scene) throw new Error('the scene is not prepared');
    return prepared.scene;
  };
  const show = (page: Page, path: string) =>
    browser.show(page, `${service.api.url}/console${path}`);
  return {
    service,
    browser,
    scene,
    /** Opens a path below `/console` in a tab that is logged in. */
    show,
    /** Logs in as the administrator in a new tab. */
    login: async (options: PageOptions = {}): Promise<Page> => {
      const page = await browser.page(options);
      await browser.login(page, service.api.url, testConfig(service.databaseUrl).adminToken);
      return page;
    },
    /** Opens a page of the list. */
    showPage: (page: Page, { path }: { path: (scene: Scene) => string }) =>
      show(page, path(scene())),
  };
}

/**
 * Fills a service with a running dispatcher: devices, finished pushes, a push with failures, and a
 * waiting push.
 */
async function createScene(service: TestService): Promise<Scene> {
  const { api } = service;
  const app = await api.createApp({ dailyRecipientCap: 5000, hybridPush: true });
  const body = { name: 'Shop' };
  await api.request('PATCH', `/console/api/apps/${app.appId}`, { admin: true, body });
  await api.request('POST', '/console/api/tokens', {
    admin: true,
    body: { name: 'Li', role: 'viewer' },
  });
  await service.addApnsProfile(app);
  const [dead = '', other = '', deviceToken = ''] = await service.addIosInstallations(app, 300, {
    city: 'Rome',
  });
  await addChannelDevices(service, app, 60);
  await addRecurring(service, app);
  for (const data of messages) await service.untilDone(app, await send(service, app, data));
  for (const token of [dead, other]) service.apns.deadTokens.set(token, Date.now());
  const pushId = await send(service, app, partlyFailing);
  await service.untilDone(app, pushId);
  // The dispatcher learns of the breaker before it learns of the next push.
  const breaker = `/console/api/breakers/apns:${app.appId}:_default/open`;
  await api.request('POST', breaker, { admin: true, body: {} });
  const openPushId = await send(service, app, waiting);
  const path = `/console/api/apps/${app.appId}/notifications/${pushId}/failures?connector=channel`;
  const { body: failures } = await api.request('GET', path, { admin: true });
  return { app, pushId, openPushId, deviceId: failures.results[0].objectId, deviceToken };
}

async function send({ api }: TestService, app: App, data: object): Promise<string> {
  const body = { data };
  const reply = await api.request('POST', '/1.1/push', { app, master: true, body });
  if (reply.status !== 201 && reply.status !== 200) throw new Error(JSON.stringify(reply.body));
  return reply.body.objectId;
}

/** Adds a recurring push with no run during the tests. */
async function addRecurring({ api }: TestService, app: App): Promise<void> {
  const body = {
    name: 'Leap day',
    expression: '0 9 29 2 *',
    timeZone: 'Asia/Shanghai',
    body: { where: {}, data: { alert: 'Once in four years' } },
  };
  const path = `/console/api/apps/${app.appId}/recurring-pushes`;
  const reply = await api.request('POST', path, { admin: true, body });
  if (reply.status !== 201) throw new Error(JSON.stringify(reply.body));
}

/** Adds Android devices without a vendor. They use the device channel. */
async function addChannelDevices({ db }: TestService, app: App, count: number): Promise<void> {
  await db.query(
    `INSERT INTO installation (app_id, object_id, device_type, installation_id, fields)
     SELECT $1, encode(sha256((random()::text || i)::bytea), 'hex')::varchar(24), 'android',
       'device-' || i, '{}'
       FROM generate_series(1, $2::int) AS i`,
    [app.appId, count],
  );
}
