import { beforeAll, describe, expect, test } from 'vitest';
import { requestSchema } from '../../../api/openapi/json-schema.ts';
import { loadRoutes } from '../../../api/route-loader.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { useTestService } from '../../support/service.ts';
import { type ConsoleCall, callerOf } from './callers.ts';

const service = useTestService();
const token = 'fadedcab'.repeat(8);
const phone = '+8613912340001';

type Role = 'viewer' | 'sender' | 'operator';
const callers = {} as Record<Role, ConsoleCall>;
let app: App;
let recurringOf: Record<string, number>;

beforeAll(async () => {
  app = await service.api.createApp({ pushCallsPerMinute: 9600 });
  await service.addApnsProfile(app);
  for (const role of ['viewer', 'sender', 'operator'] as const)
    callers[role] = await callerOf(service.api, role, { name: `Person ${role}` });
  const master = (path: string, body: object) =>
    service.api.request('POST', path, { app, master: true, body });
  const user = await master('/1.1/users', {
    username: 'somebody',
    password: 'p',
    email: 'somebody@example.com',
    mobilePhoneNumber: phone,
    level: 5,
    city: 'Rome',
  });
  const owner = { __type: 'Pointer', className: '_User', objectId: user.body.objectId };
  await master('/1.1/installations', {
    deviceType: 'ios',
    deviceToken: token,
    owner,
    email: 'a@b.test',
    level: 5,
  });
  recurringOf = {};
  for (const role of ['sender', 'operator'] as const) {
    const body = {
      name: role,
      expression: '0 9 * * *',
      timeZone: 'UTC',
      isEnabled: false,
      body: { data },
    };
    const reply = await callers[role]('POST', path('recurring-pushes'), { body });
    expect([reply.status, reply.body]).toEqual([201, expect.any(Object)]);
    recurringOf[role] = reply.body.id;
  }
});

const path = (rest: string) => `/apps/${app.appId}/${rest}`;
const data = { alert: 'x' };
const later = () => new Date(Date.now() + 3_600_000).toISOString();
const activity = {
  event: 'start',
  attributesType: 'Order',
  attributes: {},
  contentState: {},
  alert: { title: 'x' },
};
let serial = 0;

/** Target of a push: a condition or a CQL statement. */
type Target = { where: unknown } | { cql: string };
type Ask = (call: ConsoleCall, target: Target, role: Role) => ReturnType<ConsoleCall>;

/** Calls that accept a condition on installations, by the operation of the route. */
const calls: Record<string, Ask[]> = {
  listAppInstallations: [
    (call, target) =>
      'where' in target
        ? call(
            'GET',
            path(`installations?where=${encodeURIComponent(JSON.stringify(target.where))}`),
          )
        : call('GET', path('installations')),
  ],
  countAudience: [
    (call, target) =>
      call('POST', path('audience'), { body: { ...target, sample: 1, clauses: true } }),
    (call, target) => call('POST', path('audience'), { body: textOf(target) }),
  ],
  explainPush: [
    (call, target) => call('POST', path('push/explain'), { body: { data, ...target } }),
  ],
  sendAppPush: [
    (call, target) => call('POST', path('push'), { body: { data, ...target } }),
    (call, target) => call('POST', path('push'), { body: { data, ...textOf(target) } }),
    (call, target) => call('POST', path('push'), { body: { data, ...target, push_time: later() } }),
    (call, target) =>
      call('POST', path('push'), {
        body: { data, ...target },
        headers: { 'X-Carillon-Explained': 'none' },
      }),
  ],
  startAppLiveActivity: [
    (call, target) => call('POST', path('liveActivities'), { body: { ...activity, ...target } }),
  ],
  putAudience: [
    (call, target) =>
      'where' in target
        ? call('PUT', path('audiences/one'), { body: target })
        : call('PUT', path('push-templates/one'), { body: { body: target } }),
  ],
  putPushTemplate: [
    (call, target) =>
      call('PUT', path('push-templates/one'), { body: { body: { data, ...target } } }),
    (call, target) => call('PUT', path('push-templates/one'), { body: { body: textOf(target) } }),
  ],
  createRecurringPush: [
    async (call, target) => {
      const name = `recurring ${++serial}`;
      const body = { name, expression: '0 9 * * *', timeZone: 'UTC', isEnabled: false };
      const reply = await call('POST', path('recurring-pushes'), {
        body: { ...body, body: { data, ...target } },
      });
      if (reply.status === 201) await call('DELETE', path(`recurring-pushes/${reply.body.id}`));
      return reply;
    },
  ],
  changeRecurringPush: [
    (call, target, role) =>
      call('PATCH', path(`recurring-pushes/${recurringOf[role] ?? recurringOf.operator}`), {
        body: { body: { data, ...target } },
      }),
  ],
};
/** Calls with a condition that only operators may make. */
const callsOfOperators = ['listAppUsers', 'deleteMatchingInstallations'];

