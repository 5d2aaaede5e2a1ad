import { z } from 'zod';
import { flagQuery } from '../../../../shared/domain/client-values.ts';
import type { ErrorName } from '../../../../shared/domain/errors/errors.ts';
import type { AdminCall } from '../../../calls/call.ts';
import { userDetail } from '../../../replies/admin/objects.ts';
import { erasureReport, personExport } from '../../../replies/admin/personal-data.ts';
import { empty, keysetPageOf } from '../../../replies/common.ts';
import { userPart } from '../../../replies/objects.ts';
import { ofHooks, ofQuery, ofUser } from '../../../replies/refusals.ts';
import { userMembers } from '../../../requests/objects.ts';
import { json, noBody, route, smallBody, userBody } from '../../../route.ts';
import { maxCountFor } from '../../../services/operator/devices/devices.ts';
import { countQuery, pageOf, pageQuery } from '../../../services/operator/lists/page.ts';
import type { Services } from '../../../services/services.ts';

/** Users of an app (protocol/admin-api.md#users). */
const base = '/console/api/apps/:appId/users';
const path = `${base}/:id`;

const listQuery = z.object({
  ...pageQuery,
  q: z
    .string('expected one text')
    .min(1)
    .max(1024)
    .refine((text) => !text.includes('\0'), 'must not hold NUL')
    .optional()
    .describe('An objectId. Operators may also use a name, an address or a number.'),
  where: z.string('expected one condition').max(10_000).optional().describe('Condition as JSON.'),
  count: countQuery,
});

const erasureQuery = z.object({
  everything: flagQuery.describe('Deletes everything that is stored of the person.'),
  dryRun: flagQuery.describe('With `everything`: only counts.'),
});

const verification = z.strictObject({
  contact: z
    .enum(['email', 'mobilePhoneNumber'], 'expected email or mobilePhoneNumber')
    .default('email')
    .describe('Contact that is marked as verified.'),
});

type AnyAdminCall = Pick<AdminCall<unknown, unknown>, 'params'>;

const targetOf = async ({ params }: AnyAdminCall, { apps }: Services) => ({
  app: await apps.get(params.appId ?? ''),
  objectId: params.id ?? '',
});

interface UserAct {
  /** Last part of the path. */
  act: string;
  operation: string;
  summary: string;
  refusals: readonly ErrorName[];
  run: (
    control: Services['accountControl'],
    target: Awaited<ReturnType<typeof targetOf>>,
  ) => Promise<void>;
}

/** Creates the route of an action on a user that needs no body. */
const actRoute = ({ act, operation, summary, refusals, run }: UserAct) =>
  route({
    method: 'POST',
    path: `${path}/${act}`,
    operation,
    summary,
    auth: 'admin',
    role: 'operator',
    limit: smallBody,
    reply: empty,
    refusals,
    handle: async (call, services) => {
      await run(services.accountControl, await targetOf(call, services));
      return json({});
    },
  });

export default [
  route({
    method: 'GET',
    path: base,
    operation: 'listAppUsers',
    summary:
      'Lists the users of an app by an id or a condition, newest first. Below the role ' +
      'operator, personal data is shortened.',
    auth: 'admin',
    role: 'viewer',
    limit: noBody,
    query: listQuery,
    reply: keysetPageOf(userPart),
    refusals: ['notFound', ...ofQuery],
    handle: async ({ operator, params, query }, { userAdmin }) => {
      const request = {
        ...pageOf(query),
        q: query.q,
        where: query.where,
        maxCount: maxCountFor(query.count),
      };
      return json(await userAdmin.list(operator, params.appId ?? '', request));
    },
  }),
  route({
    method: 'GET',
    path,
    operation: 'getAppUser',
    summary: 'Returns a user with third-party accounts and lock state.',
    auth: 'admin',
    role: 'viewer',
    limit: noBody,
    reply: userDetail,
    refusals: ['notFound'],
    handle: async ({ operator, params }, { userAdmin }) =>
      json(await userAdmin.get(operator, params.appId ?? '', params.id ?? '')),
  }),
  route({
    method: 'PUT',
    path,
    operation: 'updateAppUser',
    summary:
      'Changes members of a user, as `PUT /1.1/users/:objectId` does with the master key, ' +
      'including hooks.',
    auth: 'admin',
    role: 'operator',
    limit: userBody,
    body: userMembers,
    reply: userDetail,
    refusals: ['notFound', 'noSuchObject', ...ofUser, ...ofHooks],
    handle: async ({ operator, params, body }, { userAdmin }) =>
      json(
        await userAdmin.update(operator, params.appId ?? '', { objectId: params.id ?? '', body }),
      ),
  }),
  route({
    method: 'DELETE',
    path,
    operation: 'deleteAppUser',
    summary:
      'Deletes a user, including hooks. With `everything`, also deletes all that is stored of the ' +
      'person, and returns a report. This needs the role owner.',
    auth: 'admin',
    role: 'operator',
    limit: smallBody,
    query: erasureQuery,
    reply: empty.or(erasureReport),
    refusals: ['notFound', 'invalidParameter', ...ofHooks],
    handle: async ({ operator, params, query }, { personalData, userAdmin }) => {
      const { appId = '', id = '' } = params;
      const { dryRun: isDryRun = false, everything = false } = query;
      if (everything || isDryRun)
        return json(await personalData.erase(operator, appId, id, { everything, isDryRun }));
      await userAdmin.delete(appId, id);
      return json({});
    },
  }),
  route({
    method: 'GET',
    path: `${path}/export`,
    operation: 'exportAppUser',
    summary:
      'Returns everything that is stored of one person. Secrets are named without their value.',
    auth: 'admin',
    role: 'owner',
    limit: noBody,
    reply: personExport,
    refusals: ['notFound', 'tooLarge'],
    handle: async ({ params }, { personalData }) =>
      json(await personalData.export(params.appId ?? '', params.id ?? '')),
  }),
  actRoute({
    act: 'logout',
    operation: 'logoutUser',
    summary: 'Ends the session of a user on all devices.',
    refusals: ['notFound'],
    run: (control, target) => control.logout(target),
  }),
  actRoute({
    act: 'unlock',
    operation: 'unlockUser',
    summary: 'Ends the lock of a user after failed logins.',
    refusals: ['notFound'],
    run: (control, target) => control.unlock(target),
  }),
  actRoute({
    act: 'send-reset',
    operation: 'sendUserReset',
    summary: 'Mails a link to a user. The link resets the password.',
    refusals: ['notFound', 'emailMissing', 'tooManyMails'],
    run: (control, target) => control.sendReset(target),
  }),
  route({
    method: 'POST',
    path: `${path}/verify`,
    operation: 'verifyUser',
    summary: 'Marks the address or number of a user as verified, without a message.',
    auth: 'admin',
    role: 'operator',
    limit: smallBody,
    body: verification,
    reply: empty,
    refusals: ['notFound', 'emailMissing', 'phoneMissing'],
    handle: async (call, services) => {
      await services.accountControl.verify(await targetOf(call, services), call.body.contact);
      return json({});
    },
  }),
];
