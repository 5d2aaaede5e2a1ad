import { z } from 'zod';
import type { Freeze } from '../../../shared/db/tables/apps.ts';
import type { Operator } from '../../../shared/domain/admin/operator.ts';
import { jsonObject } from '../../../shared/domain/json-schema.ts';
import { connectorIds } from '../../../shared/domain/labels.ts';
import { flowControl, queryBody } from '../../../shared/domain/pushes/body.ts';
import { appReport, usageReport } from '../../replies/admin/apps.ts';
import { quotas } from '../../replies/admin/gateways.ts';
import { breaker, deviceExplanation, pushForecast } from '../../replies/admin/pushes.ts';
import { approvedPush } from '../../replies/admin/records.ts';
import { freeze } from '../../replies/admin/service.ts';
import { count, resultsOf } from '../../replies/common.ts';
import { pushRecord, recallCounts } from '../../replies/pushes.ts';
import { ofPush } from '../../replies/refusals.ts';
import { parsedByService } from '../../requests/checked.ts';
import { json, noBody, operatorBody, route, smallBody } from '../../route.ts';
import type { BreakerReply } from '../../services/operator/breakers.ts';
import type { PushName } from '../../services/push/push-control.ts';

/**
 * Path of a push that callers cancel, pause, resume, approve or pace
 * (protocol/admin-api.md#control-of-a-push). Each call returns the push record. A sender controls
 * only the pushes of its own token.
 */
const pushPath = '/console/api/apps/:appId/notifications/:id';

const resumption = z.strictObject({
  flow_control: flowControl.describe('New rate in recipients per second.'),
});

const pace = z.strictObject({
  flow_control: flowControl
    .unwrap()
    .describe('New rate in recipients per second. Null means no limit.'),
});

const recallBody = z.strictObject({
  dryRun: z
    .boolean('expected true or false')
    .optional()
    .describe('True to recall nothing and only return the numbers.'),
  replacement: z
    .strictObject({
      data: jsonObject.describe('Content, like `data` of a push: see protocol/push.md#content.'),
    })
    .optional()
    .describe('Message that replaces the message of the push.'),
});

const pushOf = ({
  params,
  operator,
}: {
  params: Record<string, string>;
  operator: Operator;
}): PushName => ({
  controller: operator,
  appId: params.appId ?? '',
  publicId: params.id ?? '',
});

/** Path of an app, for the explanations of its pushes (protocol/admin-api.md#calls). */
const appPath = '/console/api/apps/:appId';

const dayExpected = 'expected a day as YYYY-MM-DD';
const day = z.iso
  .date(dayExpected)
  // PostgreSQL has no year 0.
  .refine((text) => text >= '0001-01-01', dayExpected)
  .optional();
const usageQuery = z
  .object({
    day: day.describe('One day. Today by default.'),
    from: day.describe('With `to`: several days instead of one day, at most 400.'),
    to: day.describe('With `from`: the last day.'),
  })
  .refine(({ from, to }) => (from === undefined) === (to === undefined), {
    path: ['from'],
    message: 'from and to belong together',
  });

/** Path of the circuit breakers of all dispatchers (protocol/admin-api.md#breakers). */
const base = '/console/api/breakers';

/**
 * Returns a breaker in the form of the admin API. `lastFailure` is null after the gateway has
 * replied again.
 */
const toPublicBreaker = ({
  id,
  connector,
  appId,
  profile,
  state,
  forced,
  since,
  nextProbeAt,
  lastFailure,
}: BreakerReply) => ({
  id,
  connector,
  appId,
  profile,
  state,
  forced,
  since: since.toISOString(),
  nextProbeAt: nextProbeAt?.toISOString() ?? null,
  lastFailure: lastFailure && { ...lastFailure, at: lastFailure.at.toISOString() },
});

/**
 * State that each verb forces. After `release`, the breaker depends on the gateway's replies again.
 */
