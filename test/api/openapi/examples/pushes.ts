import type { TestService } from '../../../support/service.ts';
import type { ExampleRecorder } from './recorder.ts';

/** Records examples of pushes, from the dry run to the results. */

const news = {
  alert: { title: 'Breaking news', body: 'The bridge is open again.' },
  badge: 'Increment',
};
const ofNews = { data: news, channels: ['news'], expiration_interval: 86_400 };
const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString();
/** Device tokens of iPhones. */
export const tokens = ['a1', 'b2', 'c3'].map((pair) => pair.repeat(32));

/** Records pushes that a dispatcher sends. One of three devices receives them. */
export async function recordSentPushes(
  calls: ExampleRecorder,
  service: TestService,
): Promise<void> {
  const [, dead = '', other = ''] = tokens;
  service.apns.deadTokens.set(dead, Date.now());
  service.apns.tokenTopics.set(other, 'com.example.other');
  const send = async () => {
    const { objectId } = await calls.send('sendAppPush', {
      query: { undoSeconds: 0 },
      body: ofNews,
    });
    await service.untilDone(calls.app, objectId);
    return objectId;
  };
  await send();
  const objectId = await send();
  const path = { id: objectId };
  const settled = ['getAppPush', 'getPushProgress', 'summarizePushFailures'];
  for (const operation of settled) await calls.send(operation, { path });
  await calls.send('listPushFailures', { path, query: { limit: 20, outcome: 'failed' } });
  await calls.send('listGatewayMessages', { path, query: { limit: 20 } });
  await calls.send('getPushTimeline', { path, query: { step: 60 } });
  await calls.send('listUndelivered', { query: { limit: 20, connector: 'apns' } });
  const where = JSON.stringify({ channels: 'news' });
  const { results } = await calls.send('listInstallations', {
    query: { where, limit: '20', order: 'createdAt' },
  });
  const [{ objectId: installation }] = results;
  await calls.send('reportPushEvents', {
    body: { objectId: installation, events: [{ push: objectId, type: 'opened' }] },
  });
  await calls.send('explainDevice', { path: { objectId, installation } });
  await calls.send('listInstallationPushes', { path: { id: installation }, query: { limit: 20 } });
  const breaker = { id: `apns:${calls.app.appId}:_default` };
  await calls.send('checkProfile', { path: { connector: 'apns', name: '_default' } });
  for (const verb of ['open', 'close', 'release'])
    await calls.send(`${verb}Breaker`, { path: breaker });
  await calls.send('listBreakers');
}

/** Records the actions on a push that failed in part. */
export async function recordRepeatedPushes(calls: ExampleRecorder): Promise<void> {
  const { results } = await calls.send('listAppPushes', { query: { limit: 20, status: 'done' } });
  const path = { id: results[0].objectId };
  const body = { outcomes: ['failed'], connector: 'apns', includeUnsure: true };
  await calls.send('explainRedrive', { path, body });
  await calls.send('redriveAppPush', { path, body });
  await calls.send('resendAppPush', {
    path: { id: results[1].objectId },
    body: { outcomes: ['failed'] },
  });
  await calls.send('recallPush', {
    path,
    body: { dryRun: true, replacement: { data: { alert: 'The bridge opens on Monday.' } } },
  });
  await calls.send('deleteInvalidDevices', { path });
}

/** Records pushes that no dispatcher has sent yet. */
export async function recordWaitingPushes(calls: ExampleRecorder): Promise<void> {
  await calls.send('countAudience', {
    body: { where: { deviceType: 'ios', channels: 'vip' }, sample: 2 },
  });
  await calls.send('explainPush', { body: ofNews });
  const { objectId } = await calls.send('sendPush', {
    body: { ...ofNews, notification_id: 'bridge1' },
  });
  const path = { id: objectId };
  await calls.send('getPush', { path });
  await calls.send('listJobs', { path: { queue: 'plan' }, query: { limit: 20 } });
  await calls.send('listPushes', { query: { limit: '2', order: '-createdAt' } });
  await calls.send('pausePush', { path });
  await calls.send('resumePush', { path, body: { flow_control: 2000 } });
  await calls.send('pacePush', { path, body: { flow_control: 5000 } });
  await calls.send('approvePush', { path });
  await calls.send('cancelPush', { path });
  const [token] = tokens;
  const order = {
    data: { alert: 'Your order is on its way.' },
    device_type: 'ios',
    device_ids: [token],
  };
  const single = await calls.send('sendPushToDevices', { body: order });
  await calls.send('deletePush', { path: { id: single.objectId } });
}

/** Records scheduled pushes. */
export async function recordScheduledPushes(calls: ExampleRecorder): Promise<void> {
  for (const days of [1, 2])
    await calls.send('sendPush', { body: { ...ofNews, push_time: inDays(days) } });
  const { results } = await calls.send('listScheduledPushes');
  const list = await calls.send('listScheduledAppPushes', { query: { limit: 20 } });
  await calls.send('moveScheduledAppPush', {
    path: { id: String(list.results[0].id) },
    body: { push_time: inDays(3), expiration_interval: 86_400 },
  });
  await calls.send('cancelScheduledAppPush', { path: { id: String(list.results[0].id) } });
  await calls.send('cancelScheduledPush', { path: { id: String(results[1].id) } });
  const times = {
    expression: '0 9 * * 1-5',
    timeZone: 'Asia/Shanghai',
    startsAt: '2099-01-01T00:00:00.000Z',
  };
  await calls.send('previewRecurringPush', { body: { ...times, count: 3 } });
  const definition = { name: 'Morning news', ...times, body: { data: news, channels: ['news'] } };
  const { id } = await calls.send('createRecurringPush', { body: definition });
  const path = { id: String(id) };
  await calls.send('listRecurringPushes', { query: { limit: 20 } });
  await calls.send('getRecurringPush', { path });
  await calls.send('startRecurringPush', { path });
  await calls.send('changeRecurringPush', { path, body: { isEnabled: false } });
  await calls.send('deleteRecurringPush', { path });
}
