import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useRef } from 'react';
import type { Audience, Meta, PushForecast, SentPush } from '../../../../api/replies/admin/types.ts';
import { appPath, call } from './client.ts';

/** Facts about the service: its connectors with their limits, and the keys of a message. */
export function useMeta() {
  return useQuery({
    queryKey: ['meta'],
    queryFn: ({ signal }) => call<Meta>('/meta', { signal }),
    staleTime: Number.POSITIVE_INFINITY,
  });
}

/** Dry run of one body. */
export interface DryRun {
  /** Body that was explained, as text. */
  text: string;
  forecast: PushForecast;
  tookMs: number;
  /** This one and the one before took long: one alone may be the first of a service that has just started. */
  isExpensive: boolean;
}

/** A dry run that takes longer reads many devices. */
const expensiveMs = 1000;

/**
 * Explains what a body would do; sends nothing. Without a text nothing is asked. The last dry run stays until the next
 * one.
 */
export function useDryRun(appId: string, text: string | undefined) {
  const last = useRef<DryRun>(undefined);
  const query = useQuery({
    queryKey: ['explain', appId, text],
    queryFn: async ({ signal }): Promise<DryRun> => {
      const startedMs = performance.now();
      const path = appPath(appId, 'push', 'explain');
      const forecast = await call<PushForecast>(path, { method: 'POST', text: text ?? '', signal });
      const tookMs = performance.now() - startedMs;
      const isExpensive = Math.min(tookMs, last.current?.tookMs ?? 0) > expensiveMs;
      return { text: text ?? '', forecast, tookMs, isExpensive };
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
 * Counts the devices of a target (members of a push's body as text), in all and without each clause. A newer text aborts
 * the count of the last one, whose figures stay until then.
 */
export function useAudience(appId: string, text: string | undefined) {
  return useQuery({
    queryKey: ['audience', appId, text],
    queryFn: ({ signal }) =>
      call<Audience>(appPath(appId, 'audience'), { method: 'POST', text: text ?? '', signal }),
    enabled: text !== undefined,
    retry: false,
    refetchOnWindowFocus: false,
    placeholderData: keepPreviousData,
  });
}

export interface SendOptions {
  text: string;
  /**
   * Digest of the dry run of this text: the server refuses when the audience has moved since. Without it there is no
   * such check.
   */
  digest?: string;
  /** The same for every attempt of one send: it sends once. */
  requestId: string;
  undoSeconds?: number;
}

/** Sends a push. Throws `ApiError`; 409 where the audience moved. */
export function sendPush(appId: string, { text, digest, requestId, undoSeconds = 0 }: SendOptions) {
  const query = undoSeconds > 0 ? `?undoSeconds=${undoSeconds}` : '';
  return call<SentPush>(appPath(appId, 'push') + query, {
    method: 'POST',
    text,
    headers: {
      'Idempotency-Key': requestId,
      ...(digest === undefined ? {} : { 'X-Carillon-Explained': digest }),
    },
  });
}

const requestIdLength = 16;

/** Returns a random id of a request: letters and digits. */
export function newRequestId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(requestIdLength));
  return Array.from(bytes, (byte) => (byte % 36).toString(36)).join('');
}
