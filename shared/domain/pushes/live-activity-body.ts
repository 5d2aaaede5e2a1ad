import { z } from 'zod';
import { time } from '../client-values.ts';
import { refuse } from '../errors/errors.ts';
import { type JsonObject, unstorableText } from '../json.ts';
import { jsonObject, jsonValue } from '../json-schema.ts';
import { type Detail, detail } from '../texts/texts.ts';
import { queryBody } from './body.ts';
import {
  type ActivityTarget,
  activityExpiryMs,
  activityIdForm,
  channelStorages,
  epochSeconds,
  isActivityId,
  type LiveActivity,
} from './live-activity.ts';
import { checkTexts, flowControlOf, type PushRequest, timing, whereOf } from './push.ts';
import { pushClassOf } from './push-class.ts';

/**
 * Bodies of the calls for Live Activities (protocol/live-activities.md). Their members have camel
 * case, and times are RFC 3339.
 */

const dryRun = z
  .boolean('expected true or false')
  .nullish()
  .describe('If true, nothing is sent or changed. The reply says what would happen.');

const { prod, topic, pgw_team_id, apns_team_id } = queryBody.shape;

/** Time that APNs takes as a positive number of epoch seconds. */
const activityTime = time.refine(
  (given) => given.getTime() >= 0 && given.getUTCFullYear() < 5000,
  'expected a time between the years 1970 and 5000',
);

const text = z.string().min(1, 'must not be empty');

/** A text, or a key of the texts of the app with its arguments. */
const localizable = z.union(
  [
    text,
    z.strictObject({
      'loc-key': text.describe('Key of a text of the app.'),
      'loc-args': z.array(z.string()).optional().describe('Values in the text.'),
    }),
  ],
  'expected a text, or an object with loc-key and loc-args',
);

const sound = z
  .string('expected the name of a sound')
  .min(1)
  .optional()
  .describe('Name of a sound of the app.');

const title = localizable.describe('Title of the alert.');
const body = localizable.describe('Text of the alert.');

const alert = z
  .union([
    z.strictObject({ title, body: body.optional(), sound }),
    z.strictObject({ title: title.optional(), body, sound }),
  ])
  .describe(
    'Texts that the device shows: `title`, `body` and `sound`. A text may be ' +
      '`{"loc-key", "loc-args"}`.',
  );

/** Adds an error for each member with a text that cannot be stored, such as a text with U+0000. */
export const checkStorable = ({ value, issues }: z.core.ParsePayload<object>) => {
  for (const [member, given] of Object.entries(value)) {
    const fault = given instanceof Date ? undefined : unstorableText(given, member);
    if (fault) issues.push(issueAt(member, fault, value));
  }
};

const issueAt = (member: string, message: string, input: unknown) => ({
  code: 'custom' as const,
  path: [member],
  message,
  input,
});

/** Name of a Swift struct. */
const attributesType = z
  .string()
  .regex(
    /^[A-Za-z_\u00aa-\uffff][A-Za-z0-9_.\u00aa-\uffff]{0,127}$/,
    'expected the name of a Swift type',
  )
  .describe('Name of the Swift struct with the attributes, without its module.');

/** Members of all events. */
const shared = {
  prod,
  topic,
  pgw_team_id,
  apns_team_id,
  timestamp: activityTime
    .nullish()
    .describe(
      'Time of this state. Devices ignore older states. The default is the time of the call.',
    ),
  relevanceScore: z
    .number()
    .refine(Number.isFinite, 'expected a finite number')
    .nullish()
    .describe('Order among the activities of the app: any number.'),
  expirationTime: queryBody.shape.expiration_time,
  expirationInterval: queryBody.shape.expiration_interval,
  notification_id: queryBody.shape.notification_id,
  req_id: queryBody.shape.req_id,
  dryRun,
};

const contentState = jsonObject.describe('State of the activity, as its Swift type decodes it.');
const staleDate = activityTime.nullish().describe('Time after which the state is outdated.');

const directPriority = z
  .union([z.literal(10), z.literal(5)], 'expected 10 or 5')
  .nullish()
  .describe(
    '10 sends at once and counts towards an hourly budget of the device. 5 may be delayed. The ' +
      'default is 10; it is 5 for an update without an alert.',
  );

const broadcastPriority = z
  .union([z.literal(10), z.literal(5), z.literal(1)], 'expected 10, 5 or 1')
  .nullish()
  .describe(
    '10 sends at once, 5 may be delayed, 1 never wakes a device. The default is 10; it is 5 for ' +
      'an update without an alert.',
  );