/** Calls whose member `body` is the text of an alert. */
const withBodyText = ['changeAppLiveActivity', 'sendAppBroadcast'];

/** A condition may also be a JSON text. */
const textOf = (target: Target): Target =>
  'where' in target ? { where: JSON.stringify(target.where) } : target;

test('every route with a condition is called here', async () => {
  const admin = (await loadRoutes()).filter(({ auth }) => auth === 'admin');
  const taking = admin.filter(({ query, body }) =>
    [query, body].some((schema) => {
      const text = schema ? JSON.stringify(requestSchema(schema)) : '';
      return ['where', 'cql', 'body'].some((name) => text.includes(`"${name}":{`));
    }),
  );
  const names = taking
    .map(({ operation }) => operation)
    .filter((operation) => !withBodyText.includes(operation));
  expect(names.toSorted()).toEqual([...Object.keys(calls), ...callsOfOperators].toSorted());
});

const tokens = ['deviceToken', 'registrationId', 'installationId'];
const personal = ['username', 'email', 'mobilePhoneNumber'];

/** Conditions whose results reveal the values of a member, for any class. */
const tests = (member: string): object[] =>
  [
    { $regex: '^f' },
    { $regex: 'f', $options: 'i' },
    { $gt: 'a' },
    { $gte: 'a' },
    { $lt: 'z' },
    { $lte: 'z' },
    { $in: ['x'] },
    { $nin: ['x'] },
    { $ne: 'x' },
    { $all: ['x'] },
    { $size: 1 },
    { $exists: true },
    null,
    { $select: { key: 'city', query: { className: '_User', where: {} } } },
    { $dontSelect: { key: 'objectId', query: { className: '_Installation', where: {} } } },
  ].map((one) => ({ [member]: one }));

const query = (className: string, more: object) => ({ className, ...more });

/** The same conditions nested in places where a check of names could miss them. */
function nested(className: '_Installation' | '_User', member: string): object[] {
  const where = { [member]: { $regex: '^f' } };
  const at = className === '_User' ? 'owner' : 'objectId';
  return [
    { [at]: { $inQuery: query(className, { where }) } },
    { [at]: { $notInQuery: query(className, { where }) } },
    { [at]: { $inQuery: query(className, { where: { [member]: 'x' } }) } },
    { [at]: { $inQuery: query(className, { where: {}, order: member, limit: 1 }) } },
    {
      [at]: {
        $inQuery: query(className, { where: {}, order: `level,-${member}`, limit: 1, skip: 1 }),
      },
    },
    { level: { $select: { key: member, query: query(className, { where: {} }) } } },
    { level: { $dontSelect: { key: member, query: query(className, { where: {} }) } } },
    { level: { $select: { key: 'level', query: query(className, { where }) } } },
    {
      level: {
        $select: { key: 'level', query: query(className, { where: {}, order: `-${member}` }) },
      },
    },
    {
      objectId: {
        $inQuery: query('_Installation', {
          where: {
            [at]: { $inQuery: query(className, { where: { $or: [{ level: 1 }, where] } }) },
          },
        }),
      },
    },
    { $or: [{ level: 5 }, { [at]: { $inQuery: query(className, { where: { $and: [where] } }) } }] },
  ];
}

const wrapped = (where: object): unknown[] => [
  { $or: [{ level: 1 }, where] },
  { $and: [{ level: 5 }, { $or: [{ $and: [where] }] }] },
  [{ level: 5 }, where],
];

