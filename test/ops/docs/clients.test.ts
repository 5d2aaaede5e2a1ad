import { spawn } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { guideOf } from '../../../connectors/guides.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { profileConnectorIds } from '../../../shared/domain/labels.ts';
import { bareEnvironment, carillon } from '../../support/cli.ts';
import { useTestService } from '../../support/service.ts';
import { blocksOf, runShell, serviceEnvironment } from './pages.ts';

const service = useTestService();
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'carillon-clients-'));
  await service.dispatch();
});
afterAll(() => rm(folder, { recursive: true }));

const pages = (await readdir(new URL('../../../docs/clients/', import.meta.url))).sort();

const pem = (type: 'ec' | 'rsa') => {
  const { privateKey } =
    type === 'ec'
      ? generateKeyPairSync('ec', { namedCurve: 'P-256' })
      : generateKeyPairSync('rsa', { modulusLength: 2048 });
  return privateKey.export({ type: 'pkcs8', format: 'pem' });
};
/** Members of Huawei's service account, which devices with HarmonyOS need. */
const huaweiAccount = {
  serviceAccount: { project_id: '101', key_id: 'k', sub_account: '102', private_key: pem('rsa') },
};

/** Runs commands of a page for an app, like a reader in one terminal. */
const shellFor =
  (app: App) =>
  (...commands: string[]) =>
    runShell(
      [
        `export URL=${service.api.url} APP_ID=${app.appId} APP_KEY=${app.appKey} MASTER_KEY=${app.masterKey}`,
        ...commands,
      ],
      {
        cwd: folder,
        env: serviceEnvironment(service),
      },
    );

/** Runs a command that is not of a page. */
const runCarillon = (...args: string[]) => carillon(args, { env: serviceEnvironment(service) });

/** Creates an app with a profile of every gateway, as a reader of the client pages has one. */
async function appWithProfiles(): Promise<App> {
  const app = await service.api.createApp();
  await service.addApnsProfile(app);
  for (const id of profileConnectorIds.filter((one) => one !== 'apns' && one !== 'vendor_g')) {
    const example = JSON.stringify({
      ...guideOf(id)?.example,
      ...(id === 'vendor_a' ? huaweiAccount : {}),
    });
    const file = join(folder, `${id}.json`);
    await writeFile(file, example.replace(/-----BEGIN[^"]*…[^"]*/, jsonText(pem('rsa'))));
    const put = await runCarillon('profile', 'put', app.appId, id, file);
    expect(put, put.stderr).toMatchObject({ code: 0 });
  }
  return app;
}

const jsonText = (value: string | Buffer) => JSON.stringify(String(value)).slice(1, -1);

describe('every command of docs/clients', () => {
  test.each(pages)('%s works unchanged, and its dry runs find the device', async (page) => {
    const app = await appWithProfiles();
    const shell = shellFor(app);
    let kept = '';
    const blocks = await blocksOf(`clients/${page}`, 'sh');
    expect(blocks.length).toBeGreaterThan(1);
    for (const block of blocks) {
      // Options take effect on every process within a second.
      const run = () => shell(kept, block);
      if (block.includes('/push/events'))
        await expect.poll(async () => (await run()).code, { timeout: 60_000 }).toBe(0);
      const result = await run();
      expect(result, block + result.stderr).toMatchObject({ code: 0 });
      expect(result.stdout, block).not.toContain('"error"');
      if (block.includes('--dry-run')) expect(result.stdout, block).toContain('go to 1 device');
      if (block.includes('export DEVICE')) kept = block.slice(block.indexOf('export DEVICE'));
    }
  });
});

/** Message of a dry run. Its form depends on the vendor. */
// biome-ignore lint/suspicious/noExplicitAny: JSON of several vendors
type Payload = any;

