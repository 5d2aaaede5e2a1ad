/** Export and erasure of everything that is stored of one person. */
import { beforeAll, describe, expect, test } from 'vitest';
import { rowsNames, tablesOfPersons, withoutTexts } from '../../../../shared/db/tables/persons.ts';
import type { App } from '../../../../shared/domain/apps/app.ts';
import { useTestApi } from '../../../support/test-api.ts';
import { callerOf } from '../callers.ts';

const api = useTestApi();
const token = 'fcm-token-of-ada-0123456789';
const person = {
  username: 'ada-lovelace-1815',
  email: 'ada@lovelace.example',
  mobilePhoneNumber: '+8618612345678',
  nickname: 'Countess Ada',
};
let app: App;
let user: string;
let sessionToken: string;
let devices: { objectId: string; id: number }[];

/** Texts that must not be in the database after the erasure. */
const texts = () => [
  ...Object.values(person),
  ...[token, 'installation-of-ada-1', 'installation-of-ada-2', 'weibo-uid-of-ada'],
  ...['activity-token-of-ada', 'Dear Countess', 'endpoint-of-ada'],
  ...devices.map(({ objectId }) => objectId),
];

/** Returns all rows of all tables as text, by table. */
async function dump(): Promise<Map<string, string[]>> {
  const tables = await tableNames();
  const dumps = new Map<string, string[]>();
  for (const table of tables) {
    const { rows } = await api.db.query<{ line: string }>(
      `SELECT t::text AS line FROM ${table} AS t`,
    );
    dumps.set(
      table,
      rows.map(({ line }) => line),
    );
  }
  return dumps;
}
const tableNames = async () => {
  const { rows } = await api.db.query<{ name: string }>(
    `SELECT schemaname || '.' || quote_ident(tablename) AS name FROM pg_tables
      WHERE schemaname IN ('public', 'pgboss')`,
  );
  return rows.map(({ name }) => name);
};
async function tablesWith(wanted: readonly string[]): Promise<Record<string, string[]>> {
  const found = [...(await dump())].map(([table, lines]): [string, string[]] => [
    table,
    wanted.filter((text) => lines.some((line) => line.includes(text))),
  ]);
  return Object.fromEntries(found.filter(([, hits]) => hits.length > 0));
}

const path = () => `/console/api/apps/${app.appId}/users/${user}`;
const call = (method: string, more = '', options: object = {}) =>
  api.request(method, `${path()}${more}`, { admin: true, ...options });

beforeAll(async () => {
  app = await api.createApp({ allowUserQuery: true, emailVerification: true });
  const signedUp = await api.request('POST', '/1.1/users', {
    app,
    body: {
      ...person,
      password: 'secret-of-ada',
      authData: { weibo: { uid: 'weibo-uid-of-ada', access_token: 'token-of-weibo' } },
    },
  });
  expect(signedUp.status).toBe(201);
  user = String(signedUp.body.objectId);
  sessionToken = String(signedUp.body.sessionToken);
  const pointer = { __type: 'Pointer', className: '_User', objectId: user };
  for (const device of [
    {
      deviceType: 'android',
      vendor: 'fcm',
      registrationId: token,
      installationId: 'installation-of-ada-1',
    },
    { deviceType: 'ios', deviceToken: 'ab'.repeat(32), installationId: 'installation-of-ada-2' },
    {
      deviceType: 'web',
      subscription: {
        endpoint: 'https://fcm.googleapis.com/wp/endpoint-of-ada',
        keys: {
          p256dh:
            'BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4',
          auth: 'BTBZMqHH6r4Tts7J_aSIgg',
        },
      },
    },
    { deviceType: 'android', installationId: 'installation-of-someone-else', isOther: true },
  ]) {
    const { isOther, ...body } = { isOther: false, ...device };
    const sent = isOther ? body : { ...body, user: pointer };
    const reply = await api.request('POST', '/1.1/installations', { app, body: sent });
    expect(reply.status, JSON.stringify(reply.body)).toBe(201);
  }
  const { rows } = await api.db.query<{ id: number; object_id: string }>(
    `SELECT id, object_id FROM installation WHERE app_id = $1 AND fields ? 'user' ORDER BY id`,
    [app.appId],
  );
  devices = rows.map(({ id, object_id: objectId }) => ({ id, objectId }));
  expect(devices).toHaveLength(3);
  await writeTraces();
});