const probes: [string, unknown][] = [
  ...[...tokens, ...personal].flatMap((member): [string, unknown][] => [
    ...tests(member).map((where): [string, unknown] => [member, where]),
    ...wrapped({ [member]: { $regex: '^f' } }).map((where): [string, unknown] => [member, where]),
    ...nested('_Installation', member).map((where): [string, unknown] => [member, where]),
  ]),
  ...personal.flatMap((member): [string, unknown][] => [
    [member, { [member]: 'x' }],
    ...nested('_User', member).map((where): [string, unknown] => [member, where]),
    ...tests(member).map((where): [string, unknown] => [
      member,
      { owner: { $inQuery: query('_User', { where }) } },
    ]),
    [member, { owner: { $inQuery: { where: { [member]: 'x' } } } }],
  ]),
  ['city', { owner: { $inQuery: query('_User', { where: { city: { $regex: '^R' } } }) } }],
  ['city', { owner: { $inQuery: query('_User', { where: { city: { $gt: 'R' } } }) } }],
  ['city', { owner: { $inQuery: query('_User', { where: {}, order: 'city' }) } }],
];

/** Every member as a field, as the order of a subquery, and as its key. */
const essential: [string, unknown][] = [
  ...[...tokens, ...personal].map((member) => ['_Installation', member] as const),
  ...personal.map((member) => ['_User', member] as const),
].flatMap(([className, member]): [string, unknown][] => [
  [member, { [member]: { $regex: '^f' } }],
  [member, { objectId: { $inQuery: query(className, { where: {}, order: member, limit: 1 }) } }],
  [member, { level: { $select: { key: member, query: query(className, { where: {} }) } } }],
]);

/**
 * Returns the probes of a call: all essential probes and a sixth of the others, so that at least
 * two calls get each probe.
 */
const probesOf = (call: number): [string, unknown][] => [
  ...essential,
  ...probes.filter((_, i) => i % 6 === call % 6),
];

const statements = [
  `select * from _Installation where deviceToken regexp '^f'`,
  `select * from _Installation where level = 5 and (level = 1 or registrationId like 'f%')`,
  `select * from _Installation where deviceToken in (select deviceToken from _Installation where level = 5)`,
  `select * from _Installation where level in (select level from _User where mobilePhoneNumber like '+86139%')`,
  `select * from _Installation where level in (select level from _User order by email limit 1)`,
  `select * from _Installation where level in (select email from _User)`,
  `select * from _Installation where installationId is exists`,
  `select * from _Installation where installationId >= 'a'`,
  `select * from _Installation where deviceToken != 'a'`,
];

const entries = Object.entries(calls).flatMap(([operation, asks]) =>
  asks.map((ask, i): [string, Ask] => [`${operation} ${i}`, ask]),
);

test('every probe is sent to at least two calls', () =>
  expect(entries.length).toBeGreaterThanOrEqual(12));

describe.each(entries.map(([name, ask], i) => [name, ask, i] as const))('%s', (name, ask, call) => {
  test.each(['viewer', 'sender'] as const)('answers no probe of a %s', async (role) => {
    const isForRole = (await ask(callers[role], { where: { level: 5 } }, role)).status !== 403;
    for (const [member, where] of probesOf(call)) {
      const reply = await ask(callers[role], { where }, role);
      expect([reply.status, reply.body.code], JSON.stringify(where)).toEqual([403, 403]);
      expect(Object.keys(reply.body)).toEqual(['code', 'error']);
      if (isForRole && role === 'sender')
        expect(reply.body.error, JSON.stringify(where)).toMatch(
          new RegExp(`${member}|order over level`),
        );
    }
    if (name.startsWith('listAppInstallations')) return;
    for (const cql of statements)
      expect((await ask(callers[role], { cql }, role)).status, cql).toBe(403);
  });

  test('answers an operator', async () => {
    for (const where of [
      { deviceToken: { $regex: '^f' } },
      ...nested('_User', 'email'),
      { email: { $gt: 'a' } },
    ]) {
      const reply = await ask(callers.operator, { where }, 'operator');
      expect(reply.status, `${JSON.stringify(where)} ${JSON.stringify(reply.body)}`).toBeLessThan(
        410,
      );
      expect(reply.status).not.toBe(403);
    }
  });

  test('accepts ordinary conditions of a sender, and one whole token', async () => {
    for (const where of [
      {},
      { level: { $gt: 4 } },
      { channels: { $in: ['news'] }, deviceType: 'ios' },
      {
        owner: { $inQuery: query('_User', { where: { level: { $gte: 5 } }, order: '-createdAt' }) },
      },
      { owner: { $inQuery: query('_User', { where: { city: 'Rome' } }) } },
      { city: { $regex: '^R' } },
      ...(name.startsWith('listAppUsers') ? [] : tokens.map((member) => ({ [member]: token }))),
      { $or: [{ deviceToken: token }, { installationId: { $eq: 'x' } }] },
    ]) {
      const reply = await ask(callers.sender, { where }, 'sender');
      expect(reply.status, `${JSON.stringify(where)} ${JSON.stringify(reply.body)}`).not.toBe(403);
      expect(reply.status).toBeLessThan(410);
    }
  });
});

