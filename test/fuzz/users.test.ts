import fc from 'fast-check';
import { beforeAll, expect, test } from 'vitest';
import type { App } from '../../shared/domain/apps/app.ts';
import { useTestApi } from '../support/test-api.ts';
import { signUp, type TestUser } from '../support/users.ts';
import { members } from './generators/values.ts';
import { fuzz } from './runs.ts';

let app: App;
let user: TestUser;
const api = useTestApi();
beforeAll(async () => {
  app = await api.createApp({ allowUserQuery: true });
  user = await signUp(api, app);
});
test('any input of a client gets a valid response', async () => {
  const answers = async (body: object) => {
    const text = encodeURIComponent(JSON.stringify(body));
    const [first = ''] = Object.keys(body);
    const calls: [string, string, unknown][] = [
      ['POST', '/1.1/users', body],
      ['POST', '/1.1/users', { authData: body }],
      ['POST', '/1.1/users', { ...body, username: 'x', password: '' }],
      ['POST', '/1.1/login', { ...body, password: [] }],
      ['PUT', `/1.1/users/${user.id}`, body],
      ['PUT', `/1.1/users/${user.id}`, { authData: body }],
      ['PUT', `/1.1/users/${user.id}?where=${text}`, { a: 1 }],
      ['PUT', `/1.1/users/${user.id}/updatePassword`, { ...body, old_password: 5 }],
      ['GET', `/1.1/users?where=${text}`, undefined],
      ['GET', `/1.1/users/strictlyQuery?where=${text}`, undefined],
    ];
    if (first.isWellFormed()) {
      const word = encodeURIComponent(first);
      calls.push(['GET', `/1.1/users?order=${word}&keys=${word}&limit=${word}`, undefined]);
      calls.push(['GET', `/1.1/users/me?session_token=${word}`, undefined]);
    }
    for (const [method, path, sent] of calls) {
      const reply = await user.request(method, path, sent);
      const isSound = reply.status < 400 || typeof reply.body.error === 'string';
      expect([method, path, sent, reply.status, isSound]).toEqual([
        method,
        path,
        sent,
        expect.any(Number),
        true,
      ]);
      expect(reply.status).toBeLessThan(500);
    }
  };
  await fuzz(fc.asyncProperty(members, answers), { cases: 20 });
  expect((await user.request('GET', '/1.1/users/me')).status).toBe(200);
  expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false);
}, 600_000);
