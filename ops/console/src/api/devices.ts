import { keepPreviousData, useQuery } from '@tanstack/react-query';
import type { DeviceDetail, DevicePush, KeysetPage, Results } from '../../../../api/replies/admin/types.ts';
import type { DeviceFilters } from '../search.ts';
import { appPath, call, queryOf } from './client.ts';

/** Installation of a list; its own members come beside these. */
export interface ListedDevice {
  objectId: string;
  deviceType: string;
  vendor?: string;
  valid?: boolean;
  channels?: string[];
  createdAt: string;
  updatedAt: string;
}

/** Path of a page of devices. */
export const devicesPath = (appId: string, filters: DeviceFilters): string =>
  appPath(appId, 'installations') + queryOf({ limit: 50, ...filters });

export function useDevices(appId: string, filters: DeviceFilters) {
  const path = devicesPath(appId, filters);
  return useQuery({
    queryKey: ['devices', path],
    queryFn: ({ signal }) => call<KeysetPage<ListedDevice>>(path, { signal }),
    placeholderData: keepPreviousData,
  });
}

export function useDevice(appId: string, deviceId: string) {
  return useQuery({
    queryKey: ['device', appId, deviceId],
    queryFn: ({ signal }) => call<DeviceDetail>(appPath(appId, 'installations', deviceId), { signal }),
  });
}

export function useDevicePushes(appId: string, deviceId: string) {
  return useQuery({
    queryKey: ['device-pushes', appId, deviceId],
    queryFn: ({ signal }) =>
      call<Results<DevicePush>>(appPath(appId, 'installations', deviceId, 'pushes'), { signal }),
  });
}