describe('docs/clients/android-china.md', () => {
  /** Where the page says that the members of a push arrive. */
  const places: Record<string, (payload: Payload) => unknown> = {
    HMS: ({ message }) => contentIn(message.android.notification.click_action),
    honor: ({ android }) => contentIn(android.notification.clickAction),
    vivo: ({ clientCustomMap }) => clientCustomMap,
    oppo: ({ action_parameters }) => JSON.parse(action_parameters),
    mz: ({ clickTypeInfo }) => clickTypeInfo.parameters,
    mi: ({ payload }) => JSON.parse(payload),
    fcm: ({ message }) => JSON.parse(message.data.payload),
  };
  const contentIn = ({ intent = '' }) => {
    const address = new URL(intent.split('#')[0]?.replace('intent:', 'lcpushscheme:') ?? '');
    expect(address.host + address.pathname).toBe('cn.leancloud.push/notify_detail');
    return JSON.parse(address.searchParams.get('S.content') ?? '');
  };

  test('says where the members of a push arrive', async () => {
    const app = await appWithProfiles();
    expect((await runCarillon('app', 'set', app.appId, 'hybridPush=true')).code).toBe(0);
    for (const [vendor, read] of Object.entries(places)) {
      const device = { deviceType: 'android', vendor, installationId: vendor };
      const body = { ...device, registrationId: `${vendor}:1` };
      await service.api.request('POST', '/1.1/installations', { app, body });
      const data = JSON.stringify({ alert: 'Hello', article: 'a-17' });
      const push = ['push', '--app', app.appId, '--data', data];
      const where = ['--where', JSON.stringify({ installationId: vendor })];
      const preview = () => runCarillon(...push, ...where, '--dry-run', '--json');
      await expect.poll(async () => (await preview()).stdout).not.toContain('"channel"');
      const { connectors } = (await preview()).json();
      const [{ payload }] = Object.values<{ payload: Payload }>(connectors) as [
        { payload: Payload },
      ];
      expect(read(payload), vendor).toMatchObject({ article: 'a-17' });
    }
  });
});

/** Runs the code of a page as modules, with stand-ins for the modules of the platform. */
async function runCode(
  page: string,
  app: App,
  {
    main,
    stubs,
    env = {},
  }: { main: string; stubs: Record<string, string>; env?: Record<string, string> },
): Promise<string[]> {
  const place = join(folder, `${page}-${app.appId}`);
  await mkdir(place, { recursive: true });
  for (const block of await blocksOf(`clients/${page}.md`, 'ts')) {
    const [, name = ''] = block.match(/^\/\/ (\w+\.ts)\n/) ?? [];
    const code = block
      .replace('https://push.example.com', service.api.url)
      .replace('wss://push.example.com', service.api.url.replace('http', 'ws'))
      .replace('<app id>', app.appId)
      .replace('<app key>', app.appKey)
      .replaceAll("from './carillon'", "from './carillon.ts'");
    await writeFile(join(place, name), code);
  }
  for (const [name, code] of Object.entries(stubs)) {
    const stub = join(place, 'node_modules', name);
    await mkdir(stub, { recursive: true });
    await writeFile(join(stub, 'package.json'), '{"type":"module","exports":"./index.js"}');
    await writeFile(join(stub, 'index.js'), code);
  }
  await writeFile(join(place, 'package.json'), '{"type":"module"}');
  await writeFile(join(place, 'main.js'), main);
  const child = spawn(process.execPath, ['--no-warnings', 'main.js'], {
    cwd: place,
    env: { ...bareEnvironment(), ...env },
  });
  const code = new Promise((resolve) => child.once('close', resolve));
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  expect([await code, stderr]).toEqual([0, '']);
  return stdout.split('\n').filter((line) => line !== '');
}

/** Storage that a later run of the code finds again. */
const storage = `
  import { existsSync, readFileSync, writeFileSync } from 'node:fs';
  const stored = existsSync('store.json') ? JSON.parse(readFileSync('store.json', 'utf8')) : {};
  export const get = (name) => stored[name] ?? null;
  export const set = (name, value) => {
    stored[name] = value;
    writeFileSync('store.json', JSON.stringify(stored));
  };`;

