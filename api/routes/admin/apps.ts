import { z } from 'zod';
import { masked } from '../../../shared/domain/admin/masking.ts';
import { hasRole, type Operator } from '../../../shared/domain/admin/operator.ts';
import {
  type App,
  appOptionsPatch,
  importedAppId,
  importedKeys,
} from '../../../shared/domain/apps/app.ts';
import { refuse } from '../../../shared/domain/errors/errors.ts';
import { jsonObject } from '../../../shared/domain/json-schema.ts';
import { detail } from '../../../shared/domain/texts/texts.ts';
import { app, appSummary, pushProfile, shownApp } from '../../replies/admin/apps.ts';
import { profileDetail } from '../../replies/admin/gateways.ts';
import { appName as namedApp } from '../../replies/admin/objects.ts';
import { empty, keysetPageOf, resultsOf } from '../../replies/common.ts';
import { json, noBody, operatorBody, route, smallBody } from '../../route.ts';
import { pageQuery } from '../../services/operator/lists/page.ts';

/** Paths of apps and push profiles in the admin API (protocol/admin-api.md#calls). */
const appPath = '/console/api/apps/:appId';
const profilePath = `${appPath}/profiles/:connector/:name`;

const appName = z
  .string('expected a text')
  .trim()
  .min(1, 'must not be empty')
  .max(100, 'must be at most 100 characters')
  .refine((text) => !/\p{Cc}/u.test(text), 'must not hold control characters');

const newApp = z.strictObject({
  name: appName.describe('Name of the app.'),
  edition: z
    .enum(['home', 'international'], 'expected home or international')
    .optional()
    .describe(
      'Edition: `home` (China, the default) or `international`. It decides the currency of the usage report and whether codes by voice are possible.',
    ),
  plan: z
    .enum(['commercial', 'development'], 'expected commercial or development')
    .optional()
    .describe('Plan: it decides the limits of the app. The default is `commercial`.'),
  options: appOptionsPatch.optional().describe('Options of the app.'),
  // For an app that moves in from another service with its id and keys.
  appId: importedAppId.optional().describe('Id of an app that moves in. By default a new id.'),
  ...importedKeys.shape,
});

const appPatch = z.strictObject({
  name: appName.optional().describe('Name of the app.'),
  options: appOptionsPatch.optional().describe('Options to change.'),
});

/**
 * Confirmation of a deletion. The path alone is not enough, because a truncated path could name the
 * app.
 */
const appDeletion = z.strictObject({
  appId: z.string('expected the id of the app').describe('Id of the app, once more.'),
});

/** Credentials as any object. The connector checks their members. */
const credentials = jsonObject;

/** Maximum number of apps that one call names. */
const maxIds = 50;
/** Maximum length of a cursor: an app id, a space, and a name or a number. */
const maxCursor = 165;

const appsQuery = z.object({
  view: z
    .enum(['list', 'names'], 'expected list or names')
    .optional()
    .describe('`list`: pages without keys and options. `names`: only ids and names.'),
  q: z
    .string('expected one text')
    .min(1)
    .max(100)
    .optional()
    .describe('With a `view`: an id, or part of the name.'),
  ids: z
    .string('expected one text')
    .max(maxIds * 65)
    .transform((text) => text.split(','))
    .refine((ids) => ids.length <= maxIds, `must be at most ${maxIds} ids`)
    .optional()
    .describe(`With a \`view\`: at most ${maxIds} ids of apps, with commas between them.`),
  sort: z
    .enum(['id', 'name', 'activity'], 'expected id, name or activity')
    .optional()
    .describe(
      'With a `view`: order of the list. By default `id` for `list`, `name` for `names`. `activity`: ' +
        'the app with the newest push of seven days first, then apps without pushes by id.',
    ),
  limit: pageQuery.limit,
  cursor: z
    .string('expected one cursor')
    .max(maxCursor)
    .optional()
    .describe('`next` of the previous page.'),
});

const appView = z.object({
  view: z.enum(['options'], 'expected options').optional().describe('`options`: without keys.'),
});

/**
 * Returns an app in the form of the admin API (protocol/admin-api.md#apps). Only owners get its
 * keys.
 */
function toAppReply(
  { appId, appKey, masterKey, hookKey, name, edition, plan, options }: App,
  { role }: Operator,
) {
  if (hasRole(role, 'owner'))
    return { appId, appKey, masterKey, hookKey, name, edition, plan, options };
  const authPlatforms = Object.fromEntries(
    Object.entries(options.authPlatforms).map(([platform, members]) => [platform, masked(members)]),
  );
  return { appId, name, edition, plan, options: { ...options, authPlatforms } };
}

