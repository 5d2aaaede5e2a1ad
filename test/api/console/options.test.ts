import { beforeAll, describe, expect, test } from 'vitest';
import {
  type AppOptions,
  type AppOptionsPatch,
  allOptions,
  effectiveOptions,
  operatorOptions,
  ownerOptions,
} from '../../../shared/domain/apps/app.ts';
import { useTestApi } from '../../support/test-api.ts';
import { type ConsoleCall, callerOf } from './callers.ts';

const api = useTestApi();
let operator: ConsoleCall;
beforeAll(async () => {
  operator = await callerOf(api, 'operator', { name: 'Operator' });
});

const usual = effectiveOptions('commercial', {});

/** A non-default value of each option. */
const others: AppOptionsPatch = {
  quietHours: '22:00-08:00',
  defaultTimeZone: 'Asia/Shanghai',
  devicePushesPerDay: 5,
  approvalAboveDevices: 100,
  unknownOutcome: 'fail',
  receiptUrlGeneration: 1,
  smsCountries: ['CN'],
  functionsUrl: 'https://attacker.example',
  functionsStagingUrl: 'https://attacker.example',
  authPlatforms: { weixin: { appId: 'mine' } },
  mailTemplates: { resetPassword: { subject: 'Hello' } },
  smsBalance: 500,
};

function otherValue(name: string): unknown {
  const chosen = Object.entries(others).find(([key]) => key === name)?.[1];
  const value = Object.entries(usual).find(([key]) => key === name)?.[1];
  if (chosen !== undefined) return chosen;
  if (typeof value === 'boolean') return !value;
  if (typeof value === 'number') return value - 1;
  throw new Error(`the test needs another value of ${name}`);
}

const namesOf = (options: AppOptions) => Object.keys(options);

test('every option is in either the list of operators or the list of owners', () => {
  const listed = [...operatorOptions, ...ownerOptions];
  expect(listed.toSorted()).toEqual(Object.keys(allOptions.shape).toSorted());
  expect(new Set(listed).size).toBe(listed.length);
  for (const name of [
    ...[
      'functionsUrl',
      'functionsStagingUrl',
      'forbidClientPush',
      'approvalAboveDevices',
      'authPlatforms',
    ],
    ...[
      'checkedPlatformsOnly',
      'trustUnverifiedNumbers',
      'allowUserQuery',
      'allowInstallationQuery',
    ],
    'allowInstallationDelete',
  ])
    expect(ownerOptions).toContain(name);
});

describe.each(namesOf(usual))('the option %s', (name) => {
  test('is changed by the roles of its list; all may send an unchanged value', async () => {
    const { appId } = await api.createApp();
    const path = `/apps/${appId}`;
    const before = (await operator('GET', path)).body.options;
    const options = { [name]: otherValue(name) };
    const isOpen = operatorOptions.has(name);
    const reply = await operator('PATCH', path, { body: { options } });
    expect(reply.status).toBe(isOpen ? 200 : 403);
    if (!isOpen) {
      expect(reply.body.error).toBe(`${name}: only an owner changes it.`);
      const mixed = { name: 'New', options: { ...options, hybridPush: true } };
      expect((await operator('PATCH', path, { body: mixed })).status).toBe(403);
      expect((await operator('GET', path)).body).toMatchObject({
        name: 'Test app',
        options: before,
      });
    }
    const asOwner = await api.request('PATCH', `/console/api${path}`, {
      admin: true,
      body: { options },
    });
    expect([asOwner.status, asOwner.body.options[name]]).toEqual([200, options[name]]);
    const savedOptions = (await operator('GET', path)).body.options;
    const unchanged = await operator('PATCH', path, {
      body: { name: 'Renamed', options: savedOptions },
    });
    expect([unchanged.status, unchanged.body.name]).toEqual([200, 'Renamed']);
    const { body } = await api.request('GET', `/console/api${path}`, { admin: true });
    expect(body.options[name]).toEqual(options[name]);
  });
});

test('roles below operator change no option, and a sender creates no app', async () => {
  const { appId } = await api.createApp();
  for (const role of ['viewer', 'sender'] as const) {
    const call = await callerOf(api, role);
    for (const options of [{}, { hybridPush: true }])
      expect((await call('PATCH', `/apps/${appId}`, { body: { options } })).status).toBe(403);
  }
  const created = await operator('POST', '/apps', {
    body: { name: 'x', options: { functionsUrl: 'http://x.test' } },
  });
  expect(created.status).toBe(403);
});

test('the settings page receives the list of options for owners', async () => {
  const { body } = await operator('GET', '/meta');
  expect(body.ownerOptions.toSorted()).toEqual([...ownerOptions].toSorted());
});
