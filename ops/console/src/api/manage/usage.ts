import { keepPreviousData, useQuery } from '@tanstack/react-query';
import type { Quotas, Results, UsageReport } from '../../../../../api/replies/admin/types.ts';
import { appPath, call, queryOf } from '../client.ts';

/** Days of a report, both included, as `YYYY-MM-DD` in UTC. */
export interface Days {
  from: string;
  to: string;
}

export const usagePath = (appId: string, days: Days): string =>
  appPath(appId, 'usage') + queryOf({ ...days });

/** Use of an app by day, oldest first. */
export function useUsage(appId: string, days: Days) {
  const path = usagePath(appId, days);
  return useQuery({
    queryKey: ['usage', path],
    queryFn: ({ signal }) => call<Results<UsageReport>>(path, { signal }),
    placeholderData: keepPreviousData,
  });
}

export const quotasPath = (appId: string, day: string | undefined): string =>
  appPath(appId, 'quotas') + queryOf({ day });

/** Use of the gateways of an app on a day in China. */
export function useQuotas(appId: string, day: string | undefined) {
  const path = quotasPath(appId, day);
  return useQuery({
    queryKey: ['quotas', path],
    queryFn: ({ signal }) => call<Quotas>(path, { signal }),
    placeholderData: keepPreviousData,
  });
}