/** Returns an app in the form of a view. The view `options` has no keys. */
function toViewReply(view: 'options' | undefined, app: App, operator: Operator) {
  if (view === undefined) return toAppReply(app, operator);
  const { appId, name, edition, plan, options } = toAppReply(app, operator);
  return { appId, name, edition, plan, options };
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
    operation: 'createApp',
    summary:
      'Creates an app, or imports an app with its id and keys. Returns 409 if the id exists.',
    auth: 'admin',
    role: 'owner',
    limit: operatorBody,
    body: newApp,
    status: 201,
    reply: app,
    refusals: ['conflict'],
    handle: async (call, { apps }) => json(toAppReply(await apps.create(call.body), call.operator)),
  }),
  route({
    method: 'GET',
    path: '/console/api/apps',
    operation: 'listApps',
    summary:
      'Lists the apps with their options, and with their keys for owners. With a `view`, in ' +
      'pages, without keys and options.',
    auth: 'admin',
    role: 'viewer',
    isFiltered: true,
    limit: noBody,
    query: appsQuery,
    reply: z.union([resultsOf(shownApp), keysetPageOf(appSummary), keysetPageOf(namedApp)]),
    refusals: [],
    handle: async ({ operator, query: { view, ...query } }, { apps, appList }) => {
      const { sort = 'name' } = query;
      if (view === 'names') return json(await appList.names(operator, { ...query, sort }));
      if (view === 'list') return json(await appList.summaries(operator, { sort: 'id', ...query }));
      return json({ results: (await apps.list(operator)).map((one) => toAppReply(one, operator)) });
    },
  }),
  route({
    method: 'GET',
    path: appPath,
    operation: 'getApp',
    summary: 'Returns an app with its options. Owners also get its keys, unless `view=options`.',
    auth: 'admin',
    role: 'viewer',
    limit: noBody,
    query: appView,
    reply: shownApp,
    refusals: ['notFound'],
    handle: async (call, { apps }) => {
      const isOpen = call.query.view === 'options';
      const app = isOpen
        ? await apps.find(appIdOf(call))
        : await apps.read(call.operator, appIdOf(call));
      return json(toViewReply(call.query.view, app, call.operator));
    },
  }),
  route({
    method: 'PATCH',
    path: appPath,
    operation: 'updateApp',
    summary: 'Changes the name or options of an app.',
    auth: 'admin',
    role: 'operator',
    limit: operatorBody,
    query: appView,
    body: appPatch,
    reply: shownApp,
    refusals: ['notFound'],
    handle: async (call, { apps }) => {
      const app = await apps.change(appIdOf(call), call.body, call.operator.role);
      return json(toViewReply(call.query.view, app, call.operator));
    },
  }),
  route({
    method: 'DELETE',
    path: appPath,
    operation: 'deleteApp',
    summary: 'Deletes an app with all its data. `appId` in the body must repeat its id.',
    auth: 'admin',
    role: 'owner',
    limit: smallBody,
    body: appDeletion,
    isBodyRequired: true,
    reply: empty,
    refusals: ['notFound'],
    handle: async (call, { apps }) => {
      if (call.body.appId !== appIdOf(call)) throw refuse('invalidParameter', detail('appIdTwice'));
      await apps.delete(appIdOf(call));
      return json({});
    },
  }),
  route({
    method: 'PUT',
    path: profilePath,
    operation: 'putProfile',
    summary:
      'Creates or replaces a push profile. The body contains the credentials of the ' +
      'connector. The reply contains no secrets.',
    auth: 'admin',
    role: 'operator',
    limit: operatorBody,
    body: credentials,
    reply: pushProfile,
    refusals: ['notFound', 'forbidden'],
    handle: async (call, { profiles }) =>
      json(await profiles.put(profileOf(call), call.body, call.operator.role)),
  }),
  route({
    method: 'GET',
    path: `${appPath}/profiles`,
    operation: 'listProfiles',
    summary: 'Lists the push profiles of an app without secrets. Operators can use `view=details`.',
    auth: 'admin',
    role: 'viewer',
    limit: noBody,
    query: z.object({
      view: z
        .literal('details', 'expected details')
        .optional()
        .describe('Returns each profile in the form of `getProfile`.'),
    }),
    reply: z.union([resultsOf(pushProfile), resultsOf(profileDetail)]),
    refusals: ['notFound', 'timedOut', 'forbidden'],
    handle: async (call, { profiles, profileDetails }) => {
      const appId = appIdOf(call);
      if (call.query.view === undefined) return json({ results: await profiles.list(appId) });
      if (!hasRole(call.operator.role, 'operator'))
        throw refuse('forbidden', detail('profileDetails'));
      return json({ results: await profileDetails.list(appId) });
    },
  }),
  route({
    method: 'DELETE',
    path: profilePath,
    operation: 'deleteProfile',
    summary: 'Deletes a push profile.',
    auth: 'admin',
    role: 'operator',
    limit: smallBody,
    reply: empty,
    refusals: ['notFound'],
    handle: async (call, { profiles }) => {
      await profiles.delete(profileOf(call));
      return json({});
    },
  }),
];
