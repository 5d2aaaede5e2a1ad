import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import type {
  PushTemplate,
  Results,
  SavedAudience,
  TestDevice,
} from '../../../../api/replies/admin/types.ts';
import { appPath, call } from './client.ts';

/** Items that people save for an app, by the part of their paths. */
interface Kinds {
  'push-templates': PushTemplate;
  audiences: SavedAudience;
  'test-devices': TestDevice;
}

export type SavedKind = keyof Kinds;
export type SavedItem<K extends SavedKind> = Kinds[K];

export function useSaved<K extends SavedKind>(appId: string, kind: K) {
  return useQuery({
    queryKey: ['saved', appId, kind],
    queryFn: ({ signal }) => call<Results<Kinds[K]>>(appPath(appId, kind), { signal }),
    staleTime: 30_000,
  });
}

/** Content of an item as JSON text, under its name. */
export interface NewItem {
  name: string;
  text: string;
}

/** Functions that create, replace and delete items; each loads the list again. */
export function useSavedActions(appId: string, kind: SavedKind) {
  const client = useQueryClient();
  const onSuccess = () => client.invalidateQueries({ queryKey: ['saved', appId, kind] });
  const save = useMutation({
    mutationFn: ({ name, text }: NewItem) => call(appPath(appId, kind, name), { method: 'PUT', text }),
    onSuccess,
  });
  const remove = useMutation({
    mutationFn: (name: string) => call(appPath(appId, kind, name), { method: 'DELETE' }),
    onSuccess,
  });
  return { save, remove };
}
