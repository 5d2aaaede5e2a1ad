import { afterAll, beforeAll, expect, test } from 'vitest';
import type { App } from '../../shared/domain/app.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { signUp } from '../support/users.ts';

let service: TestService;
let app: App;

beforeAll(async () => {
  service = await startTestService();
  app = await service.api.createApp();
  await service.addApnsProfile(app);
  const owner = await signUp(service.api, app, { level: 3 });
  const pointer = { __type: 'Pointer', className: '_User', objectId: owner.id };
  const at = (latitude: number) => ({ __type: 'GeoPoint', latitude, longitude: 0 });
  await service.addIosInstallations(app, 1, { owner: pointer, at: at(1), city: 'a' });
  await service.addIosInstallations(app, 2, { owner: pointer, at: at(2), city: 'b' });
  await service.addIosInstallations(app, 4, { at: at(80), city: 'b' });
  await service.dispatch();
});
afterAll(() => service?.close());

const near = {
  $nearSphere: { __type: 'GeoPoint', latitude: 0, longitude: 0 },
  $maxDistanceInKilometers: 300,
};
const users = { className: '_User', where: { level: { $gt: 2 } } };

test.each<[string, object, number]>([
  ['$inQuery', { where: { owner: { $inQuery: users } } }, 3],
  ['$notInQuery', { where: { owner: { $notInQuery: users } } }, 4],
  [
    '$select',
    { where: { city: { $select: { key: 'city', query: { className: '_Installation', limit: 1 } } } } },
    1,
  ],
  ['$nearSphere', { where: { at: near } }, 3],
  ['a list and a channel-less rest', { where: [{ at: near }, { city: 'b' }] }, 2],
  ['a condition as text', { where: JSON.stringify({ city: 'a' }) }, 1],
  ['cql', { cql: "select * from _Installation where city = 'b' and owner is exists" }, 2],
])('a push reaches what %s means', async (_name, targets, devices) => {
  const { body } = await service.api.request('POST', '/1.1/push', {
    app,
    master: true,
    body: { ...targets, data: { alert: 'hi' } },
  });
  const record = await service.untilDone(app, body.objectId);
  expect(record).toMatchObject({ status: 'done', devices, outcomes: { sent: devices } });
});
