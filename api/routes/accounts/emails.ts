import { empty } from '../../replies/common.ts';
import { mailRequest, passwordForm } from '../../requests/accounts.ts';
import { json, noBody, type Reply, route, smallBody } from '../../route.ts';
import { pageHeaders } from '../../services/server/html-page.ts';

/** Replies with a page: the result, an invalid form, or a link that is used or forged. */
const page = { contentType: 'text/html; charset=utf-8' };
const pages = { 200: page, 400: page, 404: page };

const show = ({ status, html }: { status: number; html: string }): Reply => ({
  status,
  body: html,
  type: page.contentType,
  headers: { ...pageHeaders },
});

export default [
  route({
    method: 'POST',
    path: '/1.1/requestEmailVerify',
    operation: 'requestEmailVerify',
    summary: 'Sends the mail that verifies an address (`email`).',
    auth: 'app',
    limit: smallBody,
    body: mailRequest,
    reply: empty,
    refusals: [
      'emailVerificationOff',
      'emailMissing',
      'emailUnknown',
      'invalidEmail',
      'tooManyMails',
    ],
    handle: async ({ app, isMaster, remoteAddress, body }, { emails }) => {
      await emails.requestVerification({ app, isMaster, ipAddress: remoteAddress }, body.email);
      return json({});
    },
  }),
  route({
    method: 'POST',
    path: '/1.1/requestPasswordReset',
    operation: 'requestPasswordReset',
    summary: 'Sends the mail that resets the password of an account (`email`).',
    auth: 'app',
    limit: smallBody,
    body: mailRequest,
    reply: empty,
    refusals: ['emailMissing', 'emailUnknown', 'invalidEmail', 'tooManyMails'],
    handle: async ({ app, isMaster, remoteAddress, body }, { emails }) => {
      await emails.requestReset({ app, isMaster, ipAddress: remoteAddress }, body.email);
      return json({});
    },
  }),
  route({
    method: 'GET',
    path: '/1.1/verifyEmail/:token',
    operation: 'verifyEmail',
    summary: 'Verifies the address by the link of a mail and shows a page with the result.',
    auth: 'none',
    writes: true,
    limit: noBody,
    reply: pages,
    refusals: [],
    handle: async ({ params, language }, { emails }) =>
      show(await emails.verifyPage(params.token ?? '', language)),
  }),
  route({
    method: 'GET',
    path: '/1.1/resetPassword/:token',
    operation: 'showPasswordForm',
    summary: 'Shows the form that asks for a new password.',
    auth: 'none',
    limit: noBody,
    reply: pages,
    refusals: [],
    handle: async ({ params, language }, { emails }) =>
      show(await emails.resetForm(params.token ?? '', language)),
  }),
  route({
    method: 'POST',
    path: '/1.1/resetPassword/:token',
    operation: 'submitPasswordForm',
    summary: 'Takes the form with the new password and shows the result.',
    auth: 'none',
    limit: smallBody,
    body: passwordForm,
    reply: pages,
    refusals: [],
    handle: async ({ params, body, language }, { emails }) =>
      show(await emails.submitReset(params.token ?? '', body, language)),
  }),
];
