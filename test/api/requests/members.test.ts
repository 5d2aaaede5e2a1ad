import { randomBytes } from 'node:crypto';
import { beforeAll, expect, test } from 'vitest';
import { requestSchema } from '../../../api/openapi/json-schema.ts';
import type { Route } from '../../../api/route.ts';
import { loadRoutes } from '../../../api/route-loader.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { isJsonObject, type Json, type JsonObject } from '../../../shared/domain/json.ts';
import { useTestService } from '../../support/service.ts';

/** Sends wrong values in each member of each body and checks which member the refusal names. */
const service = useTestService();

const texts = [
  'x',
  '1',
  '_default',
  'a@b.example',
  '2027-01-31T00:00:00Z',
  '22:00-08:00',
  '+8613800000000',
  'Asia/Shanghai',
  '0 9 * * *',
  'https://example.com',
];

/** Returns a value that matches a schema. It contains only the required members. */
function sampleOf(schema: JsonObject): Json {
  if (schema.const !== undefined) return schema.const;
  if (Array.isArray(schema.enum)) return schema.enum[0] ?? null;
  const [first] = Array.isArray(schema.anyOf) ? schema.anyOf : [];
  if (isJsonObject(first)) return sampleOf(first);
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type;
  if (type === 'string') return textOf(schema);
  if (type === 'integer' || type === 'number') return Math.max(1, Number(schema.minimum ?? 1));
  if (type === 'boolean') return true;
  if (type === 'array') return isJsonObject(schema.items) ? [sampleOf(schema.items)] : [];
  const { required = [], properties } = schema;
  const names = Array.isArray(required) ? required.map(String) : [];
  return Object.fromEntries(names.map((name) => [name, sampleOf(schemaOf(properties, name))]));
}

function schemaOf(properties: Json | undefined, name: string): JsonObject {
  const found = isJsonObject(properties ?? null) ? (properties as JsonObject)[name] : undefined;
  return found !== undefined && isJsonObject(found) ? found : {};
}

function textOf({ pattern, format, minLength = 0 }: JsonObject): string {
  const wanted = typeof pattern === 'string' ? new RegExp(pattern, 'u') : undefined;
  if (format === 'date-time') return '2027-01-31T00:00:00Z';
  if (format === 'uri') return 'https://example.com';
  if (format === 'email') return 'a@b.example';
  return (
    texts.find((text) => wanted?.test(text) ?? text.length >= Number(minLength)) ?? 'xxxxxxxxxx'
  );
}

/** A value of each JSON type. The text cannot be stored. */
const wrongValues: Json[] = ['a\0b', 5, {}, [{}], true];
const typeOf = (value: Json): string => (Array.isArray(value) ? 'array' : typeof value);

/** Returns the types that a schema accepts. A schema for any JSON accepts all types. */
function typesOf(schema: JsonObject): string[] {
  const {
    anyOf,
    type,
    enum: values = schema.const === undefined ? undefined : [schema.const],
  } = schema;
  if (Array.isArray(anyOf)) return anyOf.filter(isJsonObject).flatMap(typesOf);
  if (Array.isArray(values)) return values.map(typeOf);
  const types = type === undefined ? ['number', 'object', 'array', 'boolean'] : [type].flat();
  return types.map((one) => (one === 'integer' ? 'number' : String(one)));
}

/**
 * Returns the values of types that a member does not accept, and the text that cannot be stored.
 */
const wrongFor = (schema: JsonObject): Json[] =>
  wrongValues.filter(
    (value) => typeof value === 'string' || !typesOf(schema).includes(typeOf(value)),
  );

/** Refusal texts that indicate a member without its name (protocol/errors.md#codes). */
const specificTexts: Record<string, RegExp> = {
  mobilePhoneNumber: /mobile phone number/,
  email: /email/i,
  channels: /Invalid channel name/,
  cql: /CQL syntax/,
  authData: /Linked id missing/,
  username: /Username|Password is missing/,
  smsCode: /SMS code|mobile phone number is missing/,
  code: /SMS code/,
};

