import { anyObject, anyQuery } from '../../calls/object-call.ts';
import { loginBody, passwordChange } from '../../openapi/requests/accounts.ts';
import { ownUserQuery } from '../../openapi/requests/queries.ts';
import { ofCode, ofLogin } from '../../replies/refusals.ts';
import { renewedSession, signedInUser } from '../../replies/users.ts';
import { json, noBody, route, smallBody } from '../../route.ts';

/** Login, and calls of a user with its own session (protocol/users.md#session-tokens). */

const ofUser = (action: string): string[] =>
  ['/1.1/users', '/1.1/classes/_User'].map((path) => `${path}/:objectId/${action}`);

export default [
  route({
    method: 'POST',
    path: '/1.1/login',
    operation: 'login',
    summary:
      'Logs a user in by `username`, `email` or `mobilePhoneNumber` with `password`, or by number and `smsCode`.',
    auth: 'app',
    limit: smallBody,
    session: 'optional',
    body: anyObject,
    documentedBody: loginBody,
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
    handle: async (call, { login }) => json(await login.login(call, call.body)),
  }),
  route({
    method: 'GET',
    path: '/1.1/users/me',
    operation: 'getOwnUser',
    summary: 'Returns the user whose session token is sent.',
    auth: 'app',
    limit: noBody,
    query: anyQuery,
    documentedQuery: ownUserQuery,
    reply: signedInUser,
    refusals: ['userNotFound'],
    handle: async ({ app, sessionToken }, { currentSession }) =>
      json(await currentSession.me(app, sessionToken)),
  }),
  route({
    method: 'PUT',
    path: ofUser('refreshSessionToken'),
    operation: 'refreshSessionToken',
    summary: 'Replaces the session token of a user; the old one is void.',
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
    body: anyObject,
    documentedBody: passwordChange,
    reply: renewedSession,
    refusals: ['userNotFound', 'passwordMismatch', 'passwordMissing', 'invalidPassword', 'accountLocked'],
    handle: async (call, { currentSession }) =>
      json(await currentSession.updatePassword(call, call.params.objectId ?? '', call.body)),
  }),
];
