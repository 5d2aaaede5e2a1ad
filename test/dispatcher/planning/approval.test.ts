import { beforeAll, describe, expect, test, vi } from 'vitest';
import { checkApprovals } from '../../../api/services/operator/doctor/checks.ts';
import { PushRecordService } from '../../../api/services/push/push-records.ts';
import { AccountReader } from '../../../dispatcher/background/account-reader.ts';
import { systemClock } from '../../../shared/clock.ts';
import { Vault } from '../../../shared/crypto.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { type ConsoleCall, callerOf } from '../../api/console/callers.ts';
import { testConfig } from '../../support/api.ts';
import { useTestService } from '../../support/service.ts';
import {
  changeDevices,
  changePush,
  requestAccountRead,
  startScheduledPushes,
} from '../../support/tables.ts';

const service = useTestService();
let sender: ConsoleCall;
let second: ConsoleCall;

beforeAll(async () => {
  await service.dispatch();
  sender = await callerOf(service.api, 'operator', { name: 'Anna' });
  second = await callerOf(service.api, 'operator', { name: 'Li' });
});

async function appWith(devices: number): Promise<{ app: App; tokens: string[] }> {
  const app = await service.api.createApp({ approvalAboveDevices: 3, forbidClientPush: false });
  await service.addApnsProfile(app);
  return { app, tokens: await service.addIosInstallations(app, devices) };
}

const data = { alert: 'To many' };
const pathOf = ({ appId }: App, objectId: string, verb = '') =>
  `/apps/${appId}/notifications/${objectId}${verb && `/${verb}`}`;

const send = async ({ appId }: App, body: object = {}): Promise<string> =>
  (await sender('POST', `/apps/${appId}/push`, { body: { where: {}, data, ...body } })).body
    .objectId;

/** Sends a push with the keys of the app, so the sender is unknown. */
async function sendByKeys(app: App, master = true, body: object = {}): Promise<string> {
  const call = { app, master, body: { where: {}, data, ...body } };
  return (await service.api.request('POST', '/1.1/push', call)).body.objectId;
}

const approvalOf = async (app: App, objectId: string) =>
  (await sender('GET', pathOf(app, objectId))).body.approval;

/** Waits until a push waits for its approval. */
async function untilWaiting(app: App, objectId: string): Promise<void> {
  const read = async () => (await sender('GET', pathOf(app, objectId))).body;
  await expect
    .poll(read, { interval: 20 })
    .toMatchObject({ status: 'paused', approval: { above: 3, givenBy: null, givenAt: null } });
}

const requestsTo = (tokens: string[]) =>
  tokens.reduce((n, token) => n + service.apns.seen(token), 0);