const forcing = { open: 'open', close: 'closed', release: null } as const;

const operations = {
  open: 'openBreaker',
  close: 'closeBreaker',
  release: 'releaseBreaker',
} as const;

const summaries = {
  open:
    'Forces a circuit breaker open on every dispatcher: the gateway gets no requests ' +
    'until it is released.',
  close:
    'Forces a circuit breaker closed on every dispatcher: requests are sent whatever the ' +
    'gateway replies.',
  release: 'Ends a forced state: the breaker follows the responses of the gateway again.',
} as const;

const change = (verb: keyof typeof forcing) =>
  route({
    method: 'POST',
    path: `${base}/:id/${verb}`,
    operation: operations[verb],
    summary: summaries[verb],
    auth: 'admin',
    role: 'operator',
    isFiltered: true,
    limit: smallBody,
    reply: breaker,
    refusals: ['notFound'],
    handle: async (call, { breakers }) =>
      json(
        toPublicBreaker(await breakers.force(call.operator, call.params.id ?? '', forcing[verb])),
      ),
  });

/** Paths of the freezes of the whole service and of an app (protocol/admin-api.md#freezes). */
const ofService = '/console/api/freeze';
const ofApp = '/console/api/apps/:appId/freeze';

const maxReason = 200;

const reasonBody = z.strictObject({
  reason: z
    .string()
    .max(maxReason, `must have at most ${maxReason} characters`)
    .default('')
    .describe('Reason, for the other operators.'),
});

const toFreezeReply = ({ appId, reason, by, since }: Freeze) => ({
  appId,
  reason,
  by,
  since: since.toISOString(),
});