/** Writes rows about the person into the other tables, as the service does. */
async function writeTraces(): Promise<void> {
  const [device = 0] = devices.map(({ id }) => id);
  const { appId } = app;
  const run = (text: string, ...values: unknown[]) => api.db.query(text, [appId, ...values]);
  for (const where of [
    { registrationId: token },
    { installationId: { $in: ['installation-of-ada-1', 'installation-of-ada-2'] } },
    { username: person.username },
  ]) {
    // The second condition matches no device, so that no profile is needed.
    const body = { where: { ...where, none: 1 }, data: { alert: 'x' } };
    const push = await api.request('POST', '/1.1/push', { app, master: true, body });
    expect(push.status, JSON.stringify(push.body)).toBe(200);
  }
  const about = await api.request('POST', '/1.1/push', {
    app,
    master: true,
    body: { where: { none: 1 }, data: { alert: `Hello ${person.username}!` } },
  });
  expect(about.status).toBe(200);
  await run(
    `INSERT INTO push_failure (app_id, push_id, installation, object_id, connector, outcome, status, reason)
    SELECT $1, id, $2, $3, 'fcm', 'failed', 400, 'x' FROM notification WHERE app_id = $1 LIMIT 1`,
    device,
    devices[0]?.objectId,
  );
  await run(
    `INSERT INTO push_receipt (app_id, push_id, connector, block, delivered)
    SELECT $1, id, 'fcm', $2::bigint / 512, set_bit(0::bit(512), ($2::bigint % 512)::int, 1)
      FROM notification WHERE app_id = $1 LIMIT 1`,
    device,
  );
  await run(
    `INSERT INTO device_day (day, app_id, installation, pushes) VALUES (current_date, $1, $2, 3)`,
    device,
  );
  await run(
    `INSERT INTO dead_notice (app_id, installation, push_id, connector, saved_at, is_sure) VALUES ($1, $2, 1, 'fcm', now(), true)`,
    device,
  );
  await run(
    `INSERT INTO live_activity_token (app_id, kind, name, installation, token, reported_at) VALUES ($1, 'activity', 'a', $2, 'activity-token-of-ada', now())`,
    device,
  );
  await run(`INSERT INTO webhook (app_id, name, events, format, secrets)
    SELECT owner, 'w', '{}', 'standard', 'x' FROM unnest(ARRAY[$1, '']) AS owner`);
  for (const owner of [appId, ''])
    await run(
      `INSERT INTO webhook_delivery (app_id, webhook, type, source_app, occurred_at, data, response)
       VALUES ($2, 'w', 'recipients.opened', $1, now(), $3, 'took ' || $4::text)`,
      owner,
      { recipients: [{ installation: devices[0]?.objectId }] },
      devices[0]?.objectId,
    );
  await run(`UPDATE notification SET finished_at = now() WHERE app_id = $1`);
  await run(`INSERT INTO channel_message (app_id, push_id, digest, content, expires_at)
    SELECT $1, min(id), 'x', '{"alert":"Dear Countess"}', now() + interval '1 day' FROM notification WHERE app_id = $1`);
  await run(
    `INSERT INTO channel_inbox (app_id, installation, push_id, message_id, position)
    SELECT $1, $2, push_id, id, 0 FROM channel_message WHERE app_id = $1`,
    device,
  );
  await run(
    `INSERT INTO sms_send (app_id, number, kind, sign, sent_at) VALUES ($1, $2, 'voice', 'x', now())`,
    person.mobilePhoneNumber,
  );
  await run(
    `INSERT INTO verification_code (app_id, purpose, number, subject, id, digest, expires_at)
    VALUES ($1, 'login', $2, '', gen_random_uuid(), 'x', now() + interval '1 hour')`,
    person.mobilePhoneNumber,
  );
  for (let i = 0; i < 3; i++)
    await api.request('POST', '/1.1/login', {
      app,
      body: { username: person.username, password: 'wrong' },
    });
  const role = await api.request('POST', '/1.1/roles', {
    app,
    master: true,
    body: {
      name: 'editors',
      ACL: { '*': { read: true } },
      users: {
        __op: 'AddRelation',
        objects: [{ __type: 'Pointer', className: '_User', objectId: user }],
      },
    },
  });
  expect(role.status).toBe(201);
  const updated = await call('PUT', '', {
    body: { nickname: person.nickname, email: person.email },
  });
  expect(updated.status, JSON.stringify(updated.body)).toBe(200);
  await run(
    `INSERT INTO saved_item (app_id, kind, name, content, updated_by) VALUES ($1, 'audience', 'ada', $2, 'x')`,
    { where: { registrationId: token } },
  );
  await run(
    `INSERT INTO recurring_push (app_id, name, expression, time_zone, is_enabled, body, request, notification_id, life_seconds, created_by, changed_by)
    VALUES ($1, 'r', '0 9 * * *', 'UTC', false, $2, $2, 'n', 60, 'x', 'x')`,
    { where: { installationId: 'installation-of-ada-1' }, channels: ['news'] },
  );
}

