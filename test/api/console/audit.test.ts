import { createHash } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { loadRoutes } from '../../../api/route-loader.ts';
import type { AuditEntry } from '../../../ops/client/operations.ts';
import { dayMs, systemClock } from '../../../shared/clock.ts';
import { Vault } from '../../../shared/crypto.ts';
import { deleteOldAudit } from '../../../shared/db/tables/console.ts';
import { keepFailedReceipt } from '../../../shared/db/tables/receipts.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { sealContexts } from '../../../shared/domain/apps/seal-contexts.ts';
import { testConfig } from '../../support/api.ts';
import { useTestService } from '../../support/service.ts';
import { changeMessages, endWithFailures } from '../../support/tables.ts';
import { type ConsoleCall, callerOf, createToken } from './callers.ts';

const service = useTestService();
let app: App;
let owner: ConsoleCall;

beforeAll(async () => {
  app = await service.api.createApp({ smsBalance: 1000 });
  await service.addApnsProfile(app);
  owner = await callerOf(service.api, 'owner', { name: 'Anna' });
});

const entries = async (query = '') => (await owner('GET', `/audit?${query}`)).body.results;

async function createPush(): Promise<string> {
  const body = { data: { alert: 'x' } };
  return (await service.api.request('POST', '/1.1/push', { app, master: true, body })).body
    .objectId;
}

/** Call of each changing operation (method, path, body), and its action in the audit log. */
type Change = [
  method: string,
  path: () => Promise<string> | string,
  body: object | ((path: string) => object) | undefined,
  action: string,
];
const of = (path: string) => () => `/apps/${app.appId}${path}`;
const ofPush = (verb: string) => async () =>
  `/apps/${app.appId}/notifications/${await createPush()}/${verb}`;
let users = 0;
const ofUser = (rest: string) => async () => {
  const name = `user${++users}`;
  const body = { username: name, password: 'very-secret', email: `${name}@example.com` };
  const { objectId } = (await service.api.request('POST', '/1.1/users', { app, body })).body;
  return `/apps/${app.appId}/users/${objectId}${rest}`;
};
const ofDevice = (rest: string) => async () =>
  `/apps/${app.appId}/installations/${(await service.addIosInstallations(app, 1))[0]}${rest}`;
const breaker = (verb: string) => () => `/breakers/apns:${app.appId}:_default/${verb}`;
const inDays = (days: number) => new Date(systemClock.now() + days * dayMs).toISOString();
const template = { type: 'notification', text: 'Hello' };
const unreachable = {
  appKey: '1',
  masterSecret: 'very-secret',
  authEndpoint: 'http://127.0.0.1:9',
};
const oppo = { appKey: '1', masterSecret: 'very-secret' };

const definition = (name: string) => ({
  name,
  expression: '0 9 * * *',
  timeZone: 'UTC',
  body: { data: { alert: 'x' } },
});

const activity = {
  start: {
    event: 'start',
    attributesType: 'Order',
    attributes: {},
    contentState: {},
    alert: { title: 'x' },
  },
  update: { event: 'update', contentState: {} },
};

/** Creates a broadcast channel and returns its path. */
async function broadcastChannel(): Promise<string> {
  const path = of('/liveActivities/channels')();
  const body = { storage: 'last' };
  const created = await service.api.request('POST', `/console/api${path}`, { admin: true, body });
  return `${path}/${encodeURIComponent(created.body.channel)}`;
}