/** Bodies that reach the validation of a call. */
const bodies: Record<string, JsonObject> = {
  login: { username: 'somebody', password: 'wrong' },
  signUp: { username: 'another', password: 'secret' },
  requestLoginCode: { mobilePhoneNumber: '13800000000' },
  requestPhoneVerification: { mobilePhoneNumber: '13800000000' },
  requestPasswordResetCode: { mobilePhoneNumber: '13800000000' },
  requestSmsCode: { mobilePhoneNumber: '13800000000' },
  countAudience: { device_type: 'ios', device_ids: ['x'] },
  moveScheduledAppPush: { push_time: '2027-01-01T00:00:00Z' },
  signInByPhone: { mobilePhoneNumber: '13800000000', smsCode: '123456' },
  changePhone: { mobilePhoneNumber: '13800000000', code: '123456' },
  requestPasswordReset: { email: 'a@b.example' },
  registerInstallation: { deviceType: 'ios', deviceToken: 'a'.repeat(64) },
  sendPush: { data: { alert: 'x' }, where: {} },
  sendAppPush: { data: { alert: 'x' }, where: {} },
  sendPushToDevices: { data: { alert: 'x' }, device_type: 'android', device_ids: ['x'] },
  createRecurringPush: {
    name: 'x',
    expression: '0 9 * * *',
    timeZone: 'UTC',
    body: { data: { alert: 'x' } },
  },
  previewRecurringPush: { expression: '0 9 * * *', timeZone: 'UTC' },
  putSmsTemplate: { type: 'verification', text: '{{code}}' },
};

