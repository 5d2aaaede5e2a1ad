import type { ExampleRecorder } from './recorder.ts';

const state = { contentState: { stage: 2, courier: 'Anna' } };
const activity = {
  event: 'start',
  attributesType: 'OrderAttributes',
  attributes: { orderId: '1042' },
  contentState: { stage: 1 },
  alert: { title: { 'loc-key': 'order.title', 'loc-args': ['1042'] }, body: 'It is on its way.' },
};

/** Records Live Activities: tokens, start, update, and broadcast channels. */
export async function recordLiveActivities(calls: ExampleRecorder): Promise<void> {
  const installationId = 'a-phone';
  await calls.send('registerInstallation', {
    body: { deviceType: 'ios', installationId, deviceToken: 'd4'.repeat(32) },
  });
  for (const own of [{ attributesType: 'OrderAttributes' }, { activityId: 'order-1042' }])
    await calls.send('reportLiveActivityToken', {
      body: { installationId, token: 'c0ffee'.repeat(2), ...own },
    });
  const start = { ...activity, where: { city: 'Rome' }, staleDate: '2099-01-01T00:00:00.000Z' };
  const update = { event: 'update', ...state };
  const path = { activityId: 'order-1042' };
  await calls.send('startLiveActivity', { body: start });
  await calls.send('startAppLiveActivity', { body: { ...start, dryRun: true } });
  await calls.send('changeLiveActivity', { path, body: update });
  await calls.send('changeAppLiveActivity', { path, body: { event: 'end', ...state } });
  for (const [create, prefix] of [
    ['createBroadcastChannel', ''],
    ['createAppBroadcastChannel', 'App'],
  ] as const) {
    const { channel } = await calls.send(create, { body: { storage: 'last' } });
    const named = { path: { channel } };
    await calls.send(`list${prefix}BroadcastChannels`, { query: { prod: 'prod' } });
    await calls.send(`get${prefix}BroadcastChannel`, named);
    await calls.send(`send${prefix}Broadcast`, { ...named, body: update });
    await calls.send(`delete${prefix}BroadcastChannel`, { ...named, body: { prod: 'prod' } });
  }
}