async function onlyDevice(app: App): Promise<Record<string, unknown>> {
  const found = await service.api.request('GET', '/1.1/installations', { app, master: true });
  expect(found.body.results).toHaveLength(1);
  return found.body.results[0];
}

/** Sends a push to all devices, once the option \`reportOpens\` has taken effect. */
async function sendWithEvents(app: App): Promise<string> {
  const on = await shellFor(app)('npx carillon app set "$APP_ID" reportOpens=true');
  expect(on.code).toBe(0);
  let push = '';
  await expect
    .poll(async () => {
      const body = { data: { alert: 'Hello' } };
      push = (await service.api.request('POST', '/1.1/push', { app, master: true, body })).body
        .objectId;
      return (await service.untilDone(app, push)).events;
    })
    .toEqual({ received: 0, opened: 0, dismissed: 0 });
  return push;
}

describe('the code of docs/clients/react-native.md', () => {
  const stubs = {
    storage,
    '@react-native-async-storage/async-storage': `
      import { get, set } from 'storage';
      export default { getItem: async (name) => get(name), setItem: async (name, value) => set(name, value) };`,
    'react-native': `
      export const Platform = { OS: process.env.SYSTEM, Version: 34 };
      export const PermissionsAndroid = { PERMISSIONS: { POST_NOTIFICATIONS: 'p' }, request: async () => 'granted' };
      export const Alert = { alert: (title, body) => console.log('shows', body) };`,
    '@react-native-community/push-notification-ios': `
      export default {
        FetchResult: { NoData: 'none' },
        addEventListener: (name, listener) => { globalThis.listeners[name] = listener; },
        requestPermissions: async () => globalThis.listeners.register('ab'.repeat(32)),
        getInitialNotification: async () => null,
      };`,
    '@react-native-firebase/messaging': `
      const add = (name) => (messaging, listener) => { globalThis.listeners[name] = listener; };
      export const getMessaging = () => ({});
      export const getToken = async () => 'first:token';
      export const getInitialNotification = async () => null;
      export const [onMessage, onNotificationOpenedApp, onTokenRefresh] = ['message', 'opened', 'token'].map(add);`,
  };
  const main = `
    globalThis.listeners = {};
    const { startPush } = await import('./push.ts');
    const { setUser, setEnabled, installationId } = await import('./carillon.ts');
    await startPush();
    console.log(await installationId());
    const { PUSH: push, STEP: step, SYSTEM: system } = process.env;
    const finish = () => {};
    if (step === 'events' && system === 'ios') {
      listeners.notification({ getData: () => ({ _push: push }), finish });
      listeners.notification({ getData: () => ({ _push: push, userInteraction: 1 }), finish });
    }
    if (step === 'events' && system === 'android') {
      const message = { data: { payload: JSON.stringify({ _push: push }) }, notification: { body: 'Hello' } };
      await listeners.message(message);
      listeners.opened(message);
      listeners.token('second:token');
    }
    if (step === 'settings') {
      await setUser('66a1c0ffee00112233445566');
      await setEnabled(false);
    }`;

  test('registers an iPhone, keeps its id, and counts events', async () => {
    const app = await service.api.createApp();
    await service.addApnsProfile(app);
    const run = (env: Record<string, string>) =>
      runCode('react-native', app, { main, stubs, env: { SYSTEM: 'ios', ...env } });
    const [id] = await run({});
    expect(await onlyDevice(app)).toMatchObject({
      deviceType: 'ios',
      deviceToken: 'ab'.repeat(32),
      apnsTopic: 'com.example.app',
      installationId: id,
      valid: true,
    });
    const push = await sendWithEvents(app);
    expect(await run({ STEP: 'events', PUSH: push })).toEqual([id]);
    const { events } = await service.untilDone(app, push);
    expect(events).toEqual({ received: 1, opened: 1, dismissed: 0 });
    await run({ STEP: 'settings' });
    expect(await onlyDevice(app)).toMatchObject({
      user: { className: '_User', objectId: '66a1c0ffee00112233445566' },
      valid: false,
    });
  });

  test('registers an Android device, and saves a new token', async () => {
    const app = await service.api.createApp();
    const on = await shellFor(app)('npx carillon app set "$APP_ID" reportOpens=true');
    expect(on.code).toBe(0);
    const run = (env: Record<string, string>) =>
      runCode('react-native', app, { main, stubs, env: { SYSTEM: 'android', ...env } });
    await run({});
    expect(await onlyDevice(app)).toMatchObject({ vendor: 'fcm', registrationId: 'first:token' });
    await expect
      .poll(() => run({ STEP: 'events', PUSH: 'Zk3vQ0pWm7xYtR1b' }).catch(() => []))
      .toContain('shows Hello');
    expect(await onlyDevice(app)).toMatchObject({ registrationId: 'second:token' });
  });
});

