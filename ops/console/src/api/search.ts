import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { call } from './client.ts';

/** Time after the last key until the server is asked. */
const restMs = 200;
/** Shorter texts would find a part of every name. */
export const minSearchLength = 2;

/** Things of the service that have a text as id, token, name, address or number. */
export function useSearchHits(text: string) {
  const wanted = text.trim();
  const q = useSettled(wanted);
  const { data, error, isFetching } = useQuery({
    queryKey: ['search', q],
    queryFn: ({ signal }) => call('search', { query: { q }, signal }),
    enabled: q.length >= minSearchLength,
    placeholderData: keepPreviousData,
  });
  // A short text keeps the results of the one before.
  if (wanted.length < minSearchLength) return { hits: [], error: null, isBusy: false };
  return { hits: data?.results ?? [], error, isBusy: isFetching || q !== wanted };
}

/** Returns a value once it has stood still. */
function useSettled(value: string): string {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), restMs);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}
