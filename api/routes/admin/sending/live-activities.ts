import {
  broadcastBody,
  changeBody,
  channelBody,
  startBody,
} from '../../../../shared/domain/pushes/live-activity-body.ts';
import type { Language } from '../../../../shared/domain/texts/catalogue.ts';
import { empty, resultsOf } from '../../../replies/common.ts';
import {
  broadcastChannel,
  channelDryRun,
  createdChannel,
  listedChannel,
  sentActivity,
  sentDocument,
} from '../../../replies/live-activities.ts';
import { ofChannels, ofPush } from '../../../replies/refusals.ts';
import {
  activityLimit,
  channelDeletionBody,
  channelDeletionQuery,
  channelQuery,
  channelScope,
} from '../../../requests/live-activities.ts';
import { json, noBody, type Reply, route, smallBody } from '../../../route.ts';
import type { ActivityResult } from '../../../services/push/live-activities.ts';

/** Calls of operators for Live Activities. Bodies and replies are those of apps. */
const base = '/console/api/apps/:appId/liveActivities';

const result = (language: Language, given: ActivityResult): Reply =>
  json(sentDocument(language, given));

export default [
  route({
    method: 'POST',
    path: base,
    operation: 'startAppLiveActivity',
    summary: 'Starts a Live Activity, as `POST /1.1/liveActivities` does.',
    auth: 'admin',
    role: 'sender',
    limit: activityLimit,
    isBodyRequired: true,
    body: startBody,
    reply: sentActivity,
    refusals: ['notFound', ...ofPush],
    handle: async (call, { activitySending }) =>
      result(
        call.language,
        await activitySending.start(call.operator, call.params.appId ?? '', call),
      ),
  }),
  route({
    method: 'POST',
    path: `${base}/channels`,
    operation: 'createAppBroadcastChannel',
    summary: 'Creates a broadcast channel at APNs. Each call creates another channel.',
    auth: 'admin',
    role: 'operator',
    limit: smallBody,
    isBodyRequired: true,
    body: channelBody,
    status: 201,
    reply: { 200: channelDryRun, 201: createdChannel },
    refusals: ['notFound', ...ofChannels],
    handle: async ({ params, body, prodHeader }, { activitySending }) => {
      const scope = channelScope(prodHeader, body);
      const created = await activitySending.createChannel(params.appId ?? '', body, scope);
      return 'dryRun' in created
        ? json(created.dryRun, { status: 200 })
        : json(created, { status: 201 });
    },
  }),
  route({
    method: 'GET',
    path: `${base}/channels`,
    operation: 'listAppBroadcastChannels',
    summary: 'Lists the broadcast channels of a bundle id.',
    auth: 'admin',
    role: 'viewer',
    limit: noBody,
    query: channelQuery,
    reply: resultsOf(listedChannel),
    refusals: ['notFound', ...ofChannels],
    handle: async ({ params, query, prodHeader }, { activitySending }) =>
      json({
        results: await activitySending.listChannels(
          params.appId ?? '',
          channelScope(prodHeader, query),
        ),
      }),
  }),
  route({
    method: 'GET',
    path: `${base}/channels/:channel`,
    operation: 'getAppBroadcastChannel',
    summary: 'Returns a broadcast channel. In the path, its id has `-` for `+` and `_` for `/`.',
    auth: 'admin',
    role: 'viewer',
    limit: noBody,
    takesBase64Name: true,
    query: channelQuery,
    reply: broadcastChannel,
    refusals: ['notFound', ...ofChannels],
    handle: async ({ params, query, prodHeader }, { activitySending }) =>
      json(
        await activitySending.getChannel(
          params.appId ?? '',
          params.channel ?? '',
          channelScope(prodHeader, query),
        ),
      ),
  }),
  route({
    method: 'DELETE',
    path: `${base}/channels/:channel`,
    operation: 'deleteAppBroadcastChannel',
    summary: 'Deletes a broadcast channel for good. Its activities cannot be reached any more.',
    auth: 'admin',
    role: 'operator',
    limit: smallBody,
    takesBase64Name: true,
    query: channelDeletionQuery,
    body: channelDeletionBody,
    acceptsNullBody: true,
    reply: empty.or(channelDryRun),
    refusals: ['notFound', ...ofChannels],
    handle: async ({ params, query, body, prodHeader }, { activitySending }) =>
      json(
        await activitySending.deleteChannel(params.appId ?? '', params.channel ?? '', {
          ...channelScope(prodHeader, body ?? {}, query),
          isDryRun: query.dryRun === true || body?.dryRun === true,
        }),
      ),
  }),
  route({
    method: 'POST',
    path: `${base}/channels/:channel`,
    operation: 'sendAppBroadcast',
    summary: 'Updates or ends the activities that subscribe to a broadcast channel.',
    auth: 'admin',
    role: 'sender',
    limit: activityLimit,
    takesBase64Name: true,
    isBodyRequired: true,
    body: broadcastBody,
    reply: sentActivity,
    refusals: ['notFound', ...ofPush, ...ofChannels],
    handle: async (call, { activitySending }) =>
      result(
        call.language,
        await activitySending.broadcast(call.operator, call.params.appId ?? '', {
          ...call,
          channel: call.params.channel ?? '',
        }),
      ),
  }),
  route({
    method: 'POST',
    path: `${base}/:activityId`,
    operation: 'changeAppLiveActivity',
    summary: 'Updates or ends a Live Activity, as `POST /1.1/liveActivities/:activityId` does.',
    auth: 'admin',
    role: 'sender',
    limit: activityLimit,
    isBodyRequired: true,
    body: changeBody,
    reply: sentActivity,
    refusals: ['notFound', ...ofPush],
    handle: async (call, { activitySending }) =>
      result(
        call.language,
        await activitySending.change(call.operator, call.params.appId ?? '', {
          ...call,
          activityId: call.params.activityId ?? '',
        }),
      ),
  }),
];
