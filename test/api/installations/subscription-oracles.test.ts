/** Conditions of clients cannot test the endpoint or the keys of a Web Push subscription. */
import { beforeAll, describe, expect, test } from 'vitest';
import { browserOf, subscriptionOf } from '../../../ops/sandbox/webpush/browser.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { useTestApi } from '../../support/test-api.ts';

const api = useTestApi();
const subscription = subscriptionOf(browserOf('ab'.repeat(32)));
const { endpoint, keys } = subscription;
const phone = {
  deviceType: 'android',
  vendor: 'fcm',
  registrationId: 'fcm-token-1',
  installationId: 'phone-1',
};
let app: App;
let browser: string;

beforeAll(async () => {
  app = await api.createApp({
    allowInstallationQuery: true,
    allowUserQuery: true,
    allowInstallationDelete: true,
    forbidClientPush: false,
  });
  const path = `/console/api/apps/${app.appId}/profiles/webpush/_default`;
  const body = { subject: 'mailto:push@example.com' };
  expect((await api.request('PUT', path, { admin: true, body })).status).toBe(200);
  const registered = await api.request('POST', '/1.1/installations', {
    app,
    body: { deviceType: 'web', subscription, channels: ['all'] },
  });
  expect(registered.status).toBe(201);
  browser = String(registered.body.objectId);
  const other = await api.request('POST', '/1.1/installations', {
    app,
    body: { ...phone, channels: ['all'] },
  });
  expect(other.status).toBe(201);
});

/** Conditions that are true for the browser if its endpoint or keys could be tested. */
const conditions: Record<string, object> = {
  equality: { registrationId: endpoint },
  $eq: { registrationId: { $eq: endpoint } },
  $in: { registrationId: { $in: [endpoint, 'x'] } },
  '$in with one': { registrationId: { $in: [endpoint] } },
  $all: { registrationId: { $all: [endpoint] } },
  $regex: { registrationId: { $regex: 'wp|wpush|Q|w' } },
  $exists: { registrationId: { $exists: true }, deviceType: 'web' },
  'not $exists': { registrationId: { $exists: false }, deviceType: 'android' },
  $gt: { registrationId: { $gt: '' }, deviceType: 'web' },
  $lte: { registrationId: { $lte: '~' }, deviceType: 'web' },
  $or: { $or: [{ registrationId: endpoint }, { registrationId: { $regex: '^https://[^f]' } }] },
  $and: { $and: [{ registrationId: { $gte: endpoint } }, { deviceType: 'web' }] },
  '$or of $and': { $or: [{ $and: [{ deviceType: 'web' }, { registrationId: endpoint }] }] },
  'subscription equality': { subscription },
  'subscription.endpoint': { 'subscription.endpoint': endpoint },
  'subscription.keys.auth': { 'subscription.keys.auth': { $regex: '.' } },
  'subscription $exists': { subscription: { $exists: true } },
  'subscription.keys $exists': { 'subscription.keys': { $exists: true } },
};
/** Conditions that negate a test. They match the browser, as any device without the member. */
const negations: Record<string, object> = {
  $ne: { registrationId: { $ne: endpoint }, deviceType: 'web' },
  $nin: { registrationId: { $nin: [endpoint] }, deviceType: 'web' },
  null: { registrationId: null, deviceType: 'web' },
  '$exists false': { registrationId: { $exists: false }, deviceType: 'web' },
  'subscription $ne': { subscription: { $ne: subscription }, deviceType: 'web' },
};

const get = async (query: Record<string, string>, master = false) =>
  api.request('GET', `/1.1/installations?${new URLSearchParams(query)}`, { app, master });
const idsOf = ({ body }: { body: { results?: { objectId: string }[] } }) =>
  (body.results ?? []).map(({ objectId }) => objectId);

