import { smsReceiptAddress } from '../../../../api/services/sms/receipts.ts';
import { Vault } from '../../../../shared/crypto.ts';
import { callbackSecret } from '../../../../shared/http/outbound-addresses.ts';
import { testConfig } from '../../../support/api.ts';
import type { TestService } from '../../../support/service.ts';
import type { ExampleRecorder } from './recorder.ts';

/** Records examples of the admin API that configure the service and its apps. */

const expiresAt = '2099-12-31T16:00:00.000Z';

/** Records operators, their tokens and sessions. */
export async function recordOperators(calls: ExampleRecorder): Promise<void> {
  const newToken = { name: 'Li Na', role: 'operator', apps: [calls.app.appId], expiresAt };
  const { id, token } = await calls.send('createConsoleToken', { body: newToken });
  await calls.send('listConsoleTokens', { query: { limit: 20 } });
  await calls.send('getLoginMethods');
  await calls.send('startConsoleSession', { body: { token } });
  const headers = { Authorization: `Bearer ${token}` };
  await calls.send('getConsoleSession', { headers });
  const { results } = await calls.send('listConsoleSessions', { query: { limit: 20 } });
  await calls.send('deleteConsoleSession', { path: { id: results[0].id } });
  await calls.send('endConsoleSession', { headers });
  await calls.send('createLoginLink');
  await calls.send('deleteConsoleToken', { path: { id } });
}

/** Records another app, from its creation to its deletion. */
export async function recordApps(calls: ExampleRecorder): Promise<void> {
  const options = { generalSms: true, pushCallsPerMinute: 600, quietHours: '22:00-08:00' };
  const body = { name: 'Weather', edition: 'home', plan: 'commercial', options };
  const { appId } = await calls.send('createApp', { body });
  const path = { appId };
  await calls.send('listApps', { query: { view: 'list', q: 'Weather', limit: 20 } });
  await calls.send('getApp', { path });
  const change = { name: 'Weather 2', options: { dailyRecipientCap: 100_000 } };
  await calls.send('updateApp', { path, query: { view: 'options' }, body: change });
  await calls.send('getKey', { path: { appId, key: 'appKey' } });
  await calls.send('rotateKey', { path: { appId, key: 'hookKey' }, body: { graceSeconds: 3600 } });
  await calls.send('freezeApp', { path, body: { reason: 'Wrong text in the morning push' } });
  await calls.send('freezeService', { body: { reason: 'Maintenance of the database' } });
  await calls.send('listFreezes');
  await calls.send('releaseService');
  await calls.send('releaseApp', { path });
  await calls.send('deleteApp', { path, body: { appId } });
}

/** Records credentials of gateways and their rotation. */
export async function recordProfiles(calls: ExampleRecorder, authEndpoint: string): Promise<void> {
  const body = { appKey: '3f8c1d5a7b', masterSecret: 'example-of-a-master-secret', authEndpoint };
  const path = { connector: 'vendor_d', name: '_default' };
  await calls.send('putProfile', { path, body });
  await calls.send('getProfile', { path });
  await calls.send('listProfiles', { query: { view: 'details' } });
  const next = { ...body, masterSecret: 'example-of-the-next-secret' };
  await calls.send('stageProfile', { path, query: { hold: 'true' }, body: next });
  await calls.send('getProfileRotation', { path });
  await calls.send('promoteProfile', { path });
  await calls.send('stageProfile', { path, body: next });
  await calls.send('rollBackProfile', { path });
  await calls.send('deleteProfile', { path });
  const browsers = { connector: 'webpush', name: '_default' };
  await calls.send('putProfile', { path: browsers, body: { subject: 'mailto:push@example.com' } });
  await calls.send('getWebPushKey', { query: { deviceProfile: '_default' } });
}

