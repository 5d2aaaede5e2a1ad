import type { z } from 'zod';
import type { JsonObject } from '../../../shared/domain/json.ts';
import type { AppCall } from '../../calls/call.ts';
import { empty, listOf } from '../../replies/common.ts';
import { signedInUser, updatedUser, userPart } from '../../replies/objects.ts';
import { ofCondition, ofHooks, ofLogin, ofQuery, ofUser } from '../../replies/refusals.ts';
import { deletionBody, userMembers } from '../../requests/objects.ts';
import {
  deleteQuery,
  isFetching,
  objectReadQuery,
  signUpQuery,
  updateQuery,
  userListQuery,
} from '../../requests/queries.ts';
import { json, noBody, type Reply, route, smallBody, userBody } from '../../route.ts';
import type { Services } from '../../services/services.ts';

/**
 * Paths of users (protocol/users.md#calls-for-users). Most SDKs use the second path
 * (protocol/clients.md#calls-of-the-javascript-sdk).
 */
const collection = ['/1.1/users', '/1.1/classes/_User'];
const member = collection.map((path) => `${path}/:objectId`);

async function handleSignUp(
  call: AppCall<z.infer<typeof signUpQuery>, JsonObject>,
  { signUp, users }: Services,
): Promise<Reply> {
  const { document, isNew } = await signUp.signUp(
    call,
    call.body,
    call.query.failOnNotExist === true,
  );
  return json(document, {
    status: isNew ? 201 : 200,
    headers: { Location: users.urlOf(document) },
  });
}

async function update(
  call: AppCall<z.infer<typeof updateQuery>, JsonObject>,
  { users }: Services,
): Promise<Reply> {
  const isWhole = isFetching(call.query);
  const { document, changed, sessionToken } = await users.update(call, call.params.objectId ?? '', {
    body: call.body,
    where: call.query.where,
  });
  return json({
    ...(isWhole ? changed : {}),
    ...(sessionToken === undefined ? {} : { sessionToken }),
    updatedAt: document.updatedAt,
    objectId: document.objectId,
  });
}

export default [
  route({
    method: 'POST',
    path: collection,
    operation: 'signUp',
    summary:
      'Signs a user up with `username` and `password`, or with `authData` of another ' +
      'platform. Logs in if the account exists.',
    auth: 'app',
    limit: userBody,
    session: 'optional',
    query: signUpQuery,
    body: userMembers,
    reply: { 200: signedInUser, 201: signedInUser },
    refusals: [...ofUser, ...ofLogin],
    handle: handleSignUp,
  }),
  route({
    method: 'GET',
    path: '/1.1/users/strictlyQuery',
    operation: 'listUsersStrictly',
    summary:
      'Lists at most 100 users, without `skip`, subqueries and patterns. Requires the option ' +
      '`allowUserQuery` or `allowStrictUserQuery`.',
    auth: 'app',
    limit: noBody,
    session: 'optional',
    query: userListQuery,
    reply: listOf(userPart),
    refusals: [...ofQuery, 'tooManyRequests'],
    handle: async (call, { userLookup }) => json(await userLookup.listStrictly(call, call.query)),
  }),
  route({
    method: 'GET',
    path: collection,
    operation: 'listUsers',
    summary: 'Lists users that match `where`.',
    auth: 'app',
    limit: noBody,
    session: 'optional',
    query: userListQuery,
    reply: listOf(userPart),
    refusals: [...ofQuery],
    handle: async (call, { userLookup }) => json(await userLookup.list(call, call.query)),
  }),
  route({
    method: 'GET',
    path: member,
    operation: 'getUser',
    summary: 'Returns a user.',
    auth: 'app',
    limit: noBody,
    session: 'optional',
    query: objectReadQuery,
    reply: userPart,
    refusals: [...ofQuery, 'userNotFound', 'forbiddenReadByAcl'],
    handle: async (call, { userLookup }) =>
      json(await userLookup.get(call, call.params.objectId ?? '', call.query)),
  }),
  route({
    method: 'PUT',
    path: member,
    operation: 'updateUser',
    summary: 'Changes members of a user.',
    auth: 'app',
    limit: userBody,
    session: 'required',
    query: updateQuery,
    body: userMembers,
    reply: updatedUser,
    refusals: [
      ...ofUser,
      ...ofHooks,
      ...ofCondition,
      'noSuchObject',
      'forbiddenWriteByAcl',
      'accountLocked',
    ],
    handle: update,
  }),
  route({
    method: 'DELETE',
    path: member,
    operation: 'deleteUser',
    summary: 'Deletes a user.',
    auth: 'app',
    limit: smallBody,
    acceptsNullBody: true,
    session: 'required',
    query: deleteQuery,
    body: deletionBody,
    reply: empty,
    refusals: [...ofHooks, ...ofCondition, 'forbiddenWriteByAcl'],
    handle: async (call, { users }) => {
      const { body: hints, query } = call;
      await users.delete(call, call.params.objectId ?? '', { body: hints, where: query.where });
      return json({});
    },
  }),
];