/** Body of `POST /1.1/liveActivities`. */
export const startBody = z
  .strictObject({
    event: z.literal('start', 'expected "start"').describe('Starts an activity.'),
    attributesType,
    attributes: jsonObject.describe('Attributes of the activity, which never change.'),
    contentState,
    alert,
    staleDate,
    inputPushToken: z
      .union([z.boolean(), z.literal(1)], 'expected true or false')
      .nullish()
      .describe('If true, the started activity requests an update token (iOS 18).'),
    inputPushChannel: z
      .string('expected the id of a channel')
      .regex(/^[!-~]{1,512}$/, 'expected the id of a channel')
      .nullish()
      .describe(
        'Broadcast channel that the started activity subscribes to. Before iOS 18 the activity ' +
          'does not start.',
      ),
    priority: directPriority,
    ...shared,
    where: jsonValue
      .meta({ type: ['object', 'array', 'string'] })
      .optional()
      .describe('Condition on installations. Absent: all installations.'),
    ...queryBody.pick({
      cql: true,
      channels: true,
      flow_control: true,
      kind: true,
      device_cap: true,
      quiet_hours: true,
      lastActiveDeviceOnly: true,
    }).shape,
  })
  .check(checkStorable)
  .refine(({ inputPushToken, inputPushChannel }) => !(inputPushToken && inputPushChannel), {
    path: ['inputPushChannel'],
    message: 'inputPushToken and inputPushChannel exclude each other',
  });

const changeMembers = {
  event: z
    .enum(['update', 'end'], 'expected "update" or "end"')
    .describe('Changes the state of the activity, or ends it.'),
  contentState: contentState.nullish(),
  staleDate,
  dismissalDate: activityTime
    .nullish()
    .describe('With `end`: time at which the activity vanishes. A past time removes it at once.'),
  alert: alert
    .nullish()
    .describe('Texts that the device shows with the new state: `title`, `body` and `sound`.'),
  ...shared,
};

interface Change {
  event: 'update' | 'end';
  contentState?: JsonObject | null | undefined;
  dismissalDate?: Date | null | undefined;
}

/** Rules of members that depend on the event. */
const checkChange = ({ value, issues }: z.core.ParsePayload<Change>) => {
  const { event, contentState: state, dismissalDate } = value;
  if (event === 'update' && !state)
    issues.push(issueAt('contentState', 'contentState is required with the event update', value));
  if (event === 'update' && dismissalDate)
    issues.push(issueAt('dismissalDate', 'dismissalDate goes with the event end only', value));
};

/** Body of `POST /1.1/liveActivities/:activityId`. */
export const changeBody = z
  .strictObject({ ...changeMembers, priority: directPriority })
  .check(checkStorable, checkChange);

/** Body of `POST /1.1/liveActivities/channels/:channel`. */
export const broadcastBody = z
  .strictObject({ ...changeMembers, priority: broadcastPriority })
  .check(checkStorable, checkChange);

/** Body of `POST /1.1/liveActivities/tokens`. */
export const tokenBody = z
  .strictObject({
    installationId: z
      .string()
      .min(1)
      .max(256)
      .nullish()
      .describe('Id that the client made. Either this member or `objectId` is required.'),
    objectId: z
      .string()
      .regex(/^[A-Za-z0-9_-]{1,64}$/, 'expected the id of an installation')
      .nullish()
      .describe('objectId of the installation, instead of its installationId.'),
    token: z
      .string()
      .regex(/^[0-9a-fA-F]{1,512}$/, 'expected 1 to 512 hexadecimal digits')
      .describe('Token in hexadecimal.'),
    activityId: z
      .string()
      .regex(/^[A-Za-z0-9_~:@-][A-Za-z0-9._~:@-]{0,127}$/, activityIdForm)
      .refine(isActivityId, activityIdForm)
      .nullish()
      .describe('Activity of an update token. The app chooses the id.'),
    attributesType: attributesType.nullish().describe('Type of a push-to-start token.'),
    dryRun,
  })
  .check(checkStorable)
  .refine(({ installationId, objectId }) => Boolean(installationId) !== Boolean(objectId), {
    path: ['installationId'],
    message: 'give either installationId or objectId',
  })
  .refine(({ activityId, attributesType: type }) => Boolean(activityId) !== Boolean(type), {
    path: ['activityId'],
    message: 'give either activityId or attributesType',
  });

/** Body of `POST /1.1/liveActivities/channels`. */
export const channelBody = z
  .strictObject({
    storage: z
      .enum(channelStorages, 'expected "none" or "last"')
      .describe('Whether APNs stores the newest message for devices that are offline.'),
    prod,
    topic: topic.describe('Bundle id. Needed if the profile lists several topics.'),
    pgw_team_id,
    apns_team_id,
    dryRun,
  })
  .check(checkStorable);

export type StartBody = z.output<typeof startBody>;
export type ChangeBody = z.output<typeof changeBody> | z.output<typeof broadcastBody>;
export type TokenBody = z.output<typeof tokenBody>;
export type ChannelBody = z.output<typeof channelBody>;

/** Request of a Live Activity push, before its timestamp is set. */
export interface ActivityRequest {
  request: PushRequest;
  /** Timestamp of the caller, in epoch seconds. Null: the time of the call. */
  timestamp: number | null;
}