test.each(['authData', 'sessionToken', 'password', 'authData.qq.openid', 'salt'])(
  'no role can name %s of users',
  async (member) => {
    for (const [, ask] of entries)
      for (const role of ['viewer', 'sender', 'operator'] as const) {
        const where = {
          owner: { $inQuery: query('_User', { where: { [member]: { $exists: true } } }) },
        };
        const { status } = await ask(callers[role], { where }, role);
        // An unfinished template is checked only when it is sent.
        const isTemplate = status === 200 && ask.toString().includes('push-templates');
        expect(isTemplate || status === 400 || status === 403, `${role} ${ask} ${status}`).toBe(
          true,
        );
      }
  },
);

test("a sender's variables name no personal data: a dry run counts who has it", async () => {
  const body = (field: string) => ({
    where: {},
    data: { alert: 'Hello {{x}}' },
    variables: { x: { field, default: 'you' } },
  });
  for (const [rest, status] of [
    ['push/explain', 200],
    ['push', 201],
  ] as const) {
    for (const field of ['email', 'mobilePhoneNumber.x', 'username'])
      expect((await callers.sender('POST', path(rest), { body: body(field) })).status, field).toBe(
        403,
      );
    expect((await callers.sender('POST', path(rest), { body: body('city') })).status).toBe(status);
    expect((await callers.operator('POST', path(rest), { body: body('email') })).status).toBe(
      status,
    );
  }
});

test('suggestions for roles below operator contain no personal data', async () => {
  const emailOf = async (role: Role) => {
    const { results } = (await callers[role]('GET', path('fields?prefix=email'))).body;
    return results[0];
  };
  expect(await emailOf('sender')).toMatchObject({ name: 'email', values: [] });
  expect((await emailOf('operator')).values).toMatchObject([{ value: 'a@b.test' }]);
});

describe('a condition that names tokens or personal data', () => {
  const entriesOf = async (actor: string, action: string) => {
    const reply = await service.api.request(
      'GET',
      `/console/api/audit?app=${app.appId}&actor=${encodeURIComponent(actor)}&action=${action}`,
      { admin: true },
    );
    return reply.body.results;
  };

  test.each([
    [
      'installation.list',
      'GET',
      () => path(`installations?where=${encodeURIComponent('{"email":"x","deviceToken":"y"}')}`),
      undefined,
    ],
    [
      'user.list',
      'GET',
      () =>
        path(
          `users?where=${encodeURIComponent('{"email":"x","mobilePhoneNumber":{"$regex":"^[+]86"}}')}`,
        ),
      undefined,
    ],
    [
      'audience.count',
      'POST',
      () => path('audience'),
      { where: { owner: { $inQuery: { where: { email: 'x' } } } } },
    ],
    [
      'push.explain',
      'POST',
      () => path('push/explain'),
      { data, where: { installationId: 'y', username: 'x' } },
    ],
  ] as const)(
    'is audited once an hour as %s, without its values',
    async (action, method, pathOf, body) => {
      const name = `Auditee ${action}`;
      const call = await callerOf(service.api, 'operator', { name });
      for (let i = 0; i < 3; i += 1)
        expect((await call(method, pathOf(), body ? { body } : {})).status).toBe(200);
      const found = await entriesOf(name, action);
      expect(found).toMatchObject([{ action, appId: app.appId, target: app.appId, before: null }]);
      expect(found[0].after.members.length).toBeGreaterThan(0);
      expect(JSON.stringify(found)).not.toMatch(/"[xy]"|\^/);
    },
  );

  test('is audited for a sender that names a whole token, and not otherwise', async () => {
    const call = await callerOf(service.api, 'sender', { name: 'Auditee sender' });
    await call('POST', path('audience'), { body: { where: { level: 5 } } });
    await call('POST', path('audience'), { body: { where: { email: 'x' } } });
    expect(await entriesOf('Auditee sender', 'audience.count')).toEqual([]);
    await call('POST', path('audience'), { body: { where: { deviceToken: token } } });
    expect(await entriesOf('Auditee sender', 'audience.count')).toMatchObject([
      { after: { members: ['deviceToken'] } },
    ]);
  });
});