describe('a push to more devices than the app allows without approval', () => {
  test('is sent only after a second person approves it', async () => {
    const { app, tokens } = await appWith(4);
    const objectId = await send(app);
    await untilWaiting(app, objectId);
    expect((await sender('POST', pathOf(app, objectId, 'approve'))).status).toBe(403);
    expect((await second('POST', pathOf(app, objectId, 'resume'))).status).toBe(409);
    expect(requestsTo(tokens)).toBe(0);
    expect((await second('POST', pathOf(app, objectId, 'approve'))).status).toBe(200);
    expect(await service.untilDone(app, objectId)).toMatchObject({ devices: 4, successes: 4 });
    expect((await sender('GET', pathOf(app, objectId))).body.approval).toMatchObject({
      givenBy: expect.any(String),
    });
    expect((await second('POST', pathOf(app, objectId, 'approve'))).status).toBe(409);
  });

  test.each([
    ['app key', false],
    ['master key', true],
  ])('from the app with its %s needs two operators with different names', async (_key, master) => {
    const { app, tokens } = await appWith(4);
    const objectId = await sendByKeys(app, master);
    await untilWaiting(app, objectId);
    expect((await approvalOf(app, objectId)).missing).toBe(2);
    const first = await sender('POST', pathOf(app, objectId, 'approve'));
    expect([first.status, first.body.status]).toEqual([200, 'paused']);
    expect(first.body.approval).toMatchObject({
      firstBy: 'Anna',
      givenBy: null,
      givenAt: null,
      missing: 1,
    });
    for (const name of ['Anna', 'anna', ' A n n a', 'Ａｎｎａ'.normalize('NFKC')]) {
      const again = await callerOf(service.api, 'operator', { name });
      expect((await again('POST', pathOf(app, objectId, 'approve'))).status, name).toBe(403);
    }
    expect((await second('POST', pathOf(app, objectId, 'resume'))).status).toBe(409);
    expect(requestsTo(tokens)).toBe(0);
    const given = await second('POST', pathOf(app, objectId, 'approve'));
    expect(given.body.approval).toMatchObject({ firstBy: 'Anna', givenBy: 'Li', missing: 0 });
    expect(await service.untilDone(app, objectId)).toMatchObject({ successes: 4 });
    expect((await second('POST', pathOf(app, objectId, 'approve'))).status).toBe(409);
    const path = `/console/api/audit?app=${app.appId}&action=push.approve`;
    const { results } = (await service.api.request('GET', path, { admin: true })).body;
    expect(results).toMatchObject([
      { actor: { name: 'Li' }, after: null },
      { actor: { name: 'Anna' }, after: { missing: 1 } },
    ]);
  });

  test('from the app needs one owner', async () => {
    const owner = await callerOf(service.api, 'owner', { name: 'Wang' });
    const { app } = await appWith(4);
    const objectId = await sendByKeys(app);
    await untilWaiting(app, objectId);
    expect((await owner('POST', pathOf(app, objectId, 'approve'))).body.approval.missing).toBe(0);
    expect(await service.untilDone(app, objectId)).toMatchObject({ successes: 4 });
    const after = await sendByKeys(app);
    await untilWaiting(app, after);
    expect((await sender('POST', pathOf(app, after, 'approve'))).body.approval.missing).toBe(1);
    expect((await owner('POST', pathOf(app, after, 'approve'))).body.approval).toMatchObject({
      firstBy: 'Anna',
      givenBy: 'Wang',
      missing: 0,
    });
    expect(await service.untilDone(app, after)).toMatchObject({ successes: 4 });
  });

  test('from the app can be approved before its time by two concurrent operators', async () => {
    const { app } = await appWith(4);
    const push_time = new Date(Date.now() + 3_600_000).toISOString();
    const objectId = await sendByKeys(app, true, { push_time });
    const replies = await Promise.all(
      [sender, second].map((call) => call('POST', pathOf(app, objectId, 'approve'))),
    );
    expect(replies.map(({ status }) => status)).toEqual([200, 200]);
    expect(await approvalOf(app, objectId)).toMatchObject({ above: null, missing: 0 });
    await startScheduledPushes(service.db, app);
    expect(await service.untilDone(app, objectId)).toMatchObject({ successes: 4 });
  });

  test('from the app waits for its second approval, and can be paused', async () => {
    const { app } = await appWith(4);
    const push_time = new Date(Date.now() + 3_600_000).toISOString();
    const objectId = await sendByKeys(app, true, { push_time });
    expect((await sender('POST', pathOf(app, objectId, 'approve'))).body.approval.missing).toBe(1);
    expect((await sender('POST', pathOf(app, objectId, 'approve'))).status).toBe(403);
    await startScheduledPushes(service.db, app);
    await untilWaiting(app, objectId);
    expect((await second('POST', pathOf(app, objectId, 'approve'))).body.approval.missing).toBe(0);
    expect(await service.untilDone(app, objectId)).toMatchObject({ successes: 4 });
    const few = await appWith(3);
    const allowed = await sendByKeys(few.app, true, { push_time });
    await sender('POST', pathOf(few.app, allowed, 'approve'));
    await changePush(service.db, few.app, { state: 'paused' }, allowed);
    expect(await checkApprovals(service.db)).not.toContainEqual(
      expect.objectContaining({ params: expect.objectContaining({ app: few.app.appId }) }),
    );
    expect((await sender('POST', pathOf(few.app, allowed, 'resume'))).status).toBe(200);
  });

  test('can be approved before its time, and can be cancelled while it waits', async () => {
    const { app, tokens } = await appWith(4);
    const later = await send(app, { push_time: new Date(Date.now() + 3_600_000).toISOString() });
    expect((await second('POST', pathOf(app, later, 'approve'))).status).toBe(200);
    await startScheduledPushes(service.db, app);
    expect(await service.untilDone(app, later)).toMatchObject({ successes: 4 });
    const waiting = await send(app);
    await untilWaiting(app, waiting);
    expect((await sender('POST', pathOf(app, waiting, 'cancel'))).status).toBe(200);
    expect((await second('POST', pathOf(app, waiting, 'approve'))).status).toBe(409);
    expect(requestsTo(tokens)).toBe(4);
  });

  test('is counted as expired if it expires before its approval', async () => {
    const { app, tokens } = await appWith(4);
    const objectId = await send(app);
    await untilWaiting(app, objectId);
    await changePush(service.db, app, { expiresAt: new Date() }, objectId);
    expect(await service.untilDone(app, objectId)).toMatchObject({ outcomes: { expired: 4 } });
    expect(requestsTo(tokens)).toBe(0);
  });
});

