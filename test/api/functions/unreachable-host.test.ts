import { describe, expect, test } from 'vitest';
import { systemClock } from '../../../shared/clock.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { answerWith, startFunctionHost } from '../../support/servers/function-host.ts';
import { useTestApi } from '../../support/test-api.ts';
import { newName, refusalOf, refused } from '../../support/users.ts';

/** Tests an unreachable function host and an api process that never reached it. */
const list = '/1.1/functions/_ops/metadatas';

/** Uses a port on which no test listens. Another test may take a port that was freed. */
const nowhere = 'http://127.0.0.1:9';

const api = useTestApi();
const signUpAt = (of: TestApi, app: App) =>
  of.request('POST', '/1.1/users', { app, body: { username: newName(), password: 'a password' } });

/**
 * Makes the hooks of a host known to one process, stops the host, and signs up in a process that
 * starts afterwards.
 */
async function signUpAfter(names: string[], change?: (app: App) => Promise<void>) {
  const host = await startFunctionHost();
  host.answers.set(list, answerWith(200, { result: names }));
  host.answers.set('/1.1/functions/_User/beforeSave', answerWith(200, {}));
  const app = await api.createApp({ functionsUrl: host.url });
  expect((await signUpAt(api, app)).status).toBe(201);
  await host.close();
  await change?.(app);
  const later = await startTestApi({ databaseUrl: api.databaseUrl });
  const reply = await signUpAt(later, app);
  await later.close();
  return reply;
}

describe('an unreachable function host', () => {
  test('fails no sign-up if its last list has no hook for it, even in a new process', async () => {
    expect((await signUpAfter(['hello', '__after_update_for__User'])).status).toBe(201);
  });

  test('fails the sign-ups if its last list has a hook for them', async () => {
    expect(refusalOf(await signUpAfter(['__before_save_for__User']))).toEqual(refused(503, 503));
  });

  test('fails all sign-ups if it was never reached, also at a new URL of the app', async () => {
    const unreached = await api.createApp({ functionsUrl: nowhere });
    expect(refusalOf(await signUpAt(api, unreached))).toEqual(refused(503, 503));
    const moved = await signUpAfter(['hello'], async ({ appId }) => {
      const body = { options: { functionsUrl: nowhere } };
      await api.request('PATCH', `/console/api/apps/${appId}`, { admin: true, body });
    });
    expect(refusalOf(moved)).toEqual(refused(503, 503));
  });

  test.each([
    [{ result: 'hello' }, 201],
    [{ result: { echo: {} } }, 201],
    [{ result: [{ name: 'beforeSave' }] }, 503],
    [{ functions: [] }, 503],
  ])(
    'that returns its list with %j, as a function or not at all, gives a sign-up %i',
    async (body, status) => {
      const host = await startFunctionHost();
      host.answers.set(list, answerWith(200, body));
      const app = await api.createApp({ functionsUrl: host.url });
      expect((await signUpAt(api, app)).status).toBe(status);
      await host.close();
    },
  );

  test('uses the hooks of its newest list', async () => {
    const host = await startFunctionHost();
    const app = await api.createApp({ functionsUrl: host.url });
    host.answers.set(list, answerWith(200, { result: ['__before_save_for__User'] }));
    host.answers.set('/1.1/functions/_User/beforeSave', answerWith(200, {}));
    expect((await signUpAt(api, app)).status).toBe(201);
    host.answers.set(list, answerWith(404, {}));
    const second = await startTestApi({ databaseUrl: api.databaseUrl });
    expect((await signUpAt(second, app)).status).toBe(201);
    await second.close();
    await host.close();
    const third = await startTestApi({ databaseUrl: api.databaseUrl });
    expect((await signUpAt(third, app)).status).toBe(201);
    await third.close();
  });
});

test('the hooks of a host that does not answer do not displace those of other apps', async () => {
  const path = '/1.1/functions/_User/afterSave';
  const [silent, other] = [await startFunctionHost(), await startFunctionHost()];
  silent.answers.set(path, () => undefined);
  for (const host of [silent, other])
    host.answers.set(list, answerWith(200, { result: ['__after_save_for__User'] }));
  const { hooks } = api.services;
  const runAt = (app: App) => hooks.runInBackground('afterSave', { app }, { message: {} });
  const app = await api.createApp({ functionsUrl: silent.url });
  for (let i = 0; i < 1000; i++) runAt(app);
  runAt(await api.createApp({ functionsUrl: other.url }));
  await expect.poll(() => other.requests.map((request) => request.path)).toContain(path);
  await Promise.all([silent.close(), other.close()]);
});

describe('a proxy in front of a function host', () => {
  const page = '<html><h1>404 page not found</h1></html>';

  test('that answers 404 with a page does not remove the hooks of the host', async () => {
    let aheadMs = 0;
    const clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + aheadMs };
    const first = await startTestApi({ databaseUrl: api.databaseUrl, clock });
    const host = await startFunctionHost();
    const app = await api.createApp({ functionsUrl: host.url });
    host.answers.set(list, answerWith(200, { result: ['__before_save_for__User'] }));
    host.answers.set('/1.1/functions/_User/beforeSave', answerWith(200, {}));
    expect((await signUpAt(first, app)).status).toBe(201);
    host.answers.set(list, answerWith(404, page));
    host.answers.set('/1.1/functions/_User/beforeSave', answerWith(404, page));
    aheadMs = 10_000;
    const later = await startTestApi({ databaseUrl: api.databaseUrl });
    for (const process of [first, later])
      expect(refusalOf(await signUpAt(process, app))).toEqual(refused(502, 502));
    await Promise.all([first.close(), later.close(), host.close()]);
  });

  test('that answers 404 with a page for a host without a list means no hooks', async () => {
    const host = await startFunctionHost();
    const app = await api.createApp({ functionsUrl: host.url });
    host.answers.set(list, answerWith(404, page));
    expect((await signUpAt(api, app)).status).toBe(201);
    await host.close();
    const later = await startTestApi({ databaseUrl: api.databaseUrl });
    expect((await signUpAt(later, app)).status).toBe(201);
    await later.close();
  });
});

describe('the reply of beforeSave', () => {
  test('may be inside a single `result`, like replies of functions', async () => {
    const host = await startFunctionHost();
    host.answers.set(list, answerWith(200, { result: ['__before_save_for__User'] }));
    const app = await api.createApp({ functionsUrl: host.url });
    const signUpWith = async (answer: object) => {
      host.answers.set('/1.1/functions/_User/beforeSave', answerWith(200, answer));
      const { status, body } = await signUpAt(api, app);
      return { status, nick: body.nick, result: body.result };
    };
    expect(await signUpWith({ result: { nick: 'x' } })).toEqual({ status: 201, nick: 'x' });
    expect(await signUpWith({ nick: 'x' })).toEqual({ status: 201, nick: 'x' });
    // Members with this name may also be the app's own.
    for (const answer of [{ result: 5 }, { result: { a: 1 }, nick: 'x' }])
      expect(await signUpWith(answer)).toEqual({ status: 201, ...answer });
    await host.close();
  });
});
