import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, test } from 'vitest';
import { checkSecretKeys } from '../../../api/services/operator/doctor/credential-checks.ts';
import { AccountReader } from '../../../dispatcher/background/account-reader.ts';
import { rotateOnce } from '../../../dispatcher/background/secret-rotation.ts';
import { systemClock } from '../../../shared/clock.ts';
import { sha256, Vault } from '../../../shared/crypto.ts';
import { claimGatewayToken, saveGatewayToken } from '../../../shared/db/tables/gateways.ts';
import { putProfile, stageCandidate } from '../../../shared/db/tables/profiles.ts';
import {
  countSealedValues,
  findSecretRotation,
  oldValues,
  requestSecretRotation,
  sum,
} from '../../../shared/db/tables/secrets.ts';
import { saveEndpoint, saveKey } from '../../../shared/db/tables/webhooks.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { sealContexts } from '../../../shared/domain/apps/seal-contexts.ts';
import { newSessionNonce, sessionTokens } from '../../../shared/domain/users/user.ts';
import { newSigningKey, serviceOwner } from '../../../shared/domain/webhooks/endpoint.ts';
import type { EventTypeName } from '../../../shared/domain/webhooks/event-types.ts';
import { silentLog, startTestApi } from '../../support/api.ts';
import { useTestApi } from '../../support/test-api.ts';

const [oldKey, newKey] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];
const base64 = (...keys: Buffer[]) => keys.map((key) => key.toString('base64')).join(',');
const before = new Vault([oldKey]);
const both = new Vault([newKey, oldKey]);
const after = new Vault([newKey]);
const [first] = both.keyIds;

const api = useTestApi({ env: { CARILLON_SECRET: base64(oldKey) } });
const deps = () => ({ db: api.db, vault: both, log: silentLog });
const users = 900;
const tokens = new Map<string, string>();
let app: App;
let session: string;

const left = async () =>
  sum(Object.values(oldValues(await countSealedValues(api.db, both.keyIds), first)));
const state = () => findSecretRotation(api.db, first);

/** Rotates to the end. The database may still lock the row for a killed process. */
async function finish(): Promise<void> {
  while (!(await state())?.finishedAt) await rotateOnce(deps());
}

const profileOf = (vault: Vault, appKey: string) =>
  putProfile(api.db, vault, {
    appId: app.appId,
    connector: 'vendor_d',
    name: '_default',
    credentials: { appKey, masterSecret: 's' },
  });

/**
 * Adds users with sessions of this version, whose nonces contain the key id, and sessions of older
 * versions.
 */
async function addUsers(): Promise<void> {
  const rows = Array.from({ length: users }, (_, i) => {
    const [objectId, nonce] = [`user${i}`, i % 2 === 0 ? newSessionNonce(before) : randomBytes(16)];
    const [token = ''] = sessionTokens(before, app.appId, objectId, nonce);
    tokens.set(objectId, token);
    return { objectId, nonce: nonce.toString('hex'), hash: sha256(token).toString('hex') };
  });
  await api.db.query(
    `INSERT INTO app_user (app_id, object_id, username, session_nonce, session_hash, auth_data)
     SELECT app_id, u."objectId", u."objectId", decode(u.nonce, 'hex'), decode(u.hash, 'hex'),
            jsonb_build_object('github', auth_data -> 'github')
       FROM app_user, jsonb_to_recordset($1) AS u ("objectId" text, nonce text, hash text)
         WHERE username = 'anna'`,
    [JSON.stringify(rows)],
  );
}