const changes: Record<string, Change> = {
  createApp: ['POST', () => '/apps', { name: 'Audited' }, 'app.create'],
  updateApp: [
    'PATCH',
    of(''),
    { name: 'B', options: { generalSms: false, authPlatforms: { qq: { appId: 'very-secret' } } } },
    'app.update',
  ],
  deleteApp: [
    'DELETE',
    async () => `/apps/${(await service.api.createApp()).appId}`,
    (path) => ({ appId: path.split('/').at(-1) }),
    'app.delete',
  ],
  putProfile: ['PUT', of('/profiles/vendor_d/_default'), oppo, 'profile.put'],
  stageProfile: ['PUT', of('/profiles/vendor_d/_default/candidate'), unreachable, 'profile.stage'],
  promoteProfile: ['POST', () => checkedCandidate('/promote'), undefined, 'profile.promote'],
  rollBackProfile: ['POST', () => checkedCandidate('/rollback'), undefined, 'profile.rollback'],
  deleteProfile: ['DELETE', of('/profiles/vendor_d/_default'), undefined, 'profile.delete'],
  sendAppPush: ['POST', of('/push'), { data: { alert: 'x' } }, 'push.send'],
  startAppLiveActivity: ['POST', of('/liveActivities'), activity.start, 'push.send'],
  changeAppLiveActivity: ['POST', of('/liveActivities/order-1'), activity.update, 'push.send'],
  createAppBroadcastChannel: [
    'POST',
    of('/liveActivities/channels'),
    { storage: 'last' },
    'broadcast-channel.create',
  ],
  sendAppBroadcast: ['POST', () => broadcastChannel(), activity.update, 'push.send'],
  deleteAppBroadcastChannel: [
    'DELETE',
    () => broadcastChannel(),
    undefined,
    'broadcast-channel.delete',
  ],
  updateAppInstallation: ['PUT', ofDevice(''), { valid: true }, 'installation.update'],
  deleteAppInstallation: ['DELETE', ofDevice(''), undefined, 'installation.delete'],
  deleteMatchingInstallations: [
    'POST',
    async () => {
      await service.addIosInstallations(app, 1, { tag: 'deleted' });
      return `/apps/${app.appId}/installations/delete`;
    },
    { where: { tag: 'deleted' }, expected: 1 },
    'installation.delete-all',
  ],
  updateAppUser: ['PUT', ofUser(''), { password: 'very-secret-2', nick: 'x' }, 'user.update'],
  deleteAppUser: ['DELETE', ofUser(''), undefined, 'user.delete'],
  logoutUser: ['POST', ofUser('/logout'), undefined, 'user.logout'],
  unlockUser: ['POST', ofUser('/unlock'), undefined, 'user.unlock'],
  verifyUser: ['POST', ofUser('/verify'), { contact: 'email' }, 'user.verify'],
  sendUserReset: ['POST', ofUser('/send-reset'), undefined, 'user.send-reset'],
  putPushTemplate: ['PUT', of('/push-templates/hi'), { body: {} }, 'push-template.put'],
  deletePushTemplate: ['DELETE', of('/push-templates/hi'), undefined, 'push-template.delete'],
  putAudience: ['PUT', of('/audiences/all'), { where: {} }, 'audience.put'],
  deleteAudience: ['DELETE', of('/audiences/all'), undefined, 'audience.delete'],
  putTestDevice: ['PUT', () => testDevice(), { installation: 'test-device' }, 'test-device.put'],
  deleteTestDevice: ['DELETE', of('/test-devices/mine'), undefined, 'test-device.delete'],
  moveScheduledAppPush: ['PATCH', () => scheduled(), { push_time: inDays(2) }, 'push.reschedule'],
  cancelScheduledAppPush: ['DELETE', () => scheduled(), undefined, 'push.cancel'],
  createRecurringPush: [
    'POST',
    of('/recurring-pushes'),
    definition('first'),
    'recurring-push.create',
  ],
  changeRecurringPush: ['PATCH', () => recurring(), { isEnabled: false }, 'recurring-push.change'],
  deleteRecurringPush: ['DELETE', () => recurring(), undefined, 'recurring-push.delete'],
  startRecurringPush: ['POST', async () => `${await recurring()}/start`, undefined, 'push.send'],
  retryMessage: [
    'POST',
    async () => {
      const body = { email: 'audited@example.com' };
      const user = { username: `mailed${++users}`, password: 'very-secret', ...body };
      await service.api.request('POST', '/1.1/users', { app, body: user });
      await service.api.request('POST', '/1.1/requestPasswordReset', { app, body });
      await changeMessages(service.db, app, { state: 'failed' });
      const [message] = (await owner('GET', `/apps/${app.appId}/outbox?state=failed`)).body.results;
      return `/apps/${app.appId}/outbox/${message.id}/retry`;
    },
    undefined,
    'message.retry',
  ],
  redriveReceipts: ['POST', () => failedReceipt(), {}, 'receipts.redrive'],
  redriveMessages: [
    'POST',
    async () => {
      await changeMessages(service.db, app, { state: 'failed' });
      return `/apps/${app.appId}/outbox/redrive`;
    },
    {},
    'message.redrive',
  ],
  rotateKey: ['POST', of('/keys/hookKey/rotate'), { graceSeconds: 60 }, 'app.rotate-key'],
  resendAppPush: ['POST', () => failedPush('resend'), { outcomes: ['failed'] }, 'push.send'],
  redriveAppPush: ['POST', () => failedPush('redrive'), {}, 'push.send'],
  recallPush: ['POST', () => failedPush('recall'), {}, 'push.recall'],
  cancelPush: ['POST', ofPush('cancel'), undefined, 'push.cancel'],
  pausePush: ['POST', ofPush('pause'), undefined, 'push.pause'],
  resumePush: ['POST', ofPush('resume'), { flow_control: 2000 }, 'push.resume'],
  approvePush: ['POST', ofPush('approve'), undefined, 'push.approve'],
  deleteInvalidDevices: [
    'POST',
    () => failedPush('delete-invalid'),
    undefined,
    'push.delete-invalid',
  ],
  pacePush: ['POST', ofPush('pace'), { flow_control: 3000 }, 'push.pace'],
  openBreaker: ['POST', breaker('open'), undefined, 'breaker.force'],
  closeBreaker: ['POST', breaker('close'), undefined, 'breaker.force'],
  releaseBreaker: ['POST', breaker('release'), undefined, 'breaker.force'],
  freezeApp: ['PUT', of('/freeze'), { reason: 'wrong' }, 'push.freeze'],
  releaseApp: ['DELETE', of('/freeze'), undefined, 'push.release'],
  freezeService: ['PUT', () => '/freeze', {}, 'push.freeze'],
  releaseService: ['DELETE', () => '/freeze', undefined, 'push.release'],
  putSmsTemplate: ['PUT', of('/sms-templates/hi'), template, 'sms-template.put'],
  approveSmsTemplate: ['POST', of('/sms-templates/hi/approve'), undefined, 'sms-template.approve'],
  deleteSmsTemplate: ['DELETE', of('/sms-templates/hi'), undefined, 'sms-template.delete'],
  putSmsSignature: ['PUT', of('/sms-signatures/hi'), {}, 'sms-signature.put'],
  approveSmsSignature: [
    'POST',
    of('/sms-signatures/hi/approve'),
    undefined,
    'sms-signature.approve',
  ],
  deleteSmsSignature: ['DELETE', of('/sms-signatures/hi'), undefined, 'sms-signature.delete'],
  createConsoleToken: ['POST', () => '/tokens', { name: 'Li', role: 'viewer' }, 'token.create'],
  deleteConsoleToken: [
    'DELETE',
    async () => `/tokens/${(await createToken(service.api, 'viewer')).id}`,
    undefined,
    'token.delete',
  ],
  createLoginLink: ['POST', () => '/login-links', undefined, 'login-link.create'],
  rotateSecret: ['POST', () => '/secret/rotation', undefined, 'secret.rotate'],
  ...ofWebhooks('Webhook', of('/webhooks/hook')),
  ...ofWebhooks('ServiceWebhook', () => '/webhooks/hook'),
  deleteConsoleSession: ['DELETE', () => newSession(), undefined, 'session.delete'],
};