describe('an approval', () => {
  test("is refused to the push's sender, also with another token of that name", async () => {
    const { app } = await appWith(4);
    const objectId = await send(app);
    await untilWaiting(app, objectId);
    expect(await checkApprovals(service.db)).toContainEqual(
      expect.objectContaining({
        status: 'warn',
        params: expect.objectContaining({ app: app.appId, n: 1 }),
      }),
    );
    await requestAccountRead(service.db);
    const vault = new Vault(testConfig(service.databaseUrl).secrets);
    await new AccountReader().run({ db: service.db, clock: systemClock, vault });
    const { body: metrics } = await service.api.request('GET', '/metrics');
    expect(metrics).toContain(`carillon_approvals_waiting{app="${app.appId}"} 1`);
    const again = await callerOf(service.api, 'owner', { name: 'Anna' });
    const refused = await again('POST', pathOf(app, objectId, 'approve'));
    expect([refused.status, refused.body.error]).toEqual([
      403,
      expect.stringContaining('same name'),
    ]);
    const below = await callerOf(service.api, 'sender', { name: 'Wu' });
    expect((await below('POST', pathOf(app, objectId, 'approve'))).status).toBe(403);
    expect((await second('POST', pathOf(app, objectId, 'approve'))).status).toBe(200);
    expect(await checkApprovals(service.db)).toEqual([]);
  });

  test('continues the push that was found, also if a newer one has its custom id', async () => {
    const { app } = await appWith(4);
    const shared = { notification_id: 'sale' };
    const objectId = await send(app, shared);
    await untilWaiting(app, objectId);
    let newer = '';
    const find = vi.spyOn(PushRecordService.prototype, 'find');
    find.mockImplementationOnce(async function (this: PushRecordService, ...named) {
      find.mockRestore();
      const found = await this.find(...named);
      newer = await send(app, shared);
      await untilWaiting(app, newer);
      return found;
    });
    const reply = await second('POST', pathOf(app, 'sale', 'approve'));
    expect([reply.status, reply.body.objectId]).toEqual([200, objectId]);
    expect(await service.untilDone(app, objectId)).toMatchObject({ successes: 4 });
    expect(await approvalOf(app, newer)).toMatchObject({ givenBy: null });
  });

  test('cannot be disabled by an operator: only an owner changes the option', async () => {
    const { app, tokens } = await appWith(4);
    const patch = (call: ConsoleCall, options: object) =>
      call('PATCH', `/apps/${app.appId}`, { body: { options } });
    for (const approvalAboveDevices of [null, 1000])
      expect((await patch(sender, { approvalAboveDevices })).status).toBe(403);
    // The settings page may send a value that it does not change.
    expect((await patch(sender, { approvalAboveDevices: 3, generalSms: false })).status).toBe(200);
    await untilWaiting(app, await send(app));
    expect(requestsTo(tokens)).toBe(0);
    const owner = await callerOf(service.api, 'owner', { name: 'Wang' });
    const { body } = await patch(owner, { approvalAboveDevices: 1000 });
    expect(body.options).toMatchObject({ approvalAboveDevices: 1000, generalSms: false });
  });

  test('depends on the devices that match at planning, and applies to all of them', async () => {
    const { app, tokens } = await appWith(3);
    const later = await send(app, { push_time: new Date(Date.now() + 3_600_000).toISOString() });
    const grown = await service.addIosInstallations(app, 1);
    await startScheduledPushes(service.db, app);
    await untilWaiting(app, later);
    grown.push(...(await service.addIosInstallations(app, 2)));
    expect((await second('POST', pathOf(app, later, 'approve'))).status).toBe(200);
    expect(await service.untilDone(app, later)).toMatchObject({ devices: 6, successes: 6 });
    expect(requestsTo([...tokens, ...grown])).toBe(6);
  });

  test('for a push at local time covers the devices of all its time zones', async () => {
    const { app, tokens } = await appWith(4);
    await changeDevices(service.db, app, { timeZone: 'Pacific/Honolulu' });
    await changeDevices(service.db, app, { timeZone: 'UTC' }, tokens.slice(0, 2));
    const push_time = new Date().toISOString().slice(0, 16);
    const objectId = await send(app, { push_time, push_time_local: true });
    await untilWaiting(app, objectId);
    expect((await second('POST', pathOf(app, objectId, 'approve'))).status).toBe(200);
    // The later zone waits for its time.
    await expect.poll(() => requestsTo(tokens), { interval: 20 }).toBe(2);
    expect((await sender('POST', pathOf(app, objectId, 'cancel'))).status).toBe(200);
  });

  test('for a recurring push must come from someone other than its last editor', async () => {
    const { app } = await appWith(4);
    const path = `/apps/${app.appId}/recurring-pushes`;
    const definition = { name: 'daily', expression: '0 0 29 2 *', timeZone: 'UTC' };
    const created = await sender('POST', path, {
      body: { ...definition, body: { where: {}, data } },
    });
    const changed = { body: { body: { where: {}, data: { alert: 'Other' } } } };
    expect((await second('PATCH', `${path}/${created.body.id}`, changed)).status).toBe(200);
    await service.db.query('UPDATE recurring_push SET next_at = now() WHERE app_id = $1', [
      app.appId,
    ]);
    const list = async () =>
      (await sender('GET', `/apps/${app.appId}/notifications?recurring=${created.body.id}`)).body
        .results;
    await expect.poll(list, { interval: 50 }).toHaveLength(1);
    const [{ objectId }] = await list();
    await untilWaiting(app, objectId);
    expect((await second('POST', pathOf(app, objectId, 'approve'))).status).toBe(403);
    expect((await sender('POST', pathOf(app, objectId, 'approve'))).status).toBe(200);
    expect(await service.untilDone(app, objectId)).toMatchObject({ successes: 4 });
  });

  test("for a redrive depends on the number of the redrive's devices", async () => {
    const { app, tokens } = await appWith(4);
    service.apns.misbehave({ kind: 'answer', status: 413, reason: 'PayloadTooLarge' });
    const objectId = await send(app);
    await untilWaiting(app, objectId);
    await second('POST', pathOf(app, objectId, 'approve'));
    expect(await service.untilDone(app, objectId)).toMatchObject({ outcomes: { failed: 4 } });
    service.apns.behave();
    const before = requestsTo(tokens);
    const again = (await second('POST', pathOf(app, objectId, 'redrive'), { body: {} })).body
      .objectId;
    await untilWaiting(app, again);
    expect((await second('POST', pathOf(app, again, 'approve'))).status).toBe(403);
    expect((await second('POST', pathOf(app, objectId, 'redrive'), { body: {} })).status).toBe(409);
    expect(requestsTo(tokens)).toBe(before);
    expect((await sender('POST', pathOf(app, again, 'approve'))).status).toBe(200);
    expect(await service.untilDone(app, again)).toMatchObject({ successes: 4 });
    expect(requestsTo(tokens)).toBe(before + 4);
  });
});

test('is not needed for a push to exactly the allowed number of devices', async () => {
  const { app } = await appWith(3);
  expect(await service.untilDone(app, await send(app))).toMatchObject({ successes: 3 });
});