/** Adds values of every kind. */
beforeAll(async () => {
  app = await api.createApp({ captchaForSms: true });
  await profileOf(before, 'k1');
  const profile = { appId: app.appId, connector: 'vendor_d', name: '_default' };
  await stageCandidate(api.db, before, { ...profile, credentials: { appKey: 'next' } });
  await api.db.query('UPDATE profile_rotation SET previous = candidate');
  await api.db.query(
    `INSERT INTO failed_receipt (app_id, connector, digest, status, reason, bytes, call)
     VALUES ($1, 'vendor_d', 'd', 400, 'x', 1, $2)`,
    [app.appId, before.seal('call', sealContexts.receipt(app.appId, 'vendor_d', 'd'))],
  );
  const key = { appId: app.appId, connector: 'vendor_d', credential: 'c' };
  await claimGatewayToken(api.db, before, key, 1000);
  const token = { value: 't', madeAtMs: 0, expiresAtMs: 1, isReplacement: false };
  await saveGatewayToken(api.db, before, key, token);
  for (const appId of [app.appId, serviceOwner]) {
    const endpoint = { appId, name: 'hook' };
    const secrets = { url: 'https://example.com/hook', key: newSigningKey() };
    const stored = {
      ...endpoint,
      secrets,
      events: ['push.done'] satisfies EventTypeName[],
      format: 'standard',
      language: null,
      isEnabled: true,
    } as const;
    await saveEndpoint(api.db, before, { ...stored, events: [...stored.events] });
    const rotated = { key: newSigningKey(), previousUntil: new Date() };
    await saveKey(api.db, before, { ...endpoint, secrets }, rotated);
  }
  const authData = {
    github: { uid: 'g1', access_token: 'SESAME' },
    gitlab: { uid: 'l1', access_token: 'SESAME' },
  };
  const body = { username: 'anna', password: 'p', email: 'anna@example.com', authData };
  session = (await api.request('POST', '/1.1/users', { app, master: true, body })).body
    .sessionToken;
  await api.request('POST', '/1.1/requestPasswordReset', { app, body: { email: body.email } });
  expect((await api.request('GET', '/1.1/requestCaptcha', { app })).status).toBe(200);
  await addUsers();
});

/**
 * Rotates in a separate process and kills it inside a transaction, after some transactions have
 * committed.
 */
