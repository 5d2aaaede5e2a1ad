import AV from 'leancloud-storage';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { npmVersion } from '../../../ops/check/toolchains.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { testTableRow } from '../../support/clients/table-row.ts';
import { useTestApi } from '../../support/test-api.ts';
import { newName } from '../../support/users.ts';

/**
 * Tests queries, batches and pushes of the unmodified JavaScript SDK on users and installations.
 */
let app: App;
let ann: AV.User;
const asMaster = { useMasterKey: true };

const api = useTestApi();
beforeAll(async () => {
  app = await api.createApp();
  const { appId, appKey, masterKey } = app;
  AV.init({ appId, appKey, masterKey, serverURL: api.url });
  ann = await AV.User.signUp(newName(), 'a password', { cities: ['Rome', 'Oslo'] });
  const devices = [
    { n: 1, city: 'Rome', owner: ann, at: new AV.GeoPoint(41.9, 12.5) },
    { n: 2, city: 'Paris', at: new AV.GeoPoint(48.8, 2.3) },
    { n: 3, city: 'Oslo', tags: ['a', 'b'] },
  ];
  const objects = devices.map((device, i) => {
    const object = new AV.Object('_Installation');
    return object.set({ deviceType: 'android', installationId: `js-${i}`, ...device });
  });
  await AV.Object.saveAll(objects);
});
afterAll(async () => {
  await AV.User.logOut();
});

const query = () => new AV.Query<AV.Installation>('_Installation').ascending('n');
const numbersOf = async (found: AV.Query<AV.Installation>) =>
  (await found.find(asMaster)).map((one) => one.get('n'));

describe('a query', () => {
  test('finds by each kind of condition', async () => {
    expect(await numbersOf(query().equalTo('owner', ann))).toEqual([1]);
    expect(await numbersOf(query().equalTo('owner', ann).exists('owner'))).toEqual([1]);
    expect(await numbersOf(query().containsAll('tags', ['a', 'b']))).toEqual([3]);
    expect(await numbersOf(query().startsWith('city', 'Par').greaterThan('n', 1))).toEqual([2]);
    const box = [new AV.GeoPoint(48, 2), new AV.GeoPoint(49, 3)] as const;
    expect(await numbersOf(query().withinGeoBox('at', ...box))).toEqual([2]);
    const users = new AV.Query('_User');
    expect(await numbersOf(query().matchesKeyInQuery('city', 'cities', users))).toEqual([1, 3]);
    expect(
      await numbersOf(AV.Query.or(query().equalTo('n', 1), query().equalTo('n', 3))),
    ).toHaveLength(2);
  });

  test('includes, selects, counts and scans', async () => {
    const found = await query()
      .include('owner', 'city')
      .select('owner')
      .equalTo('n', 1)
      .first(asMaster);
    expect(found?.get('owner').get('username')).toBe(ann.getUsername());
    expect(await query().exists('at').count(asMaster)).toBe(2);
    const seen: number[] = [];
    const scan = new AV.Query('_Installation').scan({ orderedBy: 'n', batchSize: 1 }, asMaster);
    for (;;) {
      const { value, done } = await scan.next();
      if (done) break;
      seen.push(value.get('n'));
    }
    expect(seen).toEqual([1, 2, 3]);
  });

  test('may be a CQL statement with values', async () => {
    const cql = 'select count(objectId), * from _User where username = ?';
    const found = await AV.Query.doCloudQuery(cql, [ann.getUsername()], asMaster);
    expect(found).toMatchObject({ results: [{ id: ann.id }], count: 1 });
  });
});

test('can be the target of a push', async () => {
  const sent = await AV.Push.send(
    { data: { alert: 'x' }, where: query().equalTo('n', 1) },
    asMaster,
  );
  expect(sent).toMatchObject({ objectId: expect.any(String), createdAt: expect.any(String) });
  expect(sent).not.toHaveProperty('warnings');
});

test('the time of the server is a date', async () => {
  expect(await AV.Cloud.getServerDate()).toBeInstanceOf(Date);
});

testTableRow({
  name: 'JavaScript (`leancloud-storage`, npm)',
  version: npmVersion('leancloud-storage'),
  topics: ['queries', 'installations', 'push'],
});
