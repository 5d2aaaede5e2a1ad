import { anyObject, anyQuery } from '../../object-call.ts';
import { json, noBody, route, smallBody } from '../../route.ts';

/** Login, and what a user does with its own session (protocol/users.md#session-tokens). */

const ofUser = (action: string): string[] =>
  ['/1.1/users', '/1.1/classes/_User'].map((path) => `${path}/:objectId/${action}`);

export default [
  route({
    method: 'POST',
    path: '/1.1/login',
    summary:
      'Logs a user in by `username`, `email` or `mobilePhoneNumber` with `password`, or by number and `smsCode`.',
    auth: 'app',
    limit: smallBody,
    body: anyObject,
    handle: async (call, { login }) => json(await login.login(call, call.body)),
  }),
  route({
    method: 'GET',
    path: '/1.1/users/me',
    summary: 'Returns the user whose session token is sent.',
    auth: 'app',
    limit: noBody,
    query: anyQuery,
    // Old clients put the token into the query (protocol/clients.md#sessions-in-requests).
    handle: async ({ app, sessionToken, query }, { currentSession }) =>
      json(await currentSession.me(app, sessionToken ?? query.session_token)),
  }),
  route({
    method: 'PUT',
    path: ofUser('refreshSessionToken'),
    summary: 'Gives a user a new session token; the old one is void.',
    auth: 'app',
    limit: smallBody,
    session: 'needed',
    handle: async (call, { currentSession }) =>
      json(await currentSession.refresh(call, call.params.objectId ?? '')),
  }),
  route({
    method: 'PUT',
    path: ofUser('updatePassword'),
    summary: 'Changes the password of a user (`old_password`, `new_password`).',
    auth: 'app',
    limit: smallBody,
    session: 'needed',
    isNullNothing: true,
    body: anyObject,
    handle: async (call, { currentSession }) =>
      json(await currentSession.updatePassword(call, call.params.objectId ?? '', call.body)),
  }),
];
