import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { type CallInput, JsonText } from '../../../client/client.ts';
import type { AcceptedPush, LiveActivityForecast } from '../../../client/operations.ts';
import { type JsonRecord, printJson } from '../draft/json-text.ts';
import { call } from './client.ts';

/** What a Live Activity push does, and the name that it is sent to. */
export interface ActivityRequest {
  action: 'start' | 'update' | 'end' | 'broadcast';
  /** Id of the activity or channel. Unused for a start. */
  name: string;
  body: JsonRecord;
}

/** A channel id in a path: base64 in the alphabet of URLs. */
const inPath = (channel: string): string => channel.replaceAll('+', '-').replaceAll('/', '_');

function request(
  appId: string,
  { action, name, body: members }: ActivityRequest,
): Promise<AcceptedPush | LiveActivityForecast> {
  const body = new JsonText(printJson(members));
  if (action === 'start') return call('startAppLiveActivity', { path: { appId }, body });
  return action === 'broadcast'
    ? call('sendAppBroadcast', { path: { appId, channel: inPath(name) }, body })
    : call('changeAppLiveActivity', { path: { appId, activityId: name }, body });
}

/** Dry run of a Live Activity push, with the request that it belongs to. */
export interface ActivityDryRun {
  request: ActivityRequest;
  forecast: LiveActivityForecast;
}

const isForecast = (reply: AcceptedPush | LiveActivityForecast): reply is LiveActivityForecast =>
  'dryRun' in reply;

/** Functions that explain and send a Live Activity push. */
export function useActivityActions(appId: string) {
  const explain = useMutation({
    mutationFn: async (given: ActivityRequest): Promise<ActivityDryRun> => {
      const reply = await request(appId, { ...given, body: { ...given.body, dryRun: true } });
      if (!isForecast(reply)) throw new Error('the reply is no dry run');
      return { request: given, forecast: reply };
    },
  });
  const send = useMutation({
    mutationFn: async (given: ActivityRequest): Promise<AcceptedPush> => {
      const reply = await request(appId, given);
      if (isForecast(reply)) throw new Error('the reply is a dry run');
      return reply;
    },
  });
  return { explain, send };
}

/** Environment of APNs. */
export type Environment = 'prod' | 'dev';

export const channelPage = (
  appId: string,
  prod: Environment,
): CallInput<'listAppBroadcastChannels'> => ({ path: { appId }, query: { prod } });

export function useChannels(appId: string, prod: Environment) {
  return useQuery({
    queryKey: ['broadcast-channels', appId, prod],
    queryFn: ({ signal }) =>
      call('listAppBroadcastChannels', { ...channelPage(appId, prod), signal }),
    retry: false,
    refetchOnWindowFocus: false,
  });
}

/** Functions that create and delete channels. Each reloads the list. */
export function useChannelActions(appId: string, prod: Environment) {
  const client = useQueryClient();
  const onSettled = () =>
    client.invalidateQueries({ queryKey: ['broadcast-channels', appId, prod] });
  const create = useMutation({
    mutationFn: (storage: 'none' | 'last') =>
      call('createAppBroadcastChannel', { path: { appId }, body: { storage, prod } }),
    onSettled,
  });
  const remove = useMutation({
    mutationFn: (channel: string) =>
      call('deleteAppBroadcastChannel', {
        path: { appId, channel: inPath(channel) },
        query: { prod },
      }),
    onSettled,
  });
  return { create, remove };
}