/** Returns the changing calls of an endpoint, in an order in which each of them succeeds. */
function ofWebhooks(noun: string, path: () => string): Record<string, Change> {
  const endpoint = {
    url: 'https://example.com/very-secret',
    events: ['push.done'],
    format: 'slack',
  };
  const delivery = async () => {
    const sent = await owner('POST', `${path()}/test`);
    return `${path()}/deliveries/${sent.body.id}/redeliver`;
  };
  return {
    [`put${noun}`]: ['PUT', path, endpoint, 'webhook.put'],
    [`rotate${noun}`]: ['POST', () => `${path()}/rotate`, undefined, 'webhook.rotate'],
    [`redeliver${noun}Delivery`]: ['POST', delivery, undefined, 'webhook.redeliver'],
    [`delete${noun}`]: ['DELETE', path, undefined, 'webhook.delete'],
  };
}

async function checkedCandidate(rest: string): Promise<string> {
  const path = of('/profiles/vendor_d/_default/candidate')();
  await service.api.request('PUT', `/console/api${path}`, { admin: true, body: unreachable });
  await service.db.query("UPDATE profile_rotation SET state = 'checked' WHERE app_id = $1", [
    app.appId,
  ]);
  return path + rest;
}

async function testDevice(): Promise<string> {
  const body = { deviceType: 'android', installationId: 'test-device' };
  await service.api.request('POST', '/1.1/installations', { app, body });
  return of('/test-devices/mine')();
}

