import { z } from 'zod';
import { providersShape } from '../../../shared/domain/messages/sms-provider.ts';
import { smsSignature, smsTemplate } from '../../replies/admin/apps.ts';
import { empty, resultsOf } from '../../replies/common.ts';
import { json, noBody, operatorBody, route, smallBody } from '../../route.ts';

/** Templates and signatures of messages (protocol/admin-api.md#sms-texts). */
const templates = '/console/api/apps/:appId/sms-templates';
const signatures = '/console/api/apps/:appId/sms-signatures';

const template = z.strictObject({
  type: z
    .enum(['verification', 'notification'], 'expected verification or notification')
    .describe('`verification` texts contain the code, `notification` texts do not.'),
  text: z
    .string('expected a text')
    .min(1, 'must not be empty')
    .max(500, 'must be at most 500 characters')
    .describe('Text of the message: see protocol/codes.md#templates.'),
  providers: providersShape
    .optional()
    .describe('Templates of SMS providers for this text, by provider.'),
});

/** Body of a signature. It has no members, because the name is in the path. */
const signature = z.strictObject({});

const idOf = ({ params }: { params: Record<string, string> }): [string, string] => [
  params.appId ?? '',
  params.name ?? '',
];

export default [
  route({
    method: 'PUT',
    path: `${templates}/:name`,
    operation: 'putSmsTemplate',
    summary: 'Creates or replaces an SMS template.',
    auth: 'admin',
    role: 'operator',
    limit: operatorBody,
    body: template,
    reply: smsTemplate,
    refusals: ['notFound', 'insufficientBalance'],
    handle: async (call, { smsTexts }) =>
      json(await smsTexts.putTemplate(...idOf(call), call.body)),
  }),
  route({
    method: 'GET',
    path: templates,
    operation: 'listSmsTemplates',
    summary: 'Lists the SMS templates of an app.',
    auth: 'admin',
    role: 'viewer',
    limit: noBody,
    reply: resultsOf(smsTemplate),
    refusals: ['notFound'],
    handle: async (call, { smsTexts }) =>
      json({ results: await smsTexts.listTemplates(idOf(call)[0]) }),
  }),
  route({
    method: 'GET',
    path: `${templates}/:name`,
    operation: 'getSmsTemplate',
    summary: 'Returns an SMS template.',
    auth: 'admin',
    role: 'viewer',
    limit: noBody,
    reply: smsTemplate,
    refusals: ['notFound'],
    handle: async (call, { smsTexts }) => json(await smsTexts.getTemplate(...idOf(call))),
  }),
  route({
    method: 'POST',
    path: `${templates}/:name/approve`,
    operation: 'approveSmsTemplate',
    summary: 'Approves an SMS template.',
    auth: 'admin',
    role: 'operator',
    limit: smallBody,
    reply: smsTemplate,
    refusals: ['notFound'],
    handle: async (call, { smsTexts }) => json(await smsTexts.approveTemplate(...idOf(call))),
  }),
  route({
    method: 'DELETE',
    path: `${templates}/:name`,
    operation: 'deleteSmsTemplate',
    summary: 'Deletes an SMS template.',
    auth: 'admin',
    role: 'operator',
    limit: smallBody,
    reply: empty,
    refusals: ['notFound'],
    handle: async (call, { smsTexts }) => {
      await smsTexts.deleteTemplate(...idOf(call));
      return json({});
    },
  }),
  route({
    method: 'PUT',
    path: `${signatures}/:name`,
    operation: 'putSmsSignature',
    summary: 'Creates an SMS signature.',
    auth: 'admin',
    role: 'operator',
    limit: operatorBody,
    body: signature,
    reply: smsSignature,
    refusals: ['notFound'],
    handle: async (call, { smsTexts }) => json(await smsTexts.putSignature(...idOf(call))),
  }),
  route({
    method: 'GET',
    path: signatures,
    operation: 'listSmsSignatures',
    summary: 'Lists the SMS signatures of an app.',
    auth: 'admin',
    role: 'viewer',
    limit: noBody,
    reply: resultsOf(smsSignature),
    refusals: ['notFound'],
    handle: async (call, { smsTexts }) =>
      json({ results: await smsTexts.listSignatures(idOf(call)[0]) }),
  }),
  route({
    method: 'GET',
    path: `${signatures}/:name`,
    operation: 'getSmsSignature',
    summary: 'Returns an SMS signature.',
    auth: 'admin',
    role: 'viewer',
    limit: noBody,
    reply: smsSignature,
    refusals: ['notFound'],
    handle: async (call, { smsTexts }) => json(await smsTexts.getSignature(...idOf(call))),
  }),
  route({
    method: 'POST',
    path: `${signatures}/:name/approve`,
    operation: 'approveSmsSignature',
    summary: 'Approves an SMS signature.',
    auth: 'admin',
    role: 'operator',
    limit: smallBody,
    reply: smsSignature,
    refusals: ['notFound'],
    handle: async (call, { smsTexts }) => json(await smsTexts.approveSignature(...idOf(call))),
  }),
  route({
    method: 'DELETE',
    path: `${signatures}/:name`,
    operation: 'deleteSmsSignature',
    summary: 'Deletes an SMS signature.',
    auth: 'admin',
    role: 'operator',
    limit: smallBody,
    reply: empty,
    refusals: ['notFound'],
    handle: async (call, { smsTexts }) => {
      await smsTexts.deleteSignature(...idOf(call));
      return json({});
    },
  }),
];
