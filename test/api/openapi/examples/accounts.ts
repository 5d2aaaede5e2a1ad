import { adding, pointerTo } from '../../../support/roles.ts';
import type { TestService } from '../../../support/service.ts';
import { changeMessages } from '../../../support/tables.ts';
import type { ExampleRecorder } from './recorder.ts';

/** Records examples of users, codes, roles, installations, functions and batches. */

const password = 'correct horse battery';
const anna = { username: 'anna', password, email: 'anna@example.com', city: 'Hangzhou' };
let lastPhone = 13_800_138_000;
const newPhone = () => String(++lastPhone);

/** Records users and their sessions. */
export async function recordUsers(calls: ExampleRecorder): Promise<void> {
  const { objectId } = await calls.send('signUp', { body: anna });
  const path = { objectId };
  const login = { username: anna.username, password };
  await calls.send('loginByQuery', { query: login });
  const { sessionToken } = await calls.send('login', { body: login });
  const session = sessionToken;
  await calls.send('getOwnUser', { session });
  const passwords = { old_password: password, new_password: 'staple of batteries' };
  const changed = await calls.send('updatePassword', { path, session, body: passwords });
  const current = changed.sessionToken ?? session;
  const next = await calls.send('refreshSessionToken', { path, session: current });
  const own = { path, session: next.sessionToken };
  await calls.send('updateUser', { ...own, body: { city: 'Shanghai' } });
  await calls.send('getUser', { ...own, query: { keys: 'username,city' } });
  const where = JSON.stringify({ city: 'Shanghai' });
  await calls.send('listUsers', {
    session: own.session,
    query: { where, limit: '10', order: '-createdAt' },
  });
  await calls.send('listUsersStrictly', { session: own.session, query: { where, limit: '10' } });
  await calls.send('requestEmailVerify', { body: { email: anna.email } });
  await calls.send('requestPasswordReset', { body: { email: anna.email } });
  const cql = 'select username, city from _User where city = ? limit 10';
  await calls.send('runCql', { session: own.session, query: { cql, pvalues: '["Shanghai"]' } });
  const kept = await calls.send('signUp', { body: { username: 'bo', password } });
  await recordRoles(calls, kept.objectId);
  await calls.send('deleteUser', own);
}

async function recordRoles(calls: ExampleRecorder, user: string): Promise<void> {
  const ACL = { '*': { read: true }, 'role:editors': { write: true } };
  const { objectId } = await calls.send('createRole', {
    body: { name: 'editors', ACL, users: adding('_User', user) },
  });
  await calls.send('listRoles', {
    query: { where: JSON.stringify({ users: pointerTo('_User', user) }), limit: '10' },
  });
  await calls.send('getRole', { path: { objectId } });
  const users = { __op: 'RemoveRelation', objects: [pointerTo('_User', user)] };
  await calls.send('updateRole', { master: true, path: { objectId }, body: { users } });
  await calls.send('deleteRole', { master: true, path: { objectId } });
}

/** Records users from the operators' perspective. */
export async function recordUserSupport(calls: ExampleRecorder): Promise<void> {
  const email = 'chen@example.com';
  const { objectId } = await calls.send('signUp', { body: { username: 'chen', password, email } });
  const path = { id: objectId };
  await calls.send('listAppUsers', { query: { limit: 20, q: 'chen' } });
  await calls.send('getAppUser', { path });
  await calls.send('updateAppUser', { path, body: { city: 'Beijing' } });
  await calls.send('verifyUser', { path, body: { contact: 'email' } });
  for (const operation of ['logoutUser', 'unlockUser', 'sendUserReset'])
    await calls.send(operation, { path });
  await calls.send('exportAppUser', { path });
  await calls.send('deleteAppUser', { path, query: { everything: 'true' } });
}

/** Records SMS codes. */
export async function recordCodes(calls: ExampleRecorder): Promise<void> {
  const codeTo = async (to: string): Promise<string> =>
    (await calls.send('listOutbox', { query: { kind: 'sms', to: `+86${to}` } })).results[0].code;
  const [own, next, other] = [newPhone(), newPhone(), newPhone()];
  await calls.send('requestSmsCode', {
    body: { mobilePhoneNumber: own, ttl: 10, name: 'News', op: 'login' },
  });
  const smsCode = await codeTo(own);
  const { sessionToken } = await calls.send('signInByPhone', {
    body: { mobilePhoneNumber: own, smsCode },
  });
  await calls.send('requestSmsCode', { body: { mobilePhoneNumber: other } });
  await calls.send('verifySmsCode', {
    path: { code: await codeTo(other) },
    body: { mobilePhoneNumber: other },
  });
  await calls.send('requestPhoneChange', {
    session: sessionToken,
    body: { mobilePhoneNumber: next, ttl: 10 },
  });
  await calls.send('changePhone', {
    session: sessionToken,
    body: { mobilePhoneNumber: next, code: await codeTo(next) },
  });
  await recordCodesOfAccounts(calls, codeTo);
}

