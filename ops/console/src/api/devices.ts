import { keepPreviousData, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { asUnchecked, type CallInput, JsonText } from '../../../client/client.ts';
import type { DeviceFilters } from '../search.ts';
import { call } from './client.ts';

const suggestionsStaleMs = 60_000;

/** Call that lists a page of an app's devices, newest first. */
export const devicesPage = (
  appId: string,
  filters: DeviceFilters & { limit?: number },
): CallInput<'listAppInstallations'> => ({
  path: { appId },
  query: { limit: 50, ...filters },
});

export function useDevices(
  appId: string,
  filters: DeviceFilters & { limit?: number },
  isNeeded = true,
) {
  return useQuery({
    enabled: isNeeded,
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

/** Fields of the newest installations of an app, with their most frequent values. */
export function useFields(appId: string) {
  return useQuery({
    queryKey: ['fields', appId],
    queryFn: ({ signal }) => call('suggestFields', { path: { appId }, signal }),
    staleTime: suggestionsStaleMs,
    retry: false,
  });
}

/** Channels of the newest installations of an app, most frequent first. */
export function useChannels(appId: string) {
  return useQuery({
    queryKey: ['channels', appId],
    queryFn: ({ signal }) => call('suggestChannels', { path: { appId }, signal }),
    staleTime: suggestionsStaleMs,
    retry: false,
  });
}

/**
 * Counts the devices that match a condition. Stops at the maximum number that one deletion may
 * affect.
 */
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

/** Returns a function that invalidates all cached device data. */
function useForgetDevices() {
  const client = useQueryClient();
  const keys = ['devices', 'device', 'device-pushes', 'device-count'];
  return () =>
    void client.invalidateQueries({
      predicate: ({ queryKey }) => keys.includes(String(queryKey[0])),
    });
}

/** Deletes the devices that match a condition if their number is as expected. */
export function useDeviceDeletion(appId: string) {
  const onSettled = useForgetDevices();
  return useMutation({
    // Sends the condition as text, because JSON.parse could change the digits of a number.
    mutationFn: ({ where, expected }: { where: string; expected: number }) =>
      call('deleteMatchingInstallations', {
        path: { appId },
        body: new JsonText(`{"where":${where},"expected":${expected}}`),
      }),
    onSettled,
  });
}

/** Changes members of a device or deletes the device. */
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

/** Sends a message to one device. Returns the push. */
export function useTestPush(appId: string) {
  return useMutation({
    mutationFn: ({ deviceId, text }: { deviceId: string; text: string }) =>
      call('sendAppPush', {
        path: { appId },
        body: { where: { objectId: deviceId }, data: { alert: text } },
      }),
  });
}