/** Refusals about the state of an account, session or code. They occur before the value is read. */
const states =
  /^(That operation isn't allowed|undefined|Invalid SMS code|You have exceeded|A user with the specified|The user cannot be altered|Could not find user|The username and password mismatch|SMS request too fast|Username has already)/;

let app: App;
/** Ids for a path parameter, by the segment before it. */
let idOf: Record<string, string>;

beforeAll(async () => {
  app = await service.api.createApp({ pushCallsPerMinute: 9600 });
  await service.addApnsProfile(app);
  const make = async (path: string, body: object) => {
    const reply = await service.api.request('POST', path, { app, master: true, body });
    expect(reply.status, JSON.stringify(reply.body)).toBeLessThan(300);
    return String(reply.body.objectId);
  };
  const user = await make('/1.1/users', { username: 'somebody', password: 'secret' });
  const installation = await make('/1.1/installations', {
    deviceType: 'ios',
    deviceToken: 'b'.repeat(64),
  });
  const push_time = new Date(Date.now() + 3_600_000).toISOString();
  const push = await make('/1.1/push', { data: { alert: 'x' }, push_time });
  const role = await make('/1.1/roles', { name: 'some', ACL: { '*': { read: true } } });
  const recurring = await service.api.request(
    'POST',
    `/console/api/apps/${app.appId}/recurring-pushes`,
    {
      admin: true,
      body: bodies.createRecurringPush,
    },
  );
  idOf = {
    apps: app.appId,
    users: user,
    installations: installation,
    roles: role,
    notifications: push,
    'recurring-pushes': String(recurring.body.id),
    profiles: 'fcm',
    'scheduled-pushes': push,
    push,
    'test-devices': 'somebody',
    _User: user,
    _Installation: installation,
    _Role: role,
  };
});

async function ask(
  { method, paths, auth }: Route,
  body: Json | undefined,
  query = '',
): Promise<{ status: number; error: string }> {
  const parts = (paths[0] ?? '').split('/');
  const path = parts
    .map((part, i) => (part.startsWith(':') ? (idOf[parts[i - 1] ?? ''] ?? 'x') : part))
    .join('/');
  const credentials = auth === 'admin' ? { admin: true } : { app, master: true };
  const reply = await service.api.request(method, path + query, { ...credentials, body });
  return { status: reply.status, error: String(reply.body?.error) };
}

const names = (error: string, member: string): boolean =>
  error.includes(member) || (specificTexts[member]?.test(error) ?? false);

/** These operations delete what other calls need. */
const without = new Set(['deleteApp', 'rotateKey', 'deleteUser', 'deleteMatchingInstallations']);
const withBodies = (await loadRoutes()).filter(
  ({ body, hasRawBody, operation }) => body && !hasRawBody && !without.has(operation),
);

/** Returns the members of a schema and of its objects: `['options', 'hybridPush']`. */
function membersOf(schema: JsonObject): [path: string[], schema: JsonObject][] {
  const { properties } = schema;
  return Object.keys(isJsonObject(properties) ? properties : {}).flatMap(
    (name): [string[], JsonObject][] => {
      const inner = schemaOf(properties, name);
      return [
        [[name], inner],
        ...membersOf(inner).map(([path, one]): [string[], JsonObject] => [[name, ...path], one]),
      ];
    },
  );
}

const withMember = (
  base: JsonObject,
  [first = '', ...inner]: string[],
  value: Json,
): JsonObject => {
  const { [first]: current = {} } = base;
  return {
    ...base,
    [first]:
      inner.length === 0 ? value : withMember(isJsonObject(current) ? current : {}, inner, value),
  };
};

test.each(withBodies.map((one) => [one.operation, one] as const))(
  '%s names the wrong member',
  async (operation, one) => {
    const schema = requestSchema(one.body ?? expect.fail());
    const base = bodies[operation] ?? sampleOf(schema);
    if (!isJsonObject(base)) return;
    for (const [path, inner] of membersOf(schema))
      for (const value of wrongFor(inner)) {
        const { status, error } = await ask(one, withMember(base, path, value));
        const summary = `${path.join('.')} ${JSON.stringify(value)}: ${status} ${error}`;
        expect(status, summary).toBeLessThan(500);
        const isNamed = path.some((name) => names(error, name)) || states.test(error);
        expect(isNamed, summary).toBe(true);
      }
  },
  120_000,
);

/** Returns the query parameters of a call whose schema passes the test. */
const parametersOf = ({ query }: Route, isWanted: (schema: JsonObject) => boolean): string[] => {
  const { properties } = query ? requestSchema(query) : {};
  const entries = Object.entries(isJsonObject(properties) ? properties : {});
  return entries.flatMap(([name, schema]) =>
    isJsonObject(schema) && isWanted(schema) ? [name] : [],
  );
};

const isFlag = ({ enum: values }: JsonObject): boolean =>
  Array.isArray(values) && values.includes('false');
const isTime = ({ format }: JsonObject): boolean => format === 'date-time';

/** Sends a query. Returns whether the parameter was accepted, or otherwise the refusal. */
async function query(one: Route, name: string, value: string): Promise<string> {
  const base = { ...bodies[one.operation] };
  if (one.operation === 'registerInstallation') base.deviceToken = randomBytes(32).toString('hex');
  const sent = `?${new URLSearchParams({ [name]: value })}`;
  const { error } = await ask(one, one.method === 'GET' ? undefined : base, sent);
  return error;
}

const everyRoute = await loadRoutes();
const flags = everyRoute.flatMap((one) =>
  parametersOf(one, isFlag).map((name) => [one.operation, name, one] as const),
);
const times = everyRoute.flatMap((one) =>
  parametersOf(one, isTime).map((name) => [one.operation, name, one] as const),
);

test.each(flags)(
  '%s accepts its flag %s as true, false, 1 and 0 in any case, and nothing else',
  async (_, name, one) => {
    for (const value of ['true', 'TRUE', 'False', '0', '1', ''])
      expect(await query(one, name, value), value).not.toMatch(/takes true, false/);
    for (const value of ['AAA', '2', 'yes', 'on', 'null', '-1'])
      expect(await query(one, name, value), value).toMatch(
        new RegExp(`^${name}:? takes true, false, 1 or 0`),
      );
  },
);

const offsets = [
  '2027-01-31T00:00:00+08:00',
  '2027-01-31t00:00:00.5z',
  '2027-01-30T23:59:59-00:30',
];
const noTimes = ['2027-01-31', '2027-02-30T00:00:00Z', '2027-01-31T25:00:00Z', '1769817600', 'x'];

test.each(times)(
  '%s accepts a time with any offset as %s, and names other texts',
  async (_, name, one) => {
    for (const value of offsets)
      expect(await query(one, name, value), value).not.toContain(`${name}:`);
    for (const value of noTimes)
      expect(await query(one, name, value), value).toMatch(new RegExp(`^${name}: expected a time`));
  },
);

test('bodies accept times with any offset, and keep the moment', async () => {
  const send = (path: string, body: object) =>
    service.api.request('POST', path, { admin: true, body });
  const expiresAt = '2099-01-31T00:00:00+08:00';
  const created = await send('/console/api/tokens', {
    name: 'Somebody',
    role: 'viewer',
    expiresAt,
  });
  expect([created.status, created.body.expiresAt]).toEqual([201, '2099-01-30T16:00:00.000Z']);
  const recurrence = { expression: '0 9 * * *', timeZone: 'UTC', count: 1 };
  const preview = (body: object) =>
    send(`/console/api/apps/${app.appId}/recurring-pushes/preview`, body);
  const firstPreview = await preview({ ...recurrence, startsAt: '2099-01-01T09:30:00+01:00' });
  expect(JSON.stringify(firstPreview.body)).toContain('2099-01-01T09:00:00.000Z');
  for (const startsAt of ['2099-02-30T00:00:00Z', '2099-01-01', 5, {}])
    expect((await preview({ ...recurrence, startsAt })).body.error).toMatch(
      /^startsAt: expected a time/,
    );
});

test.each([
  [{ apnsTopic: 5 }, /^apnsTopic:? must be a text/],
  [{ apnsTopic: 5, pgwTopic: 'com.example' }, /^apnsTopic:? must be a text/],
  [{ pgwTeamId: [], apnsTeamId: 'TEAM' }, /^pgwTeamId:? must be a text/],
  [{ apnsTeamId: 'a\0b' }, /^apnsTeamId/],
  [{ badge: 2 ** 31 }, /^badge:? must be a whole number from -2147483647 to 2147483647/],
  [{ badge: 1.5 }, /^badge:? must be a whole number/],
  [{ timeZone: {} }, /^timeZone:? must be a text of at most 255 characters/],
  [{ vendor: {} }, /^vendor:? must be/],
  [{ installationId: 'a b' }, /^installationId:? must be .* without white space/],
  [{ birthday: { __type: 'Date', iso: '2026-02-30T00:00:00Z' } }, /^birthday: Malformed Date/],
  [{ friend: { __type: 'Pointer' } }, /^friend: Malformed pointer/],
  [{ 'inner.place': { __type: 'GeoPoint' } }, /^inner\.place: Malformed GeoPoint/],
  [{ inner: { $a: 1 } }, /^inner: Keys/],
  [{ level: { __op: 'Increment', amount: 'x' } }, /^level: /],
])('an installation is refused with the member as it was sent: %j', async (members, error) => {
  const body = { deviceType: 'ios', deviceToken: 'c'.repeat(64), ...members };
  const reply = await service.api.request('POST', '/1.1/installations', { app, body });
  expect([reply.status, reply.body.error]).toEqual([400, expect.stringMatching(error)]);
});

test.each([
  ['PUT', 'profiles/apns/_default', {}, /^auth must be "token" or "certificate"/],
  ['PUT', 'profiles/apns/_default', { auth: 'x' }, /^auth must be "token" or "certificate"/],
  [
    'PATCH',
    '',
    { options: { authPlatforms: { lc_apple: { audience: 5 } } } },
    /audience: must be a string or an array/,
  ],
  [
    'PATCH',
    'scheduled/1-1',
    { push_time: 5 },
    /^push_time: must be a time such as 2027-01-31T00:00:00\+08:00 or an object/,
  ],
  ['POST', 'push', { data: { alert: 'x' }, where: {}, push_time: 5 }, /^push_time: must be/],
  [
    'POST',
    'push',
    { data: { alert: 'x' }, where: {}, push_time: { __type: 'Date' } },
    /^push_time: iso:/,
  ],
  [
    'POST',
    'push',
    { data: { alert: 'x' }, where: {}, channels: 5 },
    /^channels: must be|Invalid channel/,
  ],
  [
    'POST',
    'push',
    { data: { alert: 'x' }, where: {}, expiration_interval: {} },
    /^expiration_interval: must be a/,
  ],
])('%s %s reports what an alternative lacks: %j', async (method, rest, body, error) => {
  const path = `/console/api/apps/${app.appId}${rest && `/${rest}`}`;
  const reply = await service.api.request(method, path, { admin: true, body });
  expect([reply.status, reply.body.error]).toEqual([400, expect.stringMatching(error)]);
});