/** Values of a call that are not in its body. */
interface CallContext {
  prodHeader: 'dev' | 'prod' | undefined;
  nowMs: number;
}

/** Builds the push that starts activities. Throws as `parsePush`. */
export function startRequest(body: StartBody, context: CallContext): ActivityRequest {
  const where = whereOf({ where: body.where ?? null });
  checkTexts(where, 'where');
  const { request, timestamp } = requestOf(body, {
    event: 'start',
    target: { kind: 'type', name: body.attributesType },
    aps: {
      'attributes-type': body.attributesType,
      attributes: body.attributes,
      ...(body.inputPushToken ? { 'input-push-token': 1 } : {}),
      ...(body.inputPushChannel ? { 'input-push-channel': body.inputPushChannel } : {}),
    },
    ...context,
  });
  const pushOrder = {
    ...request.pushOrder,
    ...pushClassOf(body),
    ...(body.lastActiveDeviceOnly ? { lastActiveDeviceOnly: true as const } : {}),
    target: { kind: 'query' as const, where, channels: body.channels ?? null },
    flowControl: flowControlOf(body.flow_control),
  };
  return { request: { ...request, pushOrder }, timestamp };
}

/** Builds the push that updates or ends an activity, or all activities of a channel. */
export function changeRequest(
  body: ChangeBody,
  target: ActivityTarget,
  context: CallContext,
): ActivityRequest {
  const { event, dismissalDate } = body;
  const aps: JsonObject = dismissalDate ? { 'dismissal-date': epochSeconds(dismissalDate) } : {};
  const { request, timestamp } = requestOf(body, { event, target, aps, ...context });
  // People follow the activity, so limits against too many pushes do not apply to its states.
  const pushOrder = { ...request.pushOrder, kind: 'transactional' as const };
  return { request: { ...request, pushOrder }, timestamp };
}

/** Members that the bodies of all events have. */
type AnyBody = Pick<
  ChangeBody,
  Exclude<keyof ChangeBody & keyof StartBody, 'event' | 'priority' | 'alert' | 'contentState'>
> & {
  contentState?: JsonObject | null | undefined;
  alert?: Alert | null | undefined;
  priority?: 10 | 5 | 1 | null | undefined;
};

function requestOf(
  body: AnyBody,
  { event, target, aps, prodHeader, nowMs }: LiveActivity & { aps: JsonObject } & CallContext,
): ActivityRequest {
  const isEnd = event === 'end';
  // APNs has no stale date and no score for the end of an activity.
  const ignored = (['staleDate'] as const).filter(
    (name) => isEnd && body[name] !== undefined && body[name] !== null,
  );
  const timestamp = body.timestamp ? epochSeconds(body.timestamp) : null;
  const content: JsonObject = {
    event,
    timestamp: timestamp ?? Math.floor(nowMs / 1000),
    ...(body.contentState ? { 'content-state': body.contentState } : {}),
    ...aps,
    ...(body.staleDate && !isEnd ? { 'stale-date': epochSeconds(body.staleDate) } : {}),
    ...(typeof body.relevanceScore === 'number' ? { 'relevance-score': body.relevanceScore } : {}),
    ...(body.alert ? { alert: alertOf(body.alert) } : {}),
  };
  const expiring = {
    notification_id: body.notification_id,
    req_id: body.req_id,
    expiration_time: body.expirationTime,
    expiration_interval: body.expirationInterval,
  };
  const times = timing(expiring, null, nowMs);
  const hasExpiry = times.expirationTime !== null || times.expirationSeconds !== null;
  return {
    timestamp,
    request: {
      pushOrder: {
        data: {
          'apns-push-type': 'liveactivity',
          'apns-priority': body.priority ?? (event === 'update' && !body.alert ? 5 : 10),
          aps: content,
        },
        target: { kind: 'query', where: {}, channels: null },
        prod: body.prod ?? prodHeader ?? 'prod',
        topic: body.topic ?? null,
        teamId: body.pgw_team_id ?? body.apns_team_id ?? null,
        flowControl: null,
        notificationChannel: null,
        liveActivity: { event, target },
      },
      timing: hasExpiry ? times : { ...times, expirationSeconds: activityExpiryMs / 1000 },
      warnings: ignored.map((member): Detail => detail('activityMemberIgnored', { member, event })),
    },
  };
}

type Alert = z.output<typeof alert>;

const alertOf = ({ title, body, sound }: Alert): JsonObject => ({
  ...(title === undefined ? {} : { title }),
  ...(body === undefined ? {} : { body }),
  ...(sound === undefined ? {} : { sound }),
});

/** Throws error 1 if the path of a call names no activity. */
export function requireActivityId(text: string): string {
  if (!isActivityId(text)) throw refuse('invalidParameter', detail('activityIdForm'));
  return text;
}
