import { keepPreviousData, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useRef } from 'react';
import { JsonText, type Reply } from '../../../client/client.ts';
import type {
  PushForecast,
  PushTemplate,
  SavedAudience,
  TestDevice,
} from '../../../client/operations.ts';
import { call } from './client.ts';

/** Dry run of a push body. */
export interface DryRun {
  /** Body as JSON text. */
  text: string;
  forecast: PushForecast;
  tookMs: number;
}

/**
 * Dry run of a body. Sends nothing. Without a text, makes no call. The last dry run stays until the
 * next one.
 */
export function useDryRun(appId: string, text: string | undefined) {
  const last = useRef<DryRun>(undefined);
  const query = useQuery({
    queryKey: ['explain', appId, text],
    queryFn: async ({ signal }): Promise<DryRun> => {
      const startedMs = performance.now();
      const body = new JsonText(text ?? '');
      const forecast = await call('explainPush', { path: { appId }, body, signal });
      const tookMs = performance.now() - startedMs;
      return { text: text ?? '', forecast, tookMs };
    },
    enabled: text !== undefined,
    retry: false,
    refetchOnWindowFocus: false,
    refetchOnMount: 'always',
    gcTime: 0,
  });
  if (query.data) last.current = query.data;
  return { query, last: last.current };
}

/**
 * Counts the devices of a target (members of a push body as JSON text), in total and without each
 * clause. A newer text aborts the running count. The previous numbers stay until the new count is
 * done.
 */
export function useAudience(appId: string, text: string | undefined) {
  return useQuery({
    queryKey: ['audience', appId, text],
    queryFn: ({ signal }) =>
      call('countAudience', { path: { appId }, body: new JsonText(text ?? ''), signal }),
    enabled: text !== undefined,
    retry: false,
    refetchOnWindowFocus: false,
    placeholderData: keepPreviousData,
  });
}

export interface SendOptions {
  text: string;
  /**
   * Digest of the dry run of this text. The server refuses the push if the audience has changed
   * since. Without a digest, the server does not check this.
   */
  digest?: string;
  /**
   * Idempotency key. It stays the same for all attempts of a push, so that the push is sent once.
   */
  requestId: string;
  undoSeconds?: number;
}

/** Sends a push. Throws `ApiError`, with status 409 if the audience has changed. */
export function sendPush(appId: string, { text, digest, requestId, undoSeconds }: SendOptions) {
  return call('sendAppPush', {
    path: { appId },
    query: { undoSeconds: undoSeconds || undefined },
    body: new JsonText(text),
    headers: {
      'Idempotency-Key': requestId,
      ...(digest === undefined ? {} : { 'X-Carillon-Explained': digest }),
    },
  });
}

const requestIdLength = 16;

/** Returns a random request id of letters and digits. */
export function newRequestId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(requestIdLength));
  return Array.from(bytes, (byte) => (byte % 36).toString(36)).join('');
}

/** Saved items of an app, by kind. */
interface Kinds {
  'push-templates': PushTemplate;
  audiences: SavedAudience;
  'test-devices': TestDevice;
}

export type SavedKind = keyof Kinds;
export type SavedItem<K extends SavedKind> = Kinds[K];

interface OfApp {
  path: { appId: string };
  signal: AbortSignal;
}

const lists: { [K in SavedKind]: (input: OfApp) => Promise<{ results: Kinds[K][] }> } = {
  'push-templates': (input) => call('listPushTemplates', input),
  audiences: (input) => call('listAudiences', input),
  'test-devices': (input) => call('listTestDevices', input),
};

const operations = {
  'push-templates': { put: 'putPushTemplate', remove: 'deletePushTemplate' },
  audiences: { put: 'putAudience', remove: 'deleteAudience' },
  'test-devices': { put: 'putTestDevice', remove: 'deleteTestDevice' },
} as const;

export function useSaved<K extends SavedKind>(appId: string, kind: K) {
  return useQuery({
    queryKey: ['saved', appId, kind],
    queryFn: ({ signal }) => lists[kind]({ path: { appId }, signal }),
    staleTime: 30_000,
  });
}

/** New item: its name, and its content as JSON text. */
export interface NewItem {
  name: string;
  text: string;
}

/** Functions that create, replace and delete saved items. Each reloads the list. */
export function useSavedActions(appId: string, kind: SavedKind) {
  const client = useQueryClient();
  const { put, remove } = operations[kind];
  const onSuccess = () => client.invalidateQueries({ queryKey: ['saved', appId, kind] });
  const saving = useMutation({
    mutationFn: ({ name, text }: NewItem): Promise<Reply<typeof put>> =>
      call(put, { path: { appId, name }, body: new JsonText(text) }),
    onSuccess,
  });
  const removal = useMutation({
    mutationFn: (name: string) => call(remove, { path: { appId, name } }),
    onSuccess,
  });
  return { save: saving, remove: removal };
}