test('the code of docs/clients/mini-program.md registers, shows and acknowledges', async () => {
  const app = await service.api.createApp();
  const main = `
    import { get, set } from 'storage';
    globalThis.wx = {
      getStorageSync: (name) => get(name) ?? '',
      setStorageSync: set,
      getAppBaseInfo: () => ({ language: 'zh_CN' }),
      request: ({ url, method, header, data, success, fail }) =>
        fetch(url, { method, headers: header, body: JSON.stringify(data) }).then(async (reply) => {
          success({ statusCode: reply.status, data: await reply.json() });
          if (data.events?.[0].push === process.env.PUSH) globalThis.app.onHide();
        }, fail),
      connectSocket: ({ url }) => {
        const socket = new WebSocket(url);
        return {
          send: ({ data }) => socket.send(data),
          close: () => socket.close(),
          onOpen: (listener) => socket.addEventListener('open', listener),
          onMessage: (listener) => socket.addEventListener('message', listener),
          onClose: (listener) => socket.addEventListener('close', listener),
        };
      },
      showToast: ({ title }) => console.log(title),
    };
    globalThis.App = (app) => { globalThis.app = app; };
    await import('./app.ts');
    if (process.env.STEP === 'show') globalThis.app.onShow();
    else globalThis.app.onLaunch();`;
  const run = (env: Record<string, string>) =>
    runCode('mini-program', app, { main, stubs: { storage }, env });
  await run({});
  expect(await onlyDevice(app)).toMatchObject({ deviceType: 'web', locale: 'zh-CN' });
  const push = await sendWithEvents(app);
  const alerts = await run({ STEP: 'show', PUSH: push });
  expect(alerts.length).toBeGreaterThan(0);
  expect(new Set(alerts)).toEqual(new Set(['Hello']));
  await expect
    .poll(async () => (await service.untilDone(app, push)).lcSuccesses, { timeout: 60_000 })
    .toBe(1);
  const { events } = await service.untilDone(app, push);
  expect(events).toMatchObject({ received: 1 });
  const again = await readFile(join(folder, `mini-program-${app.appId}`, 'store.json'), 'utf8');
  expect(JSON.parse(again).carillonDevice).toMatch(/^[0-9a-f]{32}$/);
});

test('the code of docs/clients/web.md saves the person and the switch of a browser', async () => {
  const app = await service.api.createApp();
  const [code = ''] = await blocksOf('clients/web.md', 'js');
  const module = `
    const [SERVER, APP_ID, APP_KEY] = ['${service.api.url}', '${app.appId}', '${app.appKey}'];
    const localStorage = { carillonDevice: 'a-browser' };
    const navigator = { language: 'it-IT' };
    ${code}
    export { logIn, logOut, setEnabled };`;
  const page = await import(`data:text/javascript,${encodeURIComponent(module)}`);
  await page.logIn('66a1c0ffee00112233445566');
  expect(await onlyDevice(app)).toMatchObject({
    installationId: 'a-browser',
    locale: 'it-IT',
    user: { className: '_User', objectId: '66a1c0ffee00112233445566' },
  });
  await page.logOut();
  await page.setEnabled(false);
  const device = await onlyDevice(app);
  expect(device).toMatchObject({ valid: false });
  expect(device).not.toHaveProperty('user');
});
