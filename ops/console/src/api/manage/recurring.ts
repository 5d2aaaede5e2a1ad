import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import type {
  KeysetPage,
  RecurringPush,
  RecurringTimes,
  SentPush,
} from '../../../../../api/replies/admin/types.ts';
import { appPath, call, queryOf } from '../client.ts';

const refreshMs = 10_000;

/** Path of the recurring pushes of an app, which are 100 at most. */
export const recurringPath = (appId: string): string =>
  appPath(appId, 'recurring-pushes') + queryOf({ limit: 200 });

export function useRecurring(appId: string) {
  return useQuery({
    queryKey: ['recurring', appId],
    queryFn: ({ signal }) => call<KeysetPage<RecurringPush>>(recurringPath(appId), { signal }),
    refetchInterval: refreshMs,
  });
}

/** Times of a recurring push, as a person writes them; limits in ISO 8601. */
export interface AskedTimes {
  expression: string;
  timeZone: string;
  startsAt: string | null;
  endsAt: string | null;
}

/** Next times of an expression; asks while `asked` is there. */
export function useNextTimes(appId: string, asked: AskedTimes | undefined) {
  return useQuery({
    queryKey: ['recurring-times', appId, asked],
    queryFn: ({ signal }) =>
      call<RecurringTimes>(appPath(appId, 'recurring-pushes', 'preview'), {
        method: 'POST',
        body: asked ?? {},
        signal,
      }),
    enabled: asked !== undefined,
    retry: false,
  });
}

/** Functions that change recurring pushes; each loads the list again. */
export function useRecurringActions(appId: string) {
  const client = useQueryClient();
  const onSettled = () => client.invalidateQueries({ queryKey: ['recurring', appId] });
  const at = (id: number, ...rest: string[]) => appPath(appId, 'recurring-pushes', id, ...rest);
  const enable = useMutation({
    mutationFn: ({ id, isEnabled }: Pick<RecurringPush, 'id' | 'isEnabled'>) =>
      call(at(id), { method: 'PATCH', body: { isEnabled } }),
    onSettled,
  });
  const start = useMutation({
    mutationFn: (id: number) => call<SentPush>(at(id, 'start'), { method: 'POST' }),
    onSettled,
  });
  const remove = useMutation({
    mutationFn: (id: number) => call(at(id), { method: 'DELETE' }),
    onSettled,
  });
  /** Takes the definition as JSON text: numbers of its body stay as they were typed. */
  const save = useMutation({
    mutationFn: ({ id, text }: { id: number | undefined; text: string }) =>
      id === undefined
        ? call<RecurringPush>(appPath(appId, 'recurring-pushes'), { method: 'POST', text })
        : call<RecurringPush>(at(id), { method: 'PATCH', text }),
    onSettled,
  });
  return { enable, start, remove, save };
}