/** Tables that contain nothing of a person, by the reason. */
const otherTables = {
  'settings of the app': [
    ...['app', 'breaker', 'declared_hooks', 'push_freeze', 'push_profile', 'profile_rotation'],
    ...['credential_notice', 'sms_signature', 'sms_template', 'live_activity_channel', 'role'],
    ...['role_role', 'webhook'],
  ],
  'counts and times of the app': [
    ...['breaker_state', 'failure_count', 'gateway_day', 'gateway_failure', 'gateway_rate'],
    ...['gateway_test', 'idle_walk', 'live_activity_clock', 'push_receipt_total'],
    ...['registration_walk', 'sms_breaker', 'sms_conversion', 'usage_day', 'shared_reading'],
    ...['installation_day', 'push_day', 'reason_day', 'report_walk'],
  ],
  'ids of pushes, of gateways and of requests': [
    ...['gateway_message', 'gateway_token', 'request_ledger', 'restored_push', 'scheduled_push'],
    'push_approval',
  ],
  'internal numbers of installations, which name nothing after the deletion': [
    ...['push_batch', 'channel_deposit', 'channel_session'],
  ],
  'keyed digests and networks, deleted within a day': ['send_budget', 'rate_limit'],
  'answers of captchas, which belong to no user': ['captcha'],
  'calls of gateways, encrypted, deleted after some days': ['failed_receipt'],
  'people and processes that run the service': [
    ...['console_login_code', 'console_session', 'console_token', 'process_seen', 'channel_node'],
    ...['carillon_migration', 'restoration', 'secret_rotation'],
  ],
};

test('each table is handled, or has a reason why it contains nothing of a person', async () => {
  const tables = (await tableNames())
    .filter((name) => name.startsWith('public.'))
    .map((name) => name.slice('public.'.length));
  const named = [...tablesOfPersons, ...Object.values(otherTables).flat()];
  expect(named.sort()).toEqual(tables.sort());
});

describe('export', () => {
  test('contains every part, and no secret', async () => {
    const { body, status } = await call('GET', '/export');
    expect(status, JSON.stringify(body)).toBe(200);
    const text = JSON.stringify(body);
    for (const one of texts()) expect(text).toContain(one);
    const empty = [
      ...rowsNames,
      'receipts',
      'installations',
      'pushes',
      'savedItems',
      'audit',
      'webhookDeliveries',
    ].filter((part) => body[part].length === 0);
    expect(empty).toEqual([]);
    for (const secret of ['secret-of-ada', 'token-of-weibo', sessionToken])
      expect(text).not.toContain(secret);
    expect(text).not.toContain('installation-of-someone-else');
    expect(text).toContain('please open this link');
    expect(text).not.toMatch(/verifyEmail\/\w/);
    expect(body.isComplete).toBe(true);
  });

  test('of a person with too many devices says that it is incomplete', async () => {
    const other = await api.createApp();
    const { body: created } = await api.request('POST', '/1.1/users', {
      app: other,
      body: { username: 'collector', password: 'secret' },
    });
    await api.db.query(
      `INSERT INTO installation (app_id, object_id, device_type, installation_id, fields)
       SELECT $1, 'device' || n, 'android', 'device-' || n, $2
         FROM generate_series(1, 10001) AS n`,
      [
        other.appId,
        { user: { __type: 'Pointer', className: '_User', objectId: created.objectId } },
      ],
    );
    const path = `/console/api/apps/${other.appId}/users/${created.objectId}/export`;
    const { body, status } = await api.request('GET', path, { admin: true });
    expect([status, body.installations?.length]).toEqual([200, 10_000]);
    expect(body.isComplete).toBe(false);
  });

  test('needs the role owner, and is audited', async () => {
    const [operator, owner] = [await callerOf(api, 'operator'), await callerOf(api, 'owner')];
    expect((await operator('GET', `/apps/${app.appId}/users/${user}/export`)).status).toBe(403);
    expect((await owner('GET', `/apps/${app.appId}/users/${user}/export`)).status).toBe(200);
    const audit = await api.request('GET', `/console/api/audit?target=${user}`, { admin: true });
    expect(audit.body.results).toContainEqual(expect.objectContaining({ action: 'user.export' }));
  });
});

