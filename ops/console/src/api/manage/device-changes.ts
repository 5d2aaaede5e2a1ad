import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import type { KeysetPage } from '../../../../../api/replies/admin/types.ts';
import { appPath, call, queryOf } from '../client.ts';
import type { ListedDevice } from '../devices.ts';

/** Forgets what is known of devices, after a change. */
function useForgetDevices() {
  const client = useQueryClient();
  const keys = ['devices', 'device', 'device-pushes', 'device-count'];
  return () =>
    void client.invalidateQueries({ predicate: ({ queryKey }) => keys.includes(String(queryKey[0])) });
}

/** Counts the devices that meet a condition, up to as many as one deletion may have. */
export function useDeviceCount(appId: string, where: string | undefined, isEnabled: boolean) {
  return useQuery({
    queryKey: ['device-count', appId, where],
    queryFn: ({ signal }) =>
      call<KeysetPage<ListedDevice>>(
        appPath(appId, 'installations') + queryOf({ limit: 1, count: 'all', where }),
        { signal },
      ),
    enabled: isEnabled,
  });
}

/** Deletes the devices that meet a condition, if there are as many as expected. */
export function useDeviceDeletion(appId: string) {
  const onSettled = useForgetDevices();
  return useMutation({
    // The condition as text: a number in it keeps its digits in every browser.
    mutationFn: ({ where, expected }: { where: string; expected: number }) =>
      call<{ deleted: number }>(appPath(appId, 'installations', 'delete'), {
        method: 'POST',
        text: `{"where":${where},"expected":${expected}}`,
      }),
    onSettled,
  });
}

/** Changes members of a device, or deletes it. */
export function useDeviceChange(appId: string, deviceId: string) {
  const onSuccess = useForgetDevices();
  const path = appPath(appId, 'installations', deviceId);
  const update = useMutation({
    mutationFn: (body: object) => call(path, { method: 'PUT', body }),
    onSuccess,
  });
  const remove = useMutation({ mutationFn: () => call(path, { method: 'DELETE' }), onSuccess });
  return { update, remove };
}

/** Sends a message to one device, whatever its condition. Returns the push. */
export function useTestPush(appId: string) {
  return useMutation({
    mutationFn: ({ deviceId, text }: { deviceId: string; text: string }) =>
      call<{ objectId: string }>(appPath(appId, 'push'), {
        method: 'POST',
        body: { where: { objectId: deviceId }, data: { alert: text } },
      }),
  });
}
