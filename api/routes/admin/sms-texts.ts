import { z } from 'zod';
import { json, noBody, operatorBody, route, smallBody } from '../../route.ts';

/** Templates and signatures of messages (protocol/admin-api.md#sms-texts). */
const templates = '/console/api/apps/:appId/sms-templates';
const signatures = '/console/api/apps/:appId/sms-signatures';

const template = z.strictObject({
  type: z.enum(['verification', 'notification'], 'expected verification or notification'),
  text: z.string('expected a text').min(1, 'must not be empty').max(500, 'must be at most 500 characters'),
});

/** A signature is its name; further members are taken for a mistake. */
const signature = z.strictObject({});

const idOf = ({ params }: { params: Record<string, string> }): [string, string] => [
  params.appId ?? '',
  params.name ?? '',
];

export default [
  route({
    method: 'PUT',
    path: `${templates}/:name`,
    summary: 'Creates or replaces an SMS template.',
    auth: 'admin',
    limit: operatorBody,
    body: template,
    handle: async (call, { smsTexts }) => json(await smsTexts.putTemplate(...idOf(call), call.body)),
  }),
  route({
    method: 'GET',
    path: templates,
    summary: 'Lists the SMS templates of an app.',
    auth: 'admin',
    limit: noBody,
    handle: async (call, { smsTexts }) => json({ results: await smsTexts.listTemplates(idOf(call)[0]) }),
  }),
  route({
    method: 'GET',
    path: `${templates}/:name`,
    summary: 'Returns an SMS template.',
    auth: 'admin',
    limit: noBody,
    handle: async (call, { smsTexts }) => json(await smsTexts.getTemplate(...idOf(call))),
  }),
  route({
    method: 'POST',
    path: `${templates}/:name/approve`,
    summary: 'Approves an SMS template.',
    auth: 'admin',
    limit: smallBody,
    handle: async (call, { smsTexts }) => json(await smsTexts.approveTemplate(...idOf(call))),
  }),
  route({
    method: 'DELETE',
    path: `${templates}/:name`,
    summary: 'Deletes an SMS template.',
    auth: 'admin',
    limit: smallBody,
    handle: async (call, { smsTexts }) => {
      await smsTexts.deleteTemplate(...idOf(call));
      return json({});
    },
  }),
  route({
    method: 'PUT',
    path: `${signatures}/:name`,
    summary: 'Creates an SMS signature.',
    auth: 'admin',
    limit: operatorBody,
    body: signature,
    handle: async (call, { smsTexts }) => json(await smsTexts.putSignature(...idOf(call))),
  }),
  route({
    method: 'GET',
    path: signatures,
    summary: 'Lists the SMS signatures of an app.',
    auth: 'admin',
    limit: noBody,
    handle: async (call, { smsTexts }) => json({ results: await smsTexts.listSignatures(idOf(call)[0]) }),
  }),
  route({
    method: 'GET',
    path: `${signatures}/:name`,
    summary: 'Returns an SMS signature.',
    auth: 'admin',
    limit: noBody,
    handle: async (call, { smsTexts }) => json(await smsTexts.getSignature(...idOf(call))),
  }),
  route({
    method: 'POST',
    path: `${signatures}/:name/approve`,
    summary: 'Approves an SMS signature.',
    auth: 'admin',
    limit: smallBody,
    handle: async (call, { smsTexts }) => json(await smsTexts.approveSignature(...idOf(call))),
  }),
  route({
    method: 'DELETE',
    path: `${signatures}/:name`,
    summary: 'Deletes an SMS signature.',
    auth: 'admin',
    limit: smallBody,
    handle: async (call, { smsTexts }) => {
      await smsTexts.deleteSignature(...idOf(call));
      return json({});
    },
  }),
];
