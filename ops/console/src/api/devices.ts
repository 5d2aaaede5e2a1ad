import { keepPreviousData, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { asUnchecked, type CallInput, JsonText } from '../../../client/client.ts';
import type { DeviceFilters } from '../search.ts';
import { call } from './client.ts';

const suggestionsStaleMs = 60_000;

/** Page of the devices of an app, newest first. */
export const devicesPage = (
  appId: string,
  filters: DeviceFilters,
): CallInput<'listAppInstallations'> => ({
  path: { appId },
  query: { limit: 50, ...filters },
});

export function useDevices(appId: string, filters: DeviceFilters) {
  return useQuery({
    queryKey: ['devices', appId, filters],
    queryFn: ({ signal }) =>
      call('listAppInstallations', { ...devicesPage(appId, filters), signal }),
    placeholderData: keepPreviousData,
  });
}

export function useDevice(appId: string, id: string) {
  return useQuery({
    queryKey: ['device', appId, id],
    queryFn: ({ signal }) => call('getAppInstallation', { path: { appId, id }, signal }),
  });
}

export function useDevicePushes(appId: string, id: string) {
  return useQuery({
    queryKey: ['device-pushes', appId, id],
    queryFn: ({ signal }) => call('listInstallationPushes', { path: { appId, id }, signal }),
  });
}

/** Members of the newest installations of an app, with their most frequent values. */
export function useFields(appId: string) {
  return useQuery({
    queryKey: ['fields', appId],
    queryFn: ({ signal }) => call('suggestFields', { path: { appId }, signal }),
    staleTime: suggestionsStaleMs,
    retry: false,
  });
}

/** Channels of the newest installations of an app, the most frequent first. */
export function useChannels(appId: string) {
  return useQuery({
    queryKey: ['channels', appId],
    queryFn: ({ signal }) => call('suggestChannels', { path: { appId }, signal }),
    staleTime: suggestionsStaleMs,
    retry: false,
  });
}

/** Counts the devices that meet a condition, up to as many as one deletion may have. */
export function useDeviceCount(appId: string, where: string | undefined, isEnabled: boolean) {
  return useQuery({
    queryKey: ['device-count', appId, where],
    queryFn: ({ signal }) =>
      call('listAppInstallations', {
        path: { appId },
        query: { limit: 1, count: 'all', where },
        signal,
      }),
    enabled: isEnabled,
  });
}

/** Forgets what is known of devices, after a change. */
function useForgetDevices() {
  const client = useQueryClient();
  const keys = ['devices', 'device', 'device-pushes', 'device-count'];
  return () =>
    void client.invalidateQueries({
      predicate: ({ queryKey }) => keys.includes(String(queryKey[0])),
    });
}

/** Deletes the devices that meet a condition, if there are as many as expected. */
export function useDeviceDeletion(appId: string) {
  const onSettled = useForgetDevices();
  return useMutation({
    // The condition as text: a number in it keeps its digits in every browser.
    mutationFn: ({ where, expected }: { where: string; expected: number }) =>
      call('deleteMatchingInstallations', {
        path: { appId },
        body: new JsonText(`{"where":${where},"expected":${expected}}`),
      }),
    onSettled,
  });
}

/** Changes members of a device, or deletes it. */
export function useDeviceChange(appId: string, id: string) {
  const onSuccess = useForgetDevices();
  const path = { appId, id };
  const update = useMutation({
    mutationFn: (members: object) =>
      call('updateAppInstallation', { path, body: asUnchecked(members) }),
    onSuccess,
  });
  const remove = useMutation({
    mutationFn: () => call('deleteAppInstallation', { path }),
    onSuccess,
  });
  return { update, remove };
}

/** Sends a message to one device, whatever its condition. Returns the push. */
export function useTestPush(appId: string) {
  return useMutation({
    mutationFn: ({ deviceId, text }: { deviceId: string; text: string }) =>
      call('sendAppPush', {
        path: { appId },
        body: { where: { objectId: deviceId }, data: { alert: text } },
      }),
  });
}