describe('erasure', () => {
  test('refuses a dry run without everything, and everything below the role owner', async () => {
    expect((await call('DELETE', '?dryRun=true')).status).toBe(400);
    const operator = await callerOf(api, 'operator');
    const refused = await operator('DELETE', `/apps/${app.appId}/users/${user}?everything=true`);
    expect(refused).toMatchObject({ status: 403 });
    expect((await call('GET')).status).toBe(200);
  });

  test('a dry run counts and deletes nothing', async () => {
    const before = await dump();
    const { body, status } = await call('DELETE', '?everything=true&dryRun=true');
    expect(status).toBe(200);
    expect(body).toMatchObject({
      dryRun: true,
      erased: { user: 1, installations: 3, identities: 1 },
    });
    expect((await dump()).get('public.installation')).toEqual(before.get('public.installation'));
  });

  test('leaves nothing of the person in any table, except what the report names', async () => {
    expect(Object.keys(await tablesWith(texts())).length).toBeGreaterThan(8);
    const { body, status } = await call('DELETE', '?everything=true');
    expect(status, JSON.stringify(body)).toBe(200);
    for (const part of rowsNames)
      expect([part, body.erased[part]]).toEqual([part, expect.any(Number)]);
    expect(body.erased).toMatchObject({
      user: 1,
      installations: 3,
      receipts: 1,
      messages: expect.any(Number),
    });
    const left = await tablesWith(texts());
    // A name inside of the text of a push, which the report counts.
    expect(left).toEqual({ 'public.notification': [person.username] });
    expect(body.kept[0].count).toBe(1);
    expect((await call('GET')).status).toBe(404);
    const { rows } = await api.db.query('SELECT 1 FROM installation WHERE app_id = $1', [
      app.appId,
    ]);
    expect(rows).toHaveLength(1);
  });

  test('is audited with the id and the numbers only, and another push stays as it was', async () => {
    const audit = await api.request('GET', `/console/api/audit?target=${user}`, { admin: true });
    expect(audit.body.results).toContainEqual(
      expect.objectContaining({
        action: 'user.erase',
        after: { erased: expect.objectContaining({ installations: 3 }) },
      }),
    );
    const { rows } = await api.db.query('SELECT body FROM recurring_push WHERE app_id = $1', [
      app.appId,
    ]);
    expect(rows).toEqual([{ body: { where: { installationId: 'erased' }, channels: ['news'] } }]);
  });

  test('a second call answers 404', async () => {
    expect((await call('DELETE', '?everything=true')).status).toBe(404);
  });
});

test('a name of a person is replaced in members of persons only', () => {
  const texts = {
    whole: new Set(['long-token-of-a-device']),
    guarded: new Set(['news']),
    targets: new Set<string>(),
  };
  expect(
    withoutTexts(
      {
        channels: ['news', 'long-token-of-a-device'],
        where: {
          username: { $in: ['news', 'x'] },
          $or: [{ installationId: 'news' }, { n: 'news' }],
        },
        data: { alert: 'news' },
      },
      texts,
    ),
  ).toEqual({
    channels: ['news', 'erased'],
    where: {
      username: { $in: ['erased', 'x'] },
      $or: [{ installationId: 'erased' }, { n: 'news' }],
    },
    data: { alert: 'news' },
  });
});
