import fc from 'fast-check';
import { member, where } from './conditions.ts';
import { cql } from './statements.ts';
import { dictionaryOf, members, number, text, value } from './values.ts';

/**
 * Plausible bodies for routes whose schema accepts any dictionary. They contain the members that
 * the services read.
 */

/** Returns mostly one of these values, so that a body passes most checks, and rarely any value. */
const usual = (...values: unknown[]): fc.Arbitrary<unknown> =>
  fc.oneof({ weight: 7, arbitrary: fc.constantFrom(...values) }, { weight: 1, arbitrary: value });
const mostly = (arbitrary: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> =>
  fc.oneof({ weight: 7, arbitrary }, { weight: 1, arbitrary: value });

/** Returns dictionaries with some of these members, rarely with other members too. */
function someOf(model: Record<string, fc.Arbitrary<unknown>>): fc.Arbitrary<unknown> {
  const more = fc.oneof(
    { weight: 5, arbitrary: fc.constant({}) },
    { weight: 1, arbitrary: members },
  );
  return fc
    .tuple(fc.record(model, { requiredKeys: [] }), more)
    .map(([own, others]) => dictionaryOf([...Object.entries(own), ...Object.entries(others)]));
}

const phone = fc.oneof(fc.constantFrom('+8613800138000', '13800138000', '+14155550100'), text);
const email = fc.oneof(fc.constantFrom('fuzz@example.com', 'a@b.cn'), text);
const secret = fc.oneof(fc.constantFrom('secret', ''), value);
const [hour, day] = [3_600_000, 86_400_000].map((ms) => new Date(Date.now() + ms).toISOString());
const authData = fc.oneof(
  value,
  fc
    .tuple(
      fc.constantFrom('weixin', 'qq', 'weibo', 'github', 'anonymous', 'lc_apple', '__proto__'),
      value,
    )
    .map((entry) => dictionaryOf([entry])),
  fc.record({
    github: fc.record({ uid: text, access_token: text, unionid: text, main_account: value }),
  }),
  fc.record({
    lc_apple: fc.record({ uid: text, identity_token: text, code: text }, { requiredKeys: [] }),
  }),
);
const acl = fc.oneof(value, fc.record({ '*': fc.record({ read: value, write: value }) }));

const userMembers = {
  username: usual('fuzz', 'actor', 'victim', '中'),
  // Mostly refused before hashing, because hashing takes longer than the rest of a request.
  password: fc.oneof(
    { weight: 9, arbitrary: fc.constantFrom('', ' ', 5, null, [], {}) },
    { weight: 1, arbitrary: text },
  ),
  email: mostly(email),
  mobilePhoneNumber: mostly(phone),
  authData: mostly(authData),
  ACL: mostly(acl),
  smsCode: usual('123456'),
  a: value,
  owner: value,
};

const installationMembers = {
  deviceType: usual('ios', 'android', 'web'),
  deviceToken: usual('a'.repeat(64), 'token'),
  installationId: usual('device-1', 'device-2'),
  registrationId: usual('r-1', ''),
  channels: usual(
    ['news'],
    [],
    { __op: 'AddUnique', objects: ['a'] },
    { __op: 'Remove', objects: ['a'] },
  ),
  badge: usual(0, 5, -1, { __op: 'Increment', amount: 1 }, { __op: 'Increment', amount: 2 ** 31 }),
  valid: usual(true, false),
  vendor: usual('mi', 'HMS', 'oppo', 'vendor_a'),
  deviceProfile: usual('', 'main', '_default'),
  timeZone: usual('Asia/Shanghai', ''),
  apnsTopic: usual('com.example.app', ''),
  a: value,
  b: value,
};

const memberChange = fc.record({
  __op: fc.constantFrom('AddRelation', 'RemoveRelation', 'Batch', 'Add', 'Delete'),
  objects: mostly(
    fc.array(
      fc.record({
        __type: fc.constant('Pointer'),
        className: usual('_User', '_Role'),
        objectId: text,
      }),
      {
        maxLength: 3,
      },
    ),
  ),
  ops: value,
});
const roleMembers = {
  name: usual('fuzz', 'a b', 'constructor', '中'),
  ACL: mostly(
    fc.constantFrom({ '*': { read: true, write: true } }, { 'role:fuzz': { write: true } }),
  ),
  users: mostly(memberChange),
  roles: mostly(memberChange),
  a: value,
};

/** Installations with the members that a creation needs, or with fewer members for changes. */
const installationBody = fc.oneof(
  someOf(installationMembers),
  someOf(installationMembers).map((rest) => ({
    deviceType: 'android',
    installationId: 'device-3',
    ...Object(rest),
  })),
);

const vendorData = fc.oneof(
  members,
  fc.record(
    { alert: usual('a', { title: 'a', body: 'b' }), title: value, badge: value, sound: value },
    { requiredKeys: [] },
  ),
);
const pushData = fc.oneof(
  { weight: 3, arbitrary: fc.record({ alert: usual('Hello', '中', { title: 'a', body: 'b' }) }) },
  { weight: 1, arbitrary: vendorData },
  {
    weight: 1,
    arbitrary: fc.record(
      { ios: vendorData, android: vendorData, mi: vendorData },
      { requiredKeys: [] },
    ),
  },
  { weight: 1, arbitrary: value },
);
const pushMembers = {
  where: mostly(where),
  channels: usual('news', ['news', 'sport'], []),
  prod: usual('dev', 'prod'),
  push_time: usual(hour, day, '2020-01-01T00:00:00Z'),
  expiration_time: usual(day, { __type: 'Date', iso: day }),
  expiration_interval: usual(60, '3600'),
  req_id: fc.stringMatching(/^[a-z0-9]{1,6}$/),
  notification_id: fc.stringMatching(/^[a-z0-9]{1,6}$/),
  flow_control: usual(0, 1000, 1e9),
  topic: usual('com.example.app'),
};
const withData = (more: Record<string, fc.Arbitrary<unknown>>) =>
  fc.tuple(pushData, someOf(more)).map(([data, rest]) => ({ data, ...Object(rest) }));
const pushBody = fc.oneof(
  { weight: 4, arbitrary: withData(pushMembers) },
  { weight: 1, arbitrary: withData({ ...pushMembers, where: fc.constant(null), cql }) },
);
const deviceList = fc
  .tuple(
    withData(pushMembers),
    usual('ios', 'android'),
    usual(['a'.repeat(64)], ['x', 'y'], []),
    someOf({ device_profile: usual('main'), vendor: usual('mi'), channel: usual('c') }),
  )
  .map(([rest, device_type, device_ids, more]) => ({
    ...rest,
    device_type,
    device_ids,
    ...Object(more),
  }));

const innerPath = fc.oneof(
  fc.constantFrom(
    '/1.1/users',
    '/1.1/classes/_User',
    '/1.1/classes/_Installation',
    '/1.1/classes/_Role',
    '/1.1/push',
    '/1.1/batch',
    '/1.1/date',
  ),
  fc.constantFrom(
    '/1.1/functions/x',
    '/1.1/call/x',
    '/1.1/users/me',
    '/1.1/login?a=%ff',
    '/1.1/users/%',
    '//1.1/date',
  ),
  fc.constantFrom(
    '/console/api/apps',
    '/healthz',
    '/1.1/../console/api/apps',
    '',
    '/1.1/cloudQuery?cql=select',
  ),
  text,
);
const innerCall = fc.record(
  {
    method: fc.oneof(fc.constantFrom('GET', 'POST', 'PUT', 'DELETE'), value),
    path: fc.oneof(innerPath, value),
    params: value,
    body: value,
  },
  { requiredKeys: [] },
);
const saved = fc.record(
  {
    method: fc.constantFrom('POST', 'PUT', 'DELETE'),
    path: innerPath,
    body: fc.oneof(
      members,
      fc.record({ __internalId: text, __children: value, a: value }, { requiredKeys: [] }),
    ),
  },
  { requiredKeys: [] },
);

const codeMembers = {
  mobilePhoneNumber: mostly(phone),
  validate_token: value,
  ttl: usual(1, 10),
  smsType: usual('sms', 'voice'),
  name: usual('Carillon'),
  op: usual('login'),
  template: usual('welcome', '__proto__'),
  sign: usual('Fuzz'),
};

const credentials = {
  auth: usual('token', 'certificate'),
  teamId: usual('TEAM123456'),
  keyId: usual('KEY1234567'),
  privateKey: value,
  topics: usual(['com.example.app']),
  appId: usual('1'),
  appSecret: usual('s'),
  packageName: usual('com.example'),
  serviceAccount: value,
  endpoint: usual('https://127.0.0.1:1'),
  ca: value,
};

/** Bodies by the path of the route. The first match counts. */
const models: [RegExp, fc.Arbitrary<unknown>][] = [
  [/\/push\/devices$/, deviceList],
  [/\/push(\/explain)?$/, pushBody],
  [
    /\/audience$/,
    someOf({
      where: mostly(where),
      cql: mostly(cql),
      channels: usual(['news'], 'news'),
      device_ids: usual(['a'.repeat(64)]),
      device_type: usual('ios', 'android'),
      sample: usual(0, 5),
      clauses: usual(true, false),
    }),
  ],
  [/\/batch$/, fc.record({ requests: mostly(fc.array(innerCall, { maxLength: 4 })) })],
  [/\/batch\/save$/, fc.record({ requests: mostly(fc.array(saved, { maxLength: 4 })) })],
  [
    /updatePassword|resetPassword/,
    someOf({
      old_password: secret,
      new_password: secret,
      password: secret,
      mobilePhoneNumber: phone,
    }),
  ],
  [/requestEmailVerify|requestPasswordReset$/, someOf({ email: mostly(email) })],
  [/Sms|sms|Phone/, someOf({ ...codeMembers, code: value, smsCode: value })],
  [/Captcha/, someOf({ captcha_code: value, captcha_token: value })],
  [/nstallation/, installationBody],
  [/[rR]ole/, someOf(roleMembers)],
  [/[uU]ser|login/, someOf(userMembers)],
  [/profiles/, someOf(credentials)],
];

/** Returns plausible bodies for a path, or any dictionary for other paths. */
export const bodiesFor = (path: string): fc.Arbitrary<unknown> =>
  models.find(([form]) => form.test(path))?.[1] ?? members;

/** Query parameters of all routes. */
export const queryMembers: Record<string, fc.Arbitrary<unknown>> = {
  where,
  cql,
  pvalues: value,
  order: member,
  keys: fc.oneof(member, fc.constantFrom('a,b', '-a,b', ',', 'a.b.c.d')),
  include: fc.oneof(member, fc.constantFrom('owner', 'owner.owner.owner.owner')),
  limit: fc.oneof(number, text),
  skip: fc.oneof(number, text),
  count: fc.constantFrom('1', '0', 'x'),
  scan_key: member,
  cursor: text,
  session_token: text,
  redirectClassNameForKey: fc.constantFrom('users', 'roles', 'name', '__proto__'),
  failOnNotExist: fc.constantFrom('true', '1', 'x'),
  fetchWhenSave: fc.constantFrom('true', 'x'),
  new: fc.constantFrom('true', 'x'),
  returnACL: fc.constantFrom('true', 'x'),
  appId: text,
  token: text,
  width: fc.oneof(number, text),
  size: fc.oneof(number, text),
  day: fc.oneof(fc.constantFrom('2026-01-01', '0000-00-00', '9999-12-31'), text),
  kind: fc.constantFrom('sms', 'mail', 'x'),
  to: text,
};