async function scheduled(): Promise<string> {
  const body = { data: { alert: 'x' }, push_time: inDays(1) };
  await service.api.request('POST', '/1.1/push', { app, master: true, body });
  const { results } = (await owner('GET', of('/scheduled?limit=1')())).body;
  return of(`/scheduled/${results[0].id}`)();
}

async function recurring(): Promise<string> {
  const path = of('/recurring-pushes')();
  const body = definition(`recurring ${++users}`);
  const created = await service.api.request('POST', `/console/api${path}`, { admin: true, body });
  return `${path}/${created.body.id}`;
}

async function failedPush(verb: string): Promise<string> {
  const id = await createPush();
  await endWithFailures(service.db, app, id, [
    { device: { id: 1, objectId: 'nothing' }, outcome: 'failed', status: 500, reason: 'x' },
  ]);
  return of(`/notifications/${id}/${verb}`)();
}

async function failedReceipt(): Promise<string> {
  const vault = new Vault(testConfig(service.databaseUrl).secrets);
  const source = { appId: app.appId, connector: 'vendor_d' } as const;
  const digest = 'audited';
  const call = vault.seal(
    { headers: {}, body: '[]' },
    sealContexts.receipt(app.appId, 'vendor_d', digest),
  );
  const refused = { ...source, digest, call, status: 400, reason: 'x', bytes: 2 };
  await keepFailedReceipt(service.db, app.appId, refused, 1);
  return of('/failed-receipts/redrive')();
}

async function newSession(): Promise<string> {
  const { token } = await createToken(service.api, 'viewer');
  await service.api.request('POST', '/console/api/session', { body: { token } });
  return `/sessions/${(await owner('GET', '/sessions?limit=1')).body.results[0].id}`;
}

