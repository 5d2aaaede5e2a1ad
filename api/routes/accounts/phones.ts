import type { z } from 'zod';
import type { AppCall } from '../../calls/call.ts';
import { empty } from '../../replies/common.ts';
import { signedInUser, verifiedUser } from '../../replies/objects.ts';
import { ofCode, ofCodeRequest, ofLogin, ofUser } from '../../replies/refusals.ts';
import {
  codeRequest,
  passwordReset,
  phoneChange,
  phoneVerification,
} from '../../requests/accounts.ts';
import { phoneLoginBody } from '../../requests/objects.ts';
import { signUpQuery } from '../../requests/queries.ts';
import { json, route, smallBody, userBody } from '../../route.ts';
import type { Services } from '../../services/services.ts';

/** Call that requests a code for an account by phone (protocol/codes.md#phone-accounts). */
type CodeCall = AppCall<unknown, z.infer<typeof codeRequest>>;

const callerOf = ({ app, isMaster, remoteAddress }: CodeCall) => ({
  app,
  isMaster,
  ipAddress: remoteAddress,
});

/** Declares a call that sends a code to a number and returns `{}`. */
const codeRoute = (
  { path, operation, summary }: { path: string; operation: string; summary: string },
  send: (call: CodeCall, services: Services) => Promise<void>,
) =>
  route({
    method: 'POST',
    path,
    operation,
    summary,
    auth: 'app',
    limit: smallBody,
    body: codeRequest,
    reply: empty,
    refusals: [...ofCodeRequest, 'phoneUnknown', 'phoneUnverified'],
    handle: async (call, services) => {
      await send(call, services);
      return json({});
    },
  });

const resetRoute = (method: 'PUT' | 'POST', operation: string) =>
  route({
    method,
    path: '/1.1/resetPasswordBySmsCode/:code',
    operation,
    summary:
      'Changes a password (`password`, `mobilePhoneNumber`) by the code that was sent to the ' +
      'number.',
    auth: 'app',
    limit: smallBody,
    body: passwordReset,
    reply: empty,
    refusals: [...ofCode, 'passwordMissing', 'invalidPassword'],
    handle: async ({ app, params, body, remoteAddress: ipAddress }, { phones }) => {
      await phones.reset({ app, ipAddress }, params.code ?? '', body);
      return json({});
    },
  });

export default [
  route({
    method: 'POST',
    path: '/1.1/usersByMobilePhone',
    operation: 'signInByPhone',
    summary: 'Logs in by `mobilePhoneNumber` and `smsCode`. Signs up if no account has the number.',
    auth: 'app',
    limit: userBody,
    session: 'optional',
    query: signUpQuery,
    body: phoneLoginBody,
    reply: { 200: signedInUser, 201: signedInUser },
    refusals: [...ofUser, ...ofCode, ...ofLogin],
    handle: async (call, { phoneLogin, users }) => {
      const failOnNotExist = call.query.failOnNotExist === true;
      const { document, isNew } = await phoneLogin.logInOrSignUp(call, call.body, failOnNotExist);
      return json(document, {
        status: isNew ? 201 : 200,
        headers: { Location: users.urlOf(document) },
      });
    },
  }),
  codeRoute(
    {
      path: '/1.1/requestLoginSmsCode',
      operation: 'requestLoginCode',
      summary: 'Sends a code for a login.',
    },
    (call, { phoneCodes }) => phoneCodes.requestLogin(callerOf(call), call.body),
  ),
  codeRoute(
    {
      path: '/1.1/requestMobilePhoneVerify',
      operation: 'requestPhoneVerification',
      summary: 'Sends a code that verifies the number of an account.',
    },
    (call, { phoneCodes }) => phoneCodes.requestVerification(callerOf(call), call.body),
  ),
  codeRoute(
    {
      path: '/1.1/requestPasswordResetBySmsCode',
      operation: 'requestPasswordResetCode',
      summary: 'Sends a code that resets the password of an account.',
    },
    (call, { phoneCodes }) => phoneCodes.requestReset(callerOf(call), call.body),
  ),
  route({
    method: 'POST',
    path: '/1.1/verifyMobilePhone/:code',
    operation: 'verifyPhone',
    summary:
      'Verifies the number of an account (`mobilePhoneNumber`) by the code that was sent to it.',
    auth: 'app',
    limit: smallBody,
    acceptsNullBody: true,
    session: 'optional',
    body: phoneVerification,
    reply: verifiedUser,
    refusals: [...ofCode],
    handle: async (call, { phones }) => {
      const holder = { ...call, ipAddress: call.remoteAddress };
      return json(await phones.verify(holder, call.params.code ?? '', call.body.mobilePhoneNumber));
    },
  }),
  route({
    method: 'POST',
    path: '/1.1/requestChangePhoneNumber',
    operation: 'requestPhoneChange',
    summary: 'Sends a code to the new number of the user whose session it is.',
    auth: 'app',
    limit: smallBody,
    session: 'required',
    body: codeRequest,
    reply: empty,
    refusals: [...ofCodeRequest, 'phoneTaken'],
    handle: async (call, { phoneCodes }) => {
      await phoneCodes.requestChange(callerOf(call), call.session, call.body);
      return json({});
    },
  }),
  route({
    method: 'POST',
    path: '/1.1/changePhoneNumber',
    operation: 'changePhone',
    summary: 'Changes the number of the user whose session it is (`mobilePhoneNumber`, `code`).',
    auth: 'app',
    limit: smallBody,
    session: 'optional',
    body: phoneChange,
    reply: empty,
    refusals: [...ofCode, 'phoneTaken', 'userNotFound', 'sessionNeeded'],
    handle: async (call, { phones }) => {
      const { mobilePhoneNumber, code } = call.body;
      await phones.change(call, { mobilePhoneNumber, code });
      return json({});
    },
  }),
  resetRoute('PUT', 'resetPasswordByCode'),
  // For old clients of the Java SDK.
  resetRoute('POST', 'resetPasswordByCodeWithPost'),
];
