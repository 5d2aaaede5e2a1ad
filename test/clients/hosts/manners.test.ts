import { describe, expect, test } from 'vitest';
import { testEngine } from '../../support/clients/engine-promises.ts';
import { engineNames, engines, startEngineHost } from '../../support/servers/engine-hosts.ts';
import {
  answerWith,
  type HostAnswer,
  startFunctionHost,
} from '../../support/servers/function-host.ts';
import { useTestApi } from '../../support/test-api.ts';
import { newName, newUid, refusalOf, refused, signUp } from '../../support/users.ts';

/**
 * Tests functions and hooks on hosts that behave like each engine
 * (protocol/functions.md#answers-of-a-host).
 */
const api = useTestApi();

describe.each(engineNames)('a host that behaves like the engine for %s', (name) => {
  testEngine(api, {
    name,
    start: (options) => startEngineHost(name, options),
    needsMasterKey: engines[name].needsMasterKey,
    unknown: { status: 404, code: name === 'java' ? 400 : 1 },
    crashed: { status: 502, code: 502 },
  });
});

/** Ends the connection in the middle of a reply. */
const breakOff: HostAnswer = (_request, response) => {
  response.writeHead(200, { 'content-length': '100' });
  response.write('{"username":', () => response.destroy());
};

describe('a hook reply that is not complete JSON', () => {
  test.each([
    ['empty', answerWith(200, '')],
    ['half', answerWith(200, '{"username": "some')],
    ['broken off', breakOff],
    ['too large', answerWith(200, { text: 'x'.repeat(2 ** 20) })],
    ['a page', answerWith(200, '<h1>It works</h1>')],
    ['the page of a proxy', answerWith(502, '<h1>Bad Gateway</h1>')],
    ['the page of a proxy that knows no host', answerWith(404, '404 page not found')],
  ])('returns 502 before a write and at a login, and changes nothing: %s', async (_, answer) => {
    const host = await startFunctionHost();
    const app = await api.createApp();
    const user = await signUp(api, app, { city: 'Chengdu' });
    const list = ['before_save', 'before_update', 'before_delete'].map(
      (one) => `__${one}_for__User`,
    );
    const names = { result: [...list, '__on_login__User', '__on_authdata__User'] };
    host.answers.set(
      '/1.1/functions/_ops/metadatas',
      answerWith(200, names, { 'content-type': 'text/plain' }),
    );
    for (const hook of ['beforeSave', 'beforeUpdate', 'beforeDelete', 'onLogin', 'onAuthData'])
      host.answers.set(`/1.1/functions/_User/${hook}`, answer);
    await api.services.apps.change(app.appId, { options: { functionsUrl: host.url } });
    const { username } = user.body;
    const authData = { github: { uid: newUid(), access_token: 'token' } };
    const post = (path: string, sent: object) => api.request('POST', path, { app, body: sent });
    for (const reply of [
      await post('/1.1/users', { username: newName(), password: 'a password' }),
      await post('/1.1/users', { authData }),
      await post('/1.1/login', { username, password: 'a password' }),
      await user.put({ city: 'Xi’an' }),
      await user.put({ authData }),
      await user.request('DELETE', `/1.1/users/${user.id}`),
    ]) {
      expect(refusalOf(reply)).toEqual(refused(502, 502));
      expect(reply.body.error).toMatch(/the hook \w+ of _User/);
    }
    expect(await user.me()).toMatchObject({ city: 'Chengdu' });
    await host.close();
  });
});
