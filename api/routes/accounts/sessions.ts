import type { z } from 'zod';
import type { AppCall } from '../../calls/call.ts';
import { renewedSession, signedInUser } from '../../replies/objects.ts';
import { ofCode, ofLogin } from '../../replies/refusals.ts';
import { loginBody, passwordChange } from '../../requests/accounts.ts';
import { ownUserQuery } from '../../requests/queries.ts';
import { json, noBody, route, smallBody } from '../../route.ts';
import type { Services } from '../../services/services.ts';

/** Returns the paths of an action of a user with a session (protocol/users.md#session-tokens). */
const ofUser = (action: string): string[] =>
  ['/1.1/users', '/1.1/classes/_User'].map((path) => `${path}/:objectId/${action}`);

type LoginBody = z.infer<typeof loginBody>;

/**
 * Declares a login. Old clients log in by GET, with the members in the query. No log contains the
 * query of a request (protocol/users.md#login-by-get).
 */
const login = (method: 'GET' | 'POST') => {
  const isGet = method === 'GET';
  return route({
    method,
    path: '/1.1/login',
    operation: isGet ? 'loginByQuery' : 'login',
    summary: isGet
      ? 'Same as `POST /1.1/login`, with the members in the query, for old clients. Prefer POST.'
      : 'Logs a user in by `username`, `email` or `mobilePhoneNumber` with `password`, or by ' +
        'number and `smsCode`.',
    auth: 'app',
    limit: isGet ? noBody : smallBody,
    session: 'optional',
    writes: isGet,
    ...(isGet ? { query: loginBody } : { body: loginBody }),
    reply: signedInUser,
    refusals: [
      ...ofLogin,
      'usernameMissing',
      'invalidUsername',
      'invalidEmail',
      'passwordMissing',
      'invalidPassword',
      ...ofCode,
    ],
    handle: async (call: AppCall<LoginBody, LoginBody>, { login: service }: Services) =>
      json(await service.login(call, isGet ? call.query : call.body), {
        headers: { 'Cache-Control': 'no-store' },
      }),
  });
};

export default [
  login('POST'),
  login('GET'),
  route({
    method: 'GET',
    path: '/1.1/users/me',
    operation: 'getOwnUser',
    summary: 'Returns the user whose session token is sent.',
    auth: 'app',
    limit: noBody,
    query: ownUserQuery,
    reply: signedInUser,
    refusals: ['userNotFound'],
    handle: async ({ app, sessionToken }, { currentSession }) =>
      json(await currentSession.me(app, sessionToken)),
  }),
  route({
    method: 'PUT',
    path: ofUser('refreshSessionToken'),
    operation: 'refreshSessionToken',
    summary: 'Replaces the session token of a user. The old token becomes invalid.',
    auth: 'app',
    limit: smallBody,
    session: 'required',
    reply: signedInUser,
    refusals: ['userNotFound'],
    handle: async (call, { currentSession }) =>
      json(await currentSession.refresh(call, call.params.objectId ?? '')),
  }),
  route({
    method: 'PUT',
    path: ofUser('updatePassword'),
    operation: 'updatePassword',
    summary: 'Changes the password of a user (`old_password`, `new_password`).',
    auth: 'app',
    limit: smallBody,
    session: 'required',
    acceptsNullBody: true,
    body: passwordChange,
    reply: renewedSession,
    refusals: [
      'userNotFound',
      'passwordMismatch',
      'passwordMissing',
      'invalidPassword',
      'accountLocked',
    ],
    handle: async (call, { currentSession }) =>
      json(await currentSession.updatePassword(call, call.params.objectId ?? '', call.body)),
  }),
];
