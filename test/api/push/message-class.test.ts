import { beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../../shared/clock.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { useTestApi } from '../../support/test-api.ts';

const api = useTestApi();
let app: App;
beforeAll(async () => {
  app = await api.createApp();
  const body = { deviceType: 'android', installationId: 'device-1' };
  await api.request('POST', '/1.1/installations', { app, body });
});

const data = { alert: 'On its way', image: 'https://example.com/a.png' };
const later = () => new Date(systemClock.now() + 3_600_000).toISOString();
const byMaster = (path: string, body: object) =>
  api.request('POST', path, { app, master: true, body });
const byAdmin = (method: 'GET' | 'POST', path: string, body?: object) =>
  api.request(method, `/console/api/apps/${app.appId}${path}`, { admin: true, body });

/** Ways to send a push. Each returns the status and body of its reply. */
const forms: Record<string, (members: object) => ReturnType<typeof api.request>> = {
  push: (members) => byMaster('/1.1/push', { data, where: {}, ...members }),
  'a scheduled push': (members) =>
    byMaster('/1.1/push', { data, where: {}, push_time: later(), ...members }),
  'a push to devices': (members) =>
    byMaster('/1.1/push/devices', {
      data,
      device_type: 'android',
      device_ids: ['device-1'],
      ...members,
    }),
  'a push of an operator': (members) => byAdmin('POST', '/push', { data, where: {}, ...members }),
  'a dry run': (members) => byAdmin('POST', '/push/explain', { data, where: {}, ...members }),
  'a recurring push': (members) =>
    byAdmin('POST', '/recurring-pushes', {
      name: `n${systemClock.now()}`,
      expression: '0 9 * * *',
      timeZone: 'UTC',
      body: { data, where: {}, ...members },
    }),
};

describe.each(Object.keys(forms))('%s', (name) => {
  const send = (members: object) => forms[name]?.(members);

  test('takes a class', async () => {
    for (const one of ['order', null]) {
      const reply = await send({ class: one });
      expect(reply?.status, JSON.stringify(reply?.body)).toBeLessThan(300);
    }
  });

  test.each([['chat'], ['default'], [7], [['im']], [{ im: 1 }], [true]])(
    'refuses the class %j with the known ones',
    async (one) => {
      const reply = await send({ class: one });
      expect(reply).toMatchObject({ status: 400 });
      expect(reply?.body.error).toMatch(/class: expected one of im, call, .*, marketing/);
    },
  );

  test('refuses a picture, a link or buttons of another form', async () => {
    for (const [member, value] of Object.entries({ image: 'a.png', url: {}, buttons: [7] })) {
      const reply = await send({ data: { ...data, [member]: value } });
      expect(reply).toMatchObject({ status: 400, body: { code: 111 } });
      expect(reply?.body.error).toMatch(new RegExp(`data\\.${member}.*data\\.custom`));
    }
  });
});

test('the record of an operator has the class', async () => {
  const { body } = await byMaster('/1.1/push', { data, where: {}, class: 'order' });
  const record = await byAdmin('GET', `/notifications/${body.objectId}`);
  expect(record.body.request).toMatchObject({ messageClass: 'order' });
});
