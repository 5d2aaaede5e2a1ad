import { z } from 'zod';
import { type App, appOptionsPatch } from '../../../shared/domain/apps/app.ts';
import { broughtAppId, broughtKeys } from '../../../shared/domain/apps/identity.ts';
import { json, noBody, operatorBody, route, smallBody } from '../../route.ts';

/** The admin API (protocol/admin-api.md#calls): apps, push profiles, outbox. */
const appPath = '/console/api/apps/:appId';
const profilePath = `${appPath}/profiles/:connector/:name`;

const appName = z
  .string('expected a text')
  .trim()
  .min(1, 'must not be empty')
  .max(100, 'must be at most 100 characters')
  .refine((text) => !/\p{Cc}/u.test(text), 'must not hold control characters');

const newApp = z.strictObject({
  name: appName,
  edition: z.enum(['home', 'international'], 'expected home or international').optional(),
  plan: z.enum(['commercial', 'development'], 'expected commercial or development').optional(),
  options: appOptionsPatch.optional(),
  // An app that moves in keeps its id and keys.
  appId: broughtAppId.optional(),
  ...broughtKeys.shape,
});

const appPatch = z.strictObject({ name: appName.optional(), options: appOptionsPatch.optional() });

/** A body is a dictionary already; which members it may have is the connector's business. */
const credentials = z.record(z.string(), z.json());

const outboxQuery = z.object({
  kind: z.enum(['sms', 'mail'], 'expected sms or mail').optional(),
  to: z
    .string('expected one address')
    .transform((text) => text.replace(/^ (?=\d)/, '+'))
    .optional(),
});

/** An app as the admin API shows it (protocol/admin-api.md#apps), keys included. */
function toPublicApp({ appId, appKey, masterKey, hookKey, name, edition, plan, options }: App) {
  return { appId, appKey, masterKey, hookKey, name, edition, plan, options };
}

const appIdOf = (call: { params: Record<string, string> }) => call.params.appId ?? '';

const profileOf = (call: { params: Record<string, string> }) => ({
  appId: appIdOf(call),
  connector: call.params.connector ?? '',
  name: call.params.name ?? '',
});

export default [
  route({
    method: 'POST',
    path: '/console/api/apps',
    summary: 'Creates an app, or takes over one with its id and keys; 409 where the id exists.',
    auth: 'admin',
    limit: operatorBody,
    body: newApp,
    status: 201,
    handle: async (call, { apps }) => json(toPublicApp(await apps.create(call.body))),
  }),
  route({
    method: 'GET',
    path: '/console/api/apps',
    summary: 'Lists all apps with their keys and options.',
    auth: 'admin',
    limit: noBody,
    handle: async (_call, { apps }) => json({ results: (await apps.list()).map(toPublicApp) }),
  }),
  route({
    method: 'GET',
    path: appPath,
    summary: 'Returns one app with its keys and options.',
    auth: 'admin',
    limit: noBody,
    handle: async (call, { apps }) => json(toPublicApp(await apps.get(appIdOf(call)))),
  }),
  route({
    method: 'PATCH',
    path: appPath,
    summary: 'Changes the name or options of an app.',
    auth: 'admin',
    limit: operatorBody,
    body: appPatch,
    handle: async (call, { apps }) => json(toPublicApp(await apps.change(appIdOf(call), call.body))),
  }),
  route({
    method: 'DELETE',
    path: appPath,
    summary: 'Deletes an app with all its data.',
    auth: 'admin',
    limit: smallBody,
    handle: async (call, { apps }) => {
      await apps.delete(appIdOf(call));
      return json({});
    },
  }),
  route({
    method: 'PUT',
    path: profilePath,
    summary:
      'Creates or replaces a push profile; the body holds the credentials of the connector. The reply holds no secret.',
    auth: 'admin',
    limit: operatorBody,
    body: credentials,
    handle: async (call, { profiles }) => json(await profiles.put(profileOf(call), call.body)),
  }),
  route({
    method: 'GET',
    path: `${appPath}/profiles`,
    summary: 'Lists the push profiles of an app without secrets.',
    auth: 'admin',
    limit: noBody,
    handle: async (call, { profiles }) => json({ results: await profiles.list(appIdOf(call)) }),
  }),
  route({
    method: 'DELETE',
    path: profilePath,
    summary: 'Deletes a push profile.',
    auth: 'admin',
    limit: smallBody,
    handle: async (call, { profiles }) => {
      await profiles.delete(profileOf(call));
      return json({});
    },
  }),
  route({
    method: 'GET',
    path: `${appPath}/outbox`,
    summary: 'Lists messages that were sent, or that no supplier was there to send, newest first.',
    auth: 'admin',
    limit: noBody,
    query: outboxQuery,
    handle: async (call, { outbox }) => json({ results: await outbox.list(appIdOf(call), call.query) }),
  }),
];