export default [
  route({
    method: 'POST',
    path: `${pushPath}/cancel`,
    operation: 'cancelPush',
    summary: 'Cancels an unfinished push and returns its record.',
    auth: 'admin',
    role: 'sender',
    limit: smallBody,
    reply: pushRecord,
    refusals: ['objectNotFound', 'conflict'],
    handle: async (call, { pushControl }) => json(await pushControl.cancel(pushOf(call))),
  }),
  route({
    method: 'POST',
    path: `${pushPath}/pause`,
    operation: 'pausePush',
    summary: 'Pauses a push that is being sent and returns its record.',
    auth: 'admin',
    role: 'sender',
    limit: smallBody,
    reply: pushRecord,
    refusals: ['objectNotFound', 'conflict'],
    handle: async (call, { pushControl }) => json(await pushControl.pause(pushOf(call))),
  }),
  route({
    method: 'POST',
    path: `${pushPath}/resume`,
    operation: 'resumePush',
    summary:
      'Resumes a paused push and returns its record. `flow_control` in the body sets a new rate.',
    auth: 'admin',
    role: 'sender',
    limit: operatorBody,
    body: resumption,
    reply: pushRecord,
    refusals: ['objectNotFound', 'conflict'],
    handle: async (call, { pushControl }) =>
      json(await pushControl.resume(pushOf(call), call.body.flow_control)),
  }),
  route({
    method: 'POST',
    path: `${pushPath}/approve`,
    operation: 'approvePush',
    summary:
      'Approves a push to many devices that another person or the app sent. Returns its ' +
      'record with the number of missing approvals.',
    auth: 'admin',
    role: 'operator',
    limit: smallBody,
    reply: approvedPush,
    refusals: ['objectNotFound', 'conflict'],
    handle: async (call, { pushControl }) =>
      json(await pushControl.approve({ ...pushOf(call), controller: call.operator })),
  }),
  route({
    method: 'POST',
    path: `${pushPath}/recall`,
    operation: 'recallPush',
    summary:
      'Recalls the messages of a finished or cancelled push: from gateways that can recall, and ' +
      'from the device channel. With `replacement`, a new message replaces them elsewhere.',
    auth: 'admin',
    role: 'sender',
    limit: operatorBody,
    body: recallBody,
    reply: z.strictObject({ connectors: recallCounts }),
    refusals: ['notFound', 'objectNotFound', 'conflict', ...ofPush],
    handle: async (call, { recalls }) => {
      const { dryRun: isDryRun = false, replacement } = call.body;
      const request = { isDryRun, replacement: replacement?.data ?? null };
      return json(await recalls.recall(call.operator, pushOf(call), request));
    },
  }),
  route({
    method: 'POST',
    path: `${pushPath}/delete-invalid`,
    operation: 'deleteInvalidDevices',
    summary:
      'Deletes the devices whose tokens a finished push found invalid. This includes devices ' +
      'that the push kept because most tokens of a profile were invalid. Devices that were ' +
      'saved since then stay.',
    auth: 'admin',
    role: 'operator',
    limit: smallBody,
    reply: z.strictObject({ deleted: count.describe('Number of deleted devices.') }),
    refusals: ['objectNotFound', 'conflict'],
    handle: async (call, { pushControl }) => json(await pushControl.deleteInvalid(pushOf(call))),
  }),
  route({
    method: 'POST',
    path: `${pushPath}/pace`,
    operation: 'pacePush',
    summary:
      'Changes the recipients per second of an unfinished push and returns its record. Null ' +
      'means no limit.',
    auth: 'admin',
    role: 'sender',
    limit: operatorBody,
    isBodyRequired: true,
    body: pace,
    reply: pushRecord,
    refusals: ['objectNotFound', 'conflict'],
    handle: async (call, { pushControl }) =>
      json(await pushControl.pace(pushOf(call), call.body.flow_control)),
  }),
  route({
    method: 'GET',
    path: `${appPath}/notifications/:objectId/devices/:installation`,
    operation: 'explainDevice',
    summary: 'Explains why a device did or did not get a push.',
    auth: 'admin',
    role: 'viewer',
    limit: noBody,
    reply: deviceExplanation,
    refusals: ['notFound', 'objectNotFound'],
    handle: async ({ params }, { pushTraces }) =>
      json(
        await pushTraces.explain(
          params.appId ?? '',
          params.objectId ?? '',
          params.installation ?? '',
        ),
      ),
  }),
  route({
    method: 'POST',
    path: `${appPath}/push/explain`,
    operation: 'explainPush',
    summary:
      'Returns what a push would do: audience, payloads, limits and time. Sends nothing. The ' +
      'body is the same as for `POST /1.1/push`.',
    auth: 'admin',
    role: 'sender',
    changesNothing: true,
    limit: operatorBody,
    body: parsedByService(queryBody),
    reply: pushForecast,
    refusals: ['notFound', ...ofPush],
    handle: async (call, { dryRun }) =>
      json(await dryRun.explain(call.operator, call.params.appId ?? '', call)),
  }),
  route({
    method: 'GET',
    path: '/console/api/apps/:appId/usage',
    operation: 'getUsage',
    summary: 'Returns the usage and fees of an app on one or several days (UTC).',
    auth: 'admin',
    role: 'viewer',
    limit: noBody,
    query: usageQuery,
    reply: z.union([usageReport, resultsOf(usageReport)]),
    refusals: ['notFound'],
    handle: async ({ params, query }, { usage }) => {
      const { day: one, from, to } = query;
      const appId = params.appId ?? '';
      if (from === undefined || to === undefined) return json(await usage.report(appId, one));
      return json({ results: await usage.range(appId, { from, to }) });
    },
  }),
  route({
    method: 'GET',
    path: '/console/api/apps/:appId/reports',
    operation: 'getReport',
    summary: 'Returns totals of an app by day (UTC), at most 731 days, computed every 15 minutes.',
    auth: 'admin',
    role: 'viewer',
    limit: noBody,
    query: z.object({
      from: day.describe('First day. 29 days before the last one by default.'),
      to: day.describe('Last day. Today by default.'),
      connector: z
        .enum(connectorIds, 'expected a connector')
        .optional()
        .describe('Only this connector.'),
      class: z.string().max(64).optional().describe('Message class or kind; empty for none.'),
    }),
    reply: appReport,
    refusals: ['notFound', 'invalidParameter'],
    handle: async ({ params, query }, { reports }) =>
      json(await reports.read(params.appId ?? '', query)),
  }),
  route({
    method: 'GET',
    path: '/console/api/apps/:appId/quotas',
    operation: 'getQuotas',
    summary:
      'Returns an app’s usage of its gateways on a day in China, with a forecast of its ' +
      'scheduled pushes.',
    auth: 'admin',
    role: 'viewer',
    limit: noBody,
    query: z.object({ day: day.describe('Day in China. Today by default.') }),
    reply: quotas,
    refusals: ['notFound'],
    handle: async (call, services) =>
      json(await services.quotas.read(call.params.appId ?? '', call.query.day)),
  }),
  route({
    method: 'GET',
    path: base,
    operation: 'listBreakers',
    summary: 'Lists the circuit breakers of all dispatchers with their state and last failure.',
    auth: 'admin',
    role: 'viewer',
    isFiltered: true,
    limit: noBody,
    reply: resultsOf(breaker),
    refusals: [],
    handle: async ({ operator }, { breakers }) =>
      json({ results: (await breakers.list(operator)).map(toPublicBreaker) }),
  }),
  change('open'),
  change('close'),
  change('release'),
  route({
    method: 'GET',
    path: '/console/api/freezes',
    operation: 'listFreezes',
    summary: 'Lists the frozen apps, and the freeze of the whole service.',
    auth: 'admin',
    role: 'viewer',
    isFiltered: true,
    limit: noBody,
    reply: resultsOf(freeze),
    refusals: [],
    handle: async ({ operator }, { freezes }) =>
      json({ results: (await freezes.list(operator)).map(toFreezeReply) }),
  }),
  route({
    method: 'PUT',
    path: ofService,
    operation: 'freezeService',
    summary:
      'Freezes the service. Pushes are accepted but not sent until it is released. Pushes ' +
      'being sent stop within a second.',
    auth: 'admin',
    role: 'operator',
    limit: smallBody,
    body: reasonBody,
    reply: freeze,
    refusals: [],
    handle: async ({ operator, body }, { freezes }) =>
      json(toFreezeReply(await freezes.freeze(operator, null, body.reason))),
  }),
  route({
    method: 'DELETE',
    path: ofService,
    operation: 'releaseService',
    summary:
      'Ends the freeze of the service and returns it. The frozen pushes continue in their order.',
    auth: 'admin',
    role: 'operator',
    limit: noBody,
    reply: freeze,
    refusals: ['notFound'],
    handle: async ({ operator }, { freezes }) =>
      json(toFreezeReply(await freezes.release(operator, null))),
  }),
  route({
    method: 'PUT',
    path: ofApp,
    operation: 'freezeApp',
    summary:
      'Freezes an app. Its pushes are accepted but not sent until it is released. Pushes ' +
      'being sent stop within a second.',
    auth: 'admin',
    role: 'operator',
    limit: smallBody,
    body: reasonBody,
    reply: freeze,
    refusals: ['notFound'],
    handle: async ({ operator, params, body }, { freezes }) =>
      json(toFreezeReply(await freezes.freeze(operator, params.appId ?? '', body.reason))),
  }),
  route({
    method: 'DELETE',
    path: ofApp,
    operation: 'releaseApp',
    summary: 'Ends the freeze of an app and returns it. Its frozen pushes continue in their order.',
    auth: 'admin',
    role: 'operator',
    limit: noBody,
    reply: freeze,
    refusals: ['notFound'],
    handle: async ({ operator, params }, { freezes }) =>
      json(toFreezeReply(await freezes.release(operator, params.appId ?? ''))),
  }),
];