describe.each(Object.entries(conditions))('%s', (_, where) => {
  test('finds and counts no browser in a list', async () => {
    const reply = await get({ where: JSON.stringify(where), count: '1' });
    expect(reply.status).toBe(200);
    expect(idsOf(reply)).not.toContain(browser);
    expect(reply.body.count).toBe(idsOf(reply).length);
  });

  test('finds no browser in a subquery', async () => {
    const inner = { className: '_Installation', where, key: 'objectId' };
    for (const outer of [
      { objectId: { $select: { key: 'objectId', query: inner } } },
      { $or: [{ objectId: { $select: { key: 'objectId', query: inner } } }, { n: 1 }] },
    ]) {
      const reply = await get({ where: JSON.stringify(outer) });
      expect(idsOf(reply)).not.toContain(browser);
    }
  });

  test('is no condition of an update or a deletion', async () => {
    const path = `/1.1/installations/${browser}?where=${encodeURIComponent(JSON.stringify(where))}`;
    const update = await api.request('PUT', path, { app, body: { n: 2 } });
    expect(update.body).toMatchObject({ code: 305 });
    const deletion = await api.request('DELETE', path, { app });
    expect(deletion.body).toMatchObject({ code: 305 });
  });

  test('reaches no browser by a push', async () => {
    const path = `/console/api/apps/${app.appId}/push/explain`;
    const body = { where, data: { alert: 'x' } };
    const reply = await api.request('POST', path, { admin: true, body });
    expect(reply.status, JSON.stringify(reply.body)).toBe(200);
    expect(JSON.stringify(reply.body)).not.toContain('"webpush"');
  });
});

test('a push to the browser by its type reaches it', async () => {
  const path = `/console/api/apps/${app.appId}/push/explain`;
  const body = { where: { deviceType: 'web' }, data: { alert: 'x' } };
  const reply = await api.request('POST', path, { admin: true, body });
  expect(JSON.stringify(reply.body)).toContain('"webpush"');
});

test.each(Object.entries(negations))('%s matches as for a device without it', async (_, where) => {
  expect(idsOf(await get({ where: JSON.stringify(where) }))).toEqual([browser]);
});

test.each([
  ['registrationId', [phone.registrationId, undefined]],
  ['subscription', [undefined, undefined]],
])('keys and order of %s show nothing of a browser', async (member, expected) => {
  const reply = await get({ keys: member, order: `-${member}`, include: member });
  const results = reply.body.results as Record<string, unknown>[];
  expect(results.map((one) => one[member])).toEqual(expected);
  const selected = await get({
    where: JSON.stringify({
      name: { $dontSelect: { key: member, query: { className: '_Installation', where: {} } } },
    }),
  });
  expect(selected.status).toBe(200);
});

test('$select returns no endpoint', async () => {
  const changed = await api.request('PUT', `/1.1/installations/${browser}`, {
    app,
    body: { guess: endpoint },
  });
  expect(changed.status).toBe(200);
  const query = { className: '_Installation', where: { deviceType: 'web' } };
  for (const key of ['registrationId', 'subscription.endpoint', 'subscription']) {
    const where = { guess: { $select: { key, query } } };
    expect(idsOf(await get({ where: JSON.stringify(where) }))).toEqual([]);
  }
});

test.each([
  `select * from _Installation where registrationId = '${endpoint}'`,
  `select * from _Installation where registrationId like 'https://%' and deviceType = 'web'`,
  `select count(*) from _Installation where registrationId = '${endpoint}'`,
  `select registrationId, subscription from _Installation where deviceType = 'web' order by registrationId`,
])('CQL %s', async (cql) => {
  const reply = await api.request('GET', `/1.1/cloudQuery?${new URLSearchParams({ cql })}`, {
    app,
  });
  expect(JSON.stringify(reply.body)).not.toContain(endpoint);
  expect(reply.body.count ?? 0).toBe(0);
});

test('registrationId of other devices is found as before', async () => {
  for (const value of [
    phone.registrationId,
    { $regex: 'fcm' },
    { $in: [phone.registrationId, 'y'] },
  ]) {
    const reply = await get({ where: JSON.stringify({ registrationId: value }) });
    expect(idsOf(reply)).toHaveLength(1);
  }
});

test('the master key reads the subscription, and keys are never conditions', async () => {
  const reply = await get({ where: JSON.stringify({ deviceType: 'web' }) }, true);
  expect(reply.body.results[0].subscription).toMatchObject({ endpoint, keys });
});
