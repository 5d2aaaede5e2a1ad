import type { Input } from '../../../client/client.ts';
import {
  argument,
  choice,
  flag,
  json,
  list,
  parsed,
  preset,
  required,
  type Source,
  text,
  time,
} from '../../arguments.ts';
import { group } from '../../command.ts';
import { say } from '../../language.ts';
import { UsageError } from '../../report.ts';
import { row } from '../../row.ts';

type ChangeBody = NonNullable<Input<'sendAppBroadcast'>['body']>;

const environment = () =>
  choice('--prod <dev or prod>', "which of Apple's gateways", ['dev', 'prod']);
const topic = () => text('--topic <bundle id>', 'bundle id, where the profile lists several');
const dryRun = () => flag('--dry-run', 'change and send nothing: show what would happen');

/** Option with a number. */
const number = (flags: string, about: Parameters<typeof text>[1]): Source<number> =>
  parsed(flags, about, (name, value) => {
    if (value.trim() === '' || !Number.isFinite(Number(value)))
      throw new UsageError(say('{name} must be a number', { name }));
    return Number(value);
  });

const priority = <const T extends 10 | 5 | 1>(...values: T[]): Source<T> => {
  const about = '10 at once, 5 may be delayed; 10 counts towards an hourly budget of the device';
  const { declared } = choice('--priority <number>', about, values.map(String));
  const read = async (given: string) => values.find((one) => String(one) === given) ?? values[0];
  return { declared, read: read as (given: string) => Promise<T> };
};

/** Texts that the device shows. Only the service checks them. */
type Alert = NonNullable<ChangeBody['alert']>;

const alert = (): Source<Alert> => {
  const { declared, read } = json('--alert <json or file>', 'texts to show: title, body and sound');
  return {
    declared,
    ...(read ? { read: read as unknown as (text: string) => Promise<Alert> } : {}),
  };
};

/** Options of all events. */
const shared = () => ({
  contentState: required(json('--state <json or file>', 'state of the activity')),
  staleDate: time('--stale <time>', 'time after which the state is outdated'),
  timestamp: time('--timestamp <time>', 'time of this state; without it, now'),
  relevanceScore: number('--score <number>', 'order among the activities of the app'),
  prod: environment(),
  topic: topic(),
  dryRun: dryRun(),
});

const change = () => ({
  ...shared(),
  dismissalDate: time('--dismiss <time>', 'with end: time at which the activity vanishes'),
  alert: alert(),
});

const activity = () => ({ activityId: argument('<activityId>', 'the activity') });

/** A channel id in a path has the alphabet of URLs, because base64 has slashes. */
const channel = () => {
  const source = argument('<channel>', 'id of the broadcast channel');
  const resolve = (_service: unknown, _appId: string, value: string) =>
    Promise.resolve(value.replaceAll('+', '-').replaceAll('/', '_'));
  return { channel: { ...source, resolve } };
};

/** Shows an accepted push, or the dry run as JSON. */
const show = (reply: { objectId: string } | { dryRun: boolean }): string =>
  'objectId' in reply
    ? say('Push {objectId} is accepted.', { objectId: reply.objectId })
    : JSON.stringify(reply, null, 2);

/** `carillon live-activity …`: starts, updates and ends Live Activities, and manages channels. */
export const liveActivityCommands = [
  group('live-activity', 'Live Activities and their broadcast channels'),
  row('live-activity start', 'start a Live Activity on the devices with a push-to-start token', {
    example: `live-activity start OrderAttributes --attributes '{"orderId":"1042"}' --state '{"stage":1}' --alert '{"title":"On its way"}' --dry-run`,
    operation: 'startAppLiveActivity',
    body: {
      attributesType: argument('<attributesType>', 'name of the Swift type of the attributes'),
      attributes: required(json('--attributes <json or file>', 'attributes of the activity')),
      ...shared(),
      alert: required(alert()),
      priority: priority(10, 5),
      where: json('--where <json or file>', 'conditions on installations; without it all count'),
      channels: list('--channels <names...>', 'only subscribers of these channels'),
      inputPushToken: flag('--push-token', 'the activity asks for an update token (iOS 18)'),
      inputPushChannel: text(
        '--push-channel <channel>',
        'the activity subscribes to this broadcast channel (iOS 18)',
      ),
    },
    always: { body: { event: 'start' } },
    show,
  }),
  row('live-activity update', 'update a Live Activity', {
    example: `live-activity update order-1042 --state '{"stage":2}'`,
    operation: 'changeAppLiveActivity',
    path: activity(),
    body: { ...change(), priority: priority(10, 5) },
    always: { body: { event: 'update' } },
    show,
  }),
  row('live-activity end', 'end a Live Activity', {
    example: `live-activity end order-1042 --state '{"stage":3}' --dismiss 2027-01-01T00:00:00Z`,
    operation: 'changeAppLiveActivity',
    path: activity(),
    body: { ...change(), priority: priority(10, 5) },
    always: { body: { event: 'end' } },
    show,
  }),
  row('live-activity broadcast', 'update or end the activities of a broadcast channel', {
    example: `live-activity broadcast dHN0LXNyY2gtY2hubA== --event update --state '{"stage":2}'`,
    operation: 'sendAppBroadcast',
    path: channel(),
    body: {
      event: required(choice('--event <event>', 'what to do', ['update', 'end'])),
      ...change(),
      priority: priority(10, 5, 1),
    } satisfies { [M in keyof ChangeBody]?: Source<ChangeBody[M]> },
    show,
  }),
  row('live-activity channels', 'list the broadcast channels of a bundle id', {
    operation: 'listAppBroadcastChannels',
    query: { prod: environment(), topic: topic() },
    columns: { channel: 'channel', storage: 'storage', created: 'createdAt' },
    none: 'There are no channels.',
  }),
  row('live-activity channel', 'show a broadcast channel', {
    example: 'live-activity channel dHN0LXNyY2gtY2hubA==',
    operation: 'getAppBroadcastChannel',
    path: channel(),
    query: { prod: environment(), topic: topic() },
  }),
  row('live-activity channel-create', 'create a broadcast channel at APNs', {
    example: 'live-activity channel-create --storage last',
    operation: 'createAppBroadcastChannel',
    body: {
      storage: required(
        choice('--storage <storage>', 'whether APNs keeps the newest message', ['none', 'last']),
      ),
      prod: environment(),
      topic: topic(),
      dryRun: dryRun(),
    },
    show: (reply) =>
      'channel' in reply && typeof reply.channel === 'string'
        ? say('Channel {channel} is created.', { channel: reply.channel })
        : JSON.stringify(reply, null, 2),
  }),
  row('live-activity channel-delete', 'delete a broadcast channel for good', {
    example: 'live-activity channel-delete dHN0LXNyY2gtY2hubA== --yes',
    operation: 'deleteAppBroadcastChannel',
    path: channel(),
    query: {
      prod: environment(),
      topic: topic(),
      dryRun: preset('--dry-run', 'change and send nothing: show what would happen', 'true'),
    },
    confirm: (given) => say('Delete {name}?', { name: given.channel }),
    show: (reply) => ('request' in reply ? JSON.stringify(reply, null, 2) : say('It is deleted.')),
  }),
];