async function recordCodesOfAccounts(
  calls: ExampleRecorder,
  codeTo: (to: string) => Promise<string>,
): Promise<void> {
  const signUp = async () => {
    const mobilePhoneNumber = newPhone();
    const body = { username: `user-${mobilePhoneNumber}`, password, mobilePhoneNumber };
    return { mobilePhoneNumber, id: (await calls.send('signUp', { body })).objectId };
  };
  const signUpVerified = async () => {
    const { mobilePhoneNumber, id } = await signUp();
    await calls.send('verifyUser', { path: { id }, body: { contact: 'mobilePhoneNumber' } });
    return mobilePhoneNumber;
  };
  const { mobilePhoneNumber: verified } = await signUp();
  await calls.send('requestPhoneVerification', { body: { mobilePhoneNumber: verified } });
  await calls.send('verifyPhone', {
    path: { code: await codeTo(verified) },
    body: { mobilePhoneNumber: verified },
  });
  await calls.send('requestLoginCode', { body: { mobilePhoneNumber: await signUpVerified() } });
  for (const operation of ['resetPasswordByCode', 'resetPasswordByCodeWithPost']) {
    const mobilePhoneNumber = await signUpVerified();
    await calls.send('requestPasswordResetCode', { body: { mobilePhoneNumber } });
    await calls.send(operation, {
      path: { code: await codeTo(mobilePhoneNumber) },
      body: { mobilePhoneNumber, password: 'staple of batteries' },
    });
  }
}

/** Records captchas and repeated messages. */
export async function recordCaptchas(calls: ExampleRecorder, service: TestService): Promise<void> {
  const { app } = calls;
  calls.app = await service.api.createApp({ captchaForSms: true });
  const { captcha_token } = await calls.send('requestCaptcha', {
    query: { width: 100, height: 40, ttl: 60 },
  });
  const { code } = await calls.send('revealCaptcha', { path: { token: captcha_token } });
  await calls.send('verifyCaptcha', { body: { captcha_code: code, captcha_token } });
  calls.app = app;
  await calls.send('getSmsState');
  const fail = () => changeMessages(service.db, app, { state: 'failed' });
  await fail();
  const { results } = await calls.send('listOutbox', { query: { state: 'failed', limit: 20 } });
  await calls.send('retryMessage', { path: { id: String(results[0].id) } });
  await fail();
  await calls.send('explainMessageRedrive', { body: { kind: 'mail', state: 'failed' } });
  await calls.send('redriveMessages', { body: { kind: 'mail', state: 'failed' } });
}

/** Records installations, from the perspective of clients and operators. */
export async function recordInstallations(calls: ExampleRecorder): Promise<void> {
  const device = {
    deviceType: 'ios',
    deviceToken: 'd4'.repeat(32),
    channels: ['news'],
    timeZone: 'Asia/Shanghai',
  };
  const { objectId } = await calls.send('registerInstallation', { body: device });
  const path = { objectId };
  const channels = { __op: 'AddUnique', objects: ['sport'] };
  await calls.send('updateInstallation', { path, body: { channels, badge: 0 } });
  await calls.send('getInstallation', { path });
  const where = JSON.stringify({ channels: 'news' });
  const zone = JSON.stringify({ timeZone: device.timeZone });
  await calls.send('scanClass', {
    master: true,
    path: { className: '_Installation' },
    query: { where: zone, limit: '100' },
  });
  await calls.send('listAppInstallations', { query: { limit: 20, where, count: 'all' } });
  await calls.send('getAppInstallation', { path: { id: objectId } });
  await calls.send('updateAppInstallation', {
    path: { id: objectId },
    body: { channels: ['news', 'test'] },
  });
  await calls.send('suggestFields', { query: { prefix: 'device' } });
  await calls.send('suggestChannels', { query: { prefix: 'ne' } });
  await calls.send('deleteInstallation', { path });
  const old = {
    deviceType: 'android',
    installationId: '2c4e6a80-1b3d-4f5a-8c7e-9d0b1a2c3e4f',
    beta: true,
  };
  const { objectId: id } = await calls.send('registerInstallation', { body: old });
  await calls.send('deleteAppInstallation', { path: { id } });
  await calls.send('registerInstallation', { body: old });
  await calls.send('deleteMatchingInstallations', { body: { where: { beta: true }, expected: 1 } });
}

/** Records batches, and functions of a host. */
export async function recordBatches(calls: ExampleRecorder): Promise<void> {
  const post = (path: string, body: object) => ({ method: 'POST', path, body });
  const watch = { deviceType: 'watchos', deviceToken: 'e5'.repeat(32) };
  const requests = [post('/1.1/installations', watch), { method: 'GET', path: '/1.1/date' }];
  await calls.send('runBatch', { body: { requests } });
  const user = { __internalId: 'new-user', username: 'dong', password };
  await calls.send('saveBatch', { body: { requests: [post('/1.1/users', user)] } });
  await calls.send('runFunction', { path: { name: 'averageStars' }, body: { movie: 'Contact' } });
  await calls.send('callFunction', { path: { name: 'averageStars' }, body: { movie: 'Contact' } });
  await calls.send('listFunctions', { master: true });
}