/** Records receipts of gateways. */
export async function recordReceipts(calls: ExampleRecorder, service: TestService): Promise<void> {
  const owner = { connector: 'vendor_d', appId: calls.app.appId } as const;
  const vault = new Vault(testConfig(service.databaseUrl).secrets);
  const path = { ...owner, secret: callbackSecret(vault, owner, 0) };
  await calls.send('checkReceiptAddress', { path });
  const eventTime = '1803888000000';
  const receipt = {
    messageId: '5f3c-1',
    eventType: 'push_arrive',
    eventTime,
    registrationIds: 'OPPO_CN_4711',
  };
  await calls.send('takeReceipts', { path, body: [{ ...receipt, param: 'VZeMnvPqvHTrl1Z8' }] });
  const [provider = '', secret = ''] = smsReceiptAddress('', vault, 'tencent').split('/').slice(-2);
  const report = {
    user_receive_time: '2026-11-28 08:03:04',
    nationcode: '86',
    mobile: '13800138000',
    report_status: 'SUCCESS',
    errmsg: 'DELIVRD',
    description: '用户短信送达成功',
    sid: '2640:13500138000',
  };
  await calls.send('takeSmsReceipts', { path: { provider, secret }, body: [report] });
  const refused = `/callbacks/vendor_d/${owner.appId}/${path.secret}`;
  await service.api.request('POST', refused, { body: { eventType: 'push_arrive' } });
  const body = { connector: 'vendor_d' };
  await calls.send('listFailedReceipts', { query: { limit: 20, connector: 'vendor_d' } });
  await calls.send('explainReceiptRedrive', { body });
  await calls.send('redriveReceipts', { body });
}

/** Records texts and saved items of an app. */
export async function recordSavedItems(calls: ExampleRecorder): Promise<void> {
  const sms = { type: 'notification', text: 'Your parcel arrives today at {{time}}.' };
  await recordItem(calls, 'SmsTemplate', { name: 'parcel', body: sms });
  await recordItem(calls, 'SmsSignature', { name: 'Carillon', body: {} });
  const push = { body: { data: { alert: 'Good morning, {{name}}' }, variables: { name: 'Anna' } } };
  await recordItem(calls, 'PushTemplate', { name: 'morning', body: push });
  const where = { deviceType: 'ios', channels: 'news' };
  await recordItem(calls, 'Audience', { name: 'readers', body: { where } });
  const phone = { deviceType: 'android', installationId: '7b0c2d9e-4a51-4f0e-9c55-1f2a6d3b8e70' };
  await calls.send('registerInstallation', { body: phone });
  await recordItem(calls, 'TestDevice', {
    name: 'anna',
    body: { installation: phone.installationId },
  });
}

async function recordItem(
  calls: ExampleRecorder,
  kind: string,
  { name, body }: { name: string; body: object },
): Promise<void> {
  const path = { name };
  await calls.send(`put${kind}`, { path, body });
  if (kind.startsWith('Sms')) await calls.send(`approve${kind}`, { path });
  await calls.send(`get${kind}`, { path });
  await calls.send(`list${kind}s`);
  await calls.send(`delete${kind}`, { path });
}

/** Records the state of the processes while a dispatcher runs. */
export async function recordProcesses(calls: ExampleRecorder): Promise<void> {
  for (const operation of [
    'getHealth',
    'getReadiness',
    'getServerTime',
    'getMeta',
    'listProcesses',
    'runDoctor',
  ])
    await calls.send(operation);
}

/** Records the state of the service and of an app. */
export async function recordService(calls: ExampleRecorder): Promise<void> {
  const { appId } = calls.app;
  for (const operation of ['getSocketRoute', 'getHosts'])
    await calls.send(operation, { query: { appId } });
  await calls.send('getReport', { query: { from: '2020-01-01', to: '2020-01-02' } });
  for (const operation of ['listQueues', 'getUsage', 'getQuotas', 'getMoveIn'])
    await calls.send(operation);
  await calls.send('getOverview', { query: { app: appId } });
  await calls.send('search', { query: { q: 'bo', app: appId } });
  await calls.send('getSecretRotation', { query: { count: 'true' } });
  await calls.send('rotateSecret');
  await calls.send('listAudit', { query: { limit: 20, action: 'app.update' } });
}
