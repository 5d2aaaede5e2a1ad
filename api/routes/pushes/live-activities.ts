import {
  broadcastBody,
  changeBody,
  channelBody,
  startBody,
  tokenBody,
} from '../../../shared/domain/pushes/live-activity-body.ts';
import { empty, resultsOf } from '../../replies/common.ts';
import {
  broadcastChannel,
  channelDryRun,
  createdChannel,
  listedChannel,
  reportedToken,
  sentActivity,
  sentDocument,
} from '../../replies/live-activities.ts';
import { ofChannels, ofPush } from '../../replies/refusals.ts';
import {
  activityLimit,
  channelDeletionBody,
  channelDeletionQuery,
  channelQuery,
  channelScope,
} from '../../requests/live-activities.ts';
import { json, noBody, type Reply, route, smallBody } from '../../route.ts';
import type { ActivityResult } from '../../services/push/live-activities.ts';

/** Calls of apps for Live Activities (protocol/live-activities.md). */
const base = '/1.1/liveActivities';

const result = (given: ActivityResult): Reply => json(sentDocument('en', given));

export default [
  route({
    method: 'POST',
    path: `${base}/tokens`,
    operation: 'reportLiveActivityToken',
    summary:
      'Stores a token that a device reports: the update token of an activity (`activityId`), or ' +
      'the push-to-start token of a type (`attributesType`).',
    auth: 'app',
    limit: smallBody,
    isBodyRequired: true,
    body: tokenBody,
    reply: reportedToken,
    refusals: ['objectNotFound', 'invalidParameter', 'thresholdExceeded'],
    handle: async ({ app, body }, { liveActivities }) =>
      json(await liveActivities.reportToken(app, body)),
  }),
  route({
    method: 'POST',
    path: base,
    operation: 'startLiveActivity',
    summary: 'Starts a Live Activity on all matching devices that have a push-to-start token.',
    auth: 'push',
    limit: activityLimit,
    isBodyRequired: true,
    body: startBody,
    reply: sentActivity,
    refusals: [...ofPush],
    handle: async (call, { liveActivities }) => result(await liveActivities.start(call, call.body)),
  }),
  route({
    method: 'POST',
    path: `${base}/channels`,
    operation: 'createBroadcastChannel',
    summary: 'Creates a broadcast channel at APNs. Each call creates another channel.',
    auth: 'master',
    limit: smallBody,
    isBodyRequired: true,
    body: channelBody,
    status: 201,
    reply: { 200: channelDryRun, 201: createdChannel },
    refusals: [...ofChannels],
    handle: async ({ app, body, prodHeader }, { broadcastChannels }) => {
      const created = await broadcastChannels.create(app, body, channelScope(prodHeader, body));
      return 'dryRun' in created
        ? json(created.dryRun, { status: 200 })
        : json(created, { status: 201 });
    },
  }),
  route({
    method: 'GET',
    path: `${base}/channels`,
    operation: 'listBroadcastChannels',
    summary: 'Lists the broadcast channels of a bundle id.',
    auth: 'master',
    limit: noBody,
    query: channelQuery,
    reply: resultsOf(listedChannel),
    refusals: [...ofChannels],
    handle: async ({ app, query, prodHeader }, { broadcastChannels }) =>
      json({ results: await broadcastChannels.list(app, channelScope(prodHeader, query)) }),
  }),
  route({
    method: 'GET',
    path: `${base}/channels/:channel`,
    takesBase64Name: true,
    operation: 'getBroadcastChannel',
    summary: 'Returns a broadcast channel.',
    auth: 'master',
    limit: noBody,
    query: channelQuery,
    reply: broadcastChannel,
    refusals: [...ofChannels],
    handle: async ({ app, params, query, prodHeader }, { broadcastChannels }) =>
      json(await broadcastChannels.get(app, params.channel ?? '', channelScope(prodHeader, query))),
  }),
  route({
    method: 'DELETE',
    path: `${base}/channels/:channel`,
    takesBase64Name: true,
    operation: 'deleteBroadcastChannel',
    summary: 'Deletes a broadcast channel for good. Its activities cannot be reached any more.',
    auth: 'master',
    limit: smallBody,
    query: channelDeletionQuery,
    body: channelDeletionBody,
    acceptsNullBody: true,
    reply: empty.or(channelDryRun),
    refusals: [...ofChannels],
    handle: async ({ app, params, query, body, prodHeader }, { broadcastChannels }) =>
      json(
        await broadcastChannels.delete(app, params.channel ?? '', {
          ...channelScope(prodHeader, body ?? {}, query),
          isDryRun: query.dryRun === true || body?.dryRun === true,
        }),
      ),
  }),
  route({
    method: 'POST',
    path: `${base}/channels/:channel`,
    takesBase64Name: true,
    operation: 'sendBroadcast',
    summary: 'Updates or ends the activities that subscribe to a broadcast channel.',
    auth: 'push',
    limit: activityLimit,
    isBodyRequired: true,
    body: broadcastBody,
    reply: sentActivity,
    refusals: [...ofPush, ...ofChannels],
    handle: async (call, { broadcastChannels }) =>
      result(await broadcastChannels.send(call, call.params.channel ?? '', call.body)),
  }),
  // After the paths with fixed names, which an activity id must not be.
  route({
    method: 'POST',
    path: `${base}/:activityId`,
    operation: 'changeLiveActivity',
    summary: 'Updates or ends a Live Activity on the devices that reported its update token.',
    auth: 'push',
    limit: activityLimit,
    isBodyRequired: true,
    body: changeBody,
    reply: sentActivity,
    refusals: [...ofPush],
    handle: async (call, { liveActivities }) =>
      result(await liveActivities.change(call, call.params.activityId ?? '', call.body)),
  }),
];