async function rotateUntilKilled(): Promise<void> {
  const file = fileURLToPath(new URL('rotating-process.ts', import.meta.url));
  const env = { TEST_DATABASE_URL: api.databaseUrl, TEST_SECRETS: base64(newKey, oldKey) };
  const child = spawn(process.execPath, [file], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  await once(child, 'message');
  child.kill('SIGKILL');
  await once(child, 'exit');
}

describe('a rotation of CARILLON_SECRET', () => {
  test('is recommended by doctor and a metric, for values of every kind', async () => {
    const old = oldValues(await countSealedValues(api.db, both.keyIds), first);
    expect(Object.entries(old).filter(([, values]) => values === 0)).toEqual([]);
    expect(old).toMatchObject({
      'app_user.auth_data': users + 2,
      'app_user.session_nonce': users + 1,
    });
    expect(await checkSecretKeys({ db: api.db, vault: both })).toContainEqual(
      expect.objectContaining({ status: 'warn', params: { column: 'app.secrets', values: 1 } }),
    );
    await new AccountReader().run({ db: api.db, vault: both, clock: systemClock });
    expect((await api.request('GET', '/metrics')).body).toContain(
      'carillon_secret_old_values{column="push_profile.credentials"} 1',
    );
  });

  test('continues where a killed process stopped, and encrypts each value once', async () => {
    await requestSecretRotation(api.db, first);
    await rotateUntilKilled();
    const killed = await state();
    expect(killed).toMatchObject({ finishedAt: null, pass: 1, position: [expect.any(String)] });
    expect(killed?.changed).toBeGreaterThanOrEqual(100);
    expect(killed?.changed).toBeLessThan(killed?.expected ?? 0);
    await finish();
    // A row has one or more encrypted members. The values at the beginning count members.
    expect(await state()).toMatchObject({
      finishedAt: expect.any(Date),
      pass: 1,
      counts: expect.anything(),
    });
    expect((await state())?.changed).toBe((killed?.expected ?? 0) - 1);
    expect(await left()).toBe(0);
    expect((await state())?.unreadable['app_user.session_nonce']).toBe(0);
  });

  test('leaves no value encrypted with the old key in any table', async () => {
    const mark = Buffer.from(`01${before.keyIds[0]}`, 'hex');
    const { rows } = await api.db.query<{ table: string }>(
      `SELECT table_name AS table FROM information_schema.tables
        WHERE table_schema = current_schema()`,
    );
    const found: string[] = [];
    for (const { table } of rows) {
      const { rowCount } = await api.db.query(
        `SELECT FROM "${table}" AS t WHERE t::text LIKE '%' || $1 || '%'
          OR t::text LIKE '%' || $2 || '%'`,
        [mark.toString('hex'), mark.toString('base64').slice(0, 6)],
      );
      if (rowCount) found.push(table);
    }
    expect(found).toEqual([]);
  });

  test('keeps all values: a service with only the new key works', async () => {
    const env = { CARILLON_SECRET: base64(newKey) };
    const next = await startTestApi({ databaseUrl: api.databaseUrl, env });
    for (const token of [session, tokens.get('user0') ?? '', tokens.get('user1') ?? '']) {
      const me = await next.request('GET', '/1.1/users/me', {
        app,
        headers: { 'X-LC-Session': token },
      });
      expect([me.status, me.body.sessionToken]).toEqual([200, token]);
    }
    const login = await next.request('POST', '/1.1/login', {
      app,
      body: { username: 'anna', password: 'p' },
    });
    expect(login.body.sessionToken).toBe(session);
    const path = `/1.1/users/${login.body.objectId}`;
    const { authData } = (await next.request('GET', path, { app, master: true })).body;
    expect([authData.github.access_token, authData.gitlab.access_token]).toEqual([
      'SESAME',
      'SESAME',
    ]);
    const outbox = await next.request('GET', `/console/api/apps/${app.appId}/outbox`, {
      admin: true,
    });
    expect(outbox.body.results[0].to).toBe('anna@example.com');
    await next.close();
  });

  test('does not wait for a locked row; the next pass takes it', async () => {
    await profileOf(before, 'k2');
    await requestSecretRotation(api.db, first);
    await api.db.transaction(async (tx) => {
      await tx.query('SELECT FROM push_profile WHERE app_id = $1 FOR UPDATE', [app.appId]);
      while (((await state())?.pass ?? 0) < 2) await rotateOnce(deps());
    });
    await finish();
    expect([await left(), (await state())?.pass]).toEqual([0, 2]);
  });

  test('keeps values that are written meanwhile', async () => {
    await profileOf(before, 'k3');
    await requestSecretRotation(api.db, first);
    const writers = Array.from({ length: 20 }, (_, i) =>
      profileOf(i % 2 === 0 ? before : both, `w${i}`),
    );
    await Promise.all([finish(), ...writers]);
    await requestSecretRotation(api.db, first);
    await finish();
    const { rows } = await api.db.query<{ credentials: Buffer }>(
      'SELECT credentials FROM push_profile',
    );
    const context = `profile ${app.appId} vendor_d _default`;
    expect(rows.map((row) => after.open(row.credentials, context))).toMatchObject([
      { appKey: expect.stringMatching(/^w\d+$/) },
    ]);
  });

  test('by a call needs the key on all processes, and reports unneeded keys', async () => {
    const path = '/console/api/secret/rotation';
    await profileOf(before, 'k4');
    const env = { CARILLON_SECRET: base64(newKey, oldKey) };
    const next = await startTestApi({ databaseUrl: api.databaseUrl, env });
    const refused = await next.request('POST', path, { admin: true });
    expect([refused.status, refused.body.error]).toEqual([
      409,
      expect.stringMatching(/cannot decrypt/),
    ]);
    // The other process registers its key again every few seconds.
    const forgetOthers = () =>
      api.db.query(`DELETE FROM process_seen WHERE facts -> 'secretKeys' ->> 0 <> $1`, [first]);
    await forgetOthers();
    const counted = (await next.request('GET', `${path}?count=1`, { admin: true })).body;
    expect(counted).toMatchObject({
      left: 1,
      keys: [{ id: first, isFirst: true }, { mayBeRemoved: false }],
    });
    const call = async (method: string) => {
      await forgetOthers();
      return (await next.request(method, path, { admin: true })).body;
    };
    for (const _twice of [1, 2])
      await expect.poll(() => call('POST')).toMatchObject({ rotation: { state: 'running' } });
    await finish();
    await expect
      .poll(() => call('GET'))
      .toMatchObject({
        rotation: { state: 'done' },
        left: 0,
        mismatches: [],
        keys: [{ isFirst: true }, { values: {}, mayBeRemoved: true }],
      });
    const check = async () => {
      await forgetOthers();
      return checkSecretKeys({ db: api.db, vault: both });
    };
    await expect.poll(check).toMatchObject([{ status: 'ok', params: { first } }]);
    await next.close();
  });
});