describe('the audit log', () => {
  test('contains a call of every changing route', async () => {
    const changing = (await loadRoutes()).filter(
      ({ auth, method, changesNothing }) => auth === 'admin' && method !== 'GET' && !changesNothing,
    );
    // Logging out is the deletion of one's own session.
    const names = changing
      .map(({ operation }) => operation)
      .filter((name) => name !== 'endConsoleSession');
    expect(names.toSorted()).toEqual(Object.keys(changes).toSorted());
  });

  test.each(Object.entries(changes))(
    'records what %s changed, and who did it',
    async (_operation, change) => {
      const [method, pathOf, sent, action] = change;
      const path = await pathOf();
      const [before] = await entries('limit=1');
      const body = typeof sent === 'function' ? sent(path) : sent;
      const reply = await owner(method, path, body === undefined ? {} : { body });
      expect([reply.status, reply.body]).toEqual([
        expect.toSatisfy((n) => n < 300),
        expect.anything(),
      ]);
      const own = (await entries('actor=Anna&limit=5')).filter(
        ({ id }: { id: string }) => Number(id) > Number(before?.id ?? 0),
      );
      expect(own).toMatchObject([
        {
          action,
          actor: {
            name: 'Anna',
            role: 'owner',
            token: expect.any(String),
            address: expect.any(String),
          },
          requestId: reply.headers.get('x-request-id'),
        },
      ]);
    },
  );

  test('masks secrets, and has members before and after', async () => {
    const all = await entries('limit=200');
    expect(JSON.stringify(all)).not.toMatch(/very-secret|masterKey|carillon_/);
    const find = (action: string) =>
      all.find((entry: { action: string }) => entry.action === action);
    expect(find('profile.put')).toMatchObject({
      appId: app.appId,
      target: 'vendor_d/_default',
      before: null,
      after: { appKey: '•••', masterSecret: '•••' },
    });
    expect(find('app.update')).toMatchObject({
      before: { name: 'Test app', options: { generalSms: true, authPlatforms: {} } },
      after: { name: 'B', options: { generalSms: false, authPlatforms: { qq: { appId: '•••' } } } },
    });
    expect(find('push.resume')).toMatchObject({
      before: { flowControl: null },
      after: { flowControl: 2000 },
    });
  });

  test('records nothing about a change that was refused or rolled back', async () => {
    const [last] = await entries('limit=1');
    await owner('DELETE', '/apps/nowhere', { body: { appId: 'nowhere' } });
    await owner('DELETE', '/tokens/1000000');
    await owner('PUT', `/apps/${app.appId}/profiles/vendor_d/_default`, { body: { appKey: '1' } });
    expect((await entries('limit=1'))[0].id).toBe(last.id);
  });

  test("records owners' reads of keys and codes, at most once an hour for each", async () => {
    const secretive = await callerOf(service.api, 'owner', { name: 'Reader' });
    const operator = await callerOf(service.api, 'operator', { name: 'Reader' });
    const captchas = await service.api.createApp({ captchaForSms: true });
    const captcha = await service.api.request('GET', '/1.1/requestCaptcha', { app: captchas });
    const paths = [
      '/apps',
      `/apps/${app.appId}`,
      `/apps/${app.appId}/outbox`,
      `/apps/${app.appId}/outbox?limit=1`,
      `/apps/${captchas.appId}/captchas/${encodeURIComponent(captcha.body.captcha_token)}`,
    ];
    for (let i = 0; i < 3; i += 1)
      for (const path of paths) expect((await secretive('GET', path)).status, path).toBe(200);
    for (const path of [...paths.slice(0, 4), '/apps?view=list']) await operator('GET', path);
    await secretive('GET', '/apps?view=list');
    const found = await entries('actor=Reader');
    const lines = found.map((one: AuditEntry) => `${one.action} ${one.target} ${one.actor.role}`);
    expect(new Set(lines)).toEqual(
      new Set([
        'app.read-keys all apps owner',
        `app.read-keys ${app.appId} owner`,
        `captcha.reveal ${captchas.appId} owner`,
        `outbox.read ${app.appId} owner`,
      ]),
    );
    expect(lines).toHaveLength(4);
    expect(found.every(({ before, after }: AuditEntry) => before === null && after === null)).toBe(
      true,
    );
    expect(JSON.stringify(found)).not.toContain(app.masterKey);
    const again = await callerOf(service.api, 'owner', { name: 'Reader' });
    await again('GET', `/apps/${app.appId}`);
    expect(await entries('actor=Reader')).toHaveLength(5);
  });

  test('truncates values above 4 KB, with the digest of the whole value', async () => {
    const sender = await callerOf(service.api, 'sender', { name: 'Wordy' });
    const path = (name: string) => `/apps/${app.appId}/push-templates/${name}`;
    const long = { data: { alert: 'x'.repeat(15_000) }, note: 'kept' };
    const many = Object.fromEntries(
      Array.from({ length: 400 }, (_, i) => [`member${i}`, 'short value']),
    );
    for (const [name, body] of [
      ['long', long],
      ['many', many],
      ['small', { data: { alert: 'x'.repeat(3000) } }],
    ] as const) {
      expect((await sender('PUT', path(name), { body: { body } })).status).toBe(200);
      const [entry] = await entries('actor=Wordy&limit=1');
      expect(JSON.stringify(entry.after).length).toBeLessThan(4200);
      const text = JSON.stringify({ body });
      if (name === 'small') expect(entry.after).toEqual({ body });
      else
        expect(JSON.stringify(entry.after)).toContain(
          createHash('sha256').update(text).digest('hex'),
        );
    }
    const { rows } = await service.db.query<{ most: number }>(
      'SELECT max(greatest(octet_length(before::text), octet_length(after::text))) AS most FROM audit',
    );
    expect(rows[0]?.most).toBeLessThan(5000);
  });

  test('has filters and pages', async () => {
    for (const [query, isRight] of [
      [`app=${app.appId}`, (entry) => entry.appId === app.appId],
      ['action=sms-template', (entry) => entry.action.startsWith('sms-template.')],
      ['action=push.pause', (entry) => entry.action === 'push.pause'],
      ['target=vendor_d/_default', (entry) => entry.target === 'vendor_d/_default'],
      ['actor=admin', (entry) => entry.actor.name === 'admin'],
    ] as [string, (entry: AuditEntry) => boolean][]) {
      const found = await entries(query);
      expect(found.length, query).toBeGreaterThan(0);
      expect(found.every(isRight), query).toBe(true);
    }
    expect(await entries('from=2999-01-01T00:00:00Z')).toEqual([]);
    const first = await owner('GET', '/audit?limit=1');
    const second = await owner('GET', `/audit?limit=1&cursor=${first.body.next}`);
    expect(Number(second.body.results[0].id)).toBeLessThan(Number(first.body.results[0].id));
    expect((await owner('GET', '/audit?from=now')).status).toBe(400);
  });

  test.each(["UPDATE audit SET target = 'another'", 'DELETE FROM audit', 'TRUNCATE audit'])(
    'is append-only: the database refuses %s',
    async (statement) => {
      await expect(service.db.query(statement)).rejects.toThrow('the audit is append-only');
    },
  );

  test('lets an erasure change members and targets only', async () => {
    const change = (set: string) =>
      service.db.transaction(async (tx) => {
        await tx.query("SELECT set_config('carillon.erases_person', 'on', true)");
        await tx.query(`UPDATE audit SET ${set} WHERE id = (SELECT min(id) FROM audit)`);
      });
    await change('before = NULL');
    for (const set of [
      "actor_name = 'x'",
      "action = 'x'",
      'at = now()',
      "address = 'x', after = NULL",
    ])
      await expect(change(set)).rejects.toThrow('the audit is append-only');
  });

  test('deletes entries older than 400 days in steps', async () => {
    await service.db.query(
      `ALTER TABLE audit DISABLE TRIGGER audit_row;
       UPDATE audit SET at = now() - interval '401 days' WHERE actor_name = 'admin';
       ALTER TABLE audit ENABLE TRIGGER audit_row`,
    );
    const before = new Date(Date.now() - 400 * 86_400_000);
    expect(await deleteOldAudit(service.db, before, 1)).toBe(1);
    while ((await deleteOldAudit(service.db, before, 2)) > 0);
    expect(await entries('actor=admin')).toEqual([]);
    expect((await entries()).length).toBeGreaterThan(0);
  });
});
