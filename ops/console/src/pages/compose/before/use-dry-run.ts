import { useEffect, useState } from 'react';
import { ApiError } from '../../../api/client.ts';
import { type DryRun, useDryRun } from '../../../api/compose.ts';
import { memberOfRefusal } from '../../../draft/refusals.ts';
import { useRefusalText } from '../../../text/refusals.ts';
import type { Draft } from '../draft-state.ts';

/** Time after the last key, after which a dry run begins by itself. */
const restMs = 500;

/** Dry run of the draft as it is, or as it was. */
export interface CurrentDryRun {
  /** The last dry run; `isFresh` tells whether it is of the draft as it is now. */
  last: DryRun | undefined;
  isFresh: boolean;
  isRunning: boolean;
  error: unknown;
  refusal: { member: string | undefined; message: string } | undefined;
  run(): void;
}

/** Runs the dry run of a draft: by itself until dry runs are expensive, then on demand. */
export function useCurrentDryRun(appId: string, { sent }: Draft): CurrentDryRun {
  const [asked, setAsked] = useState<string>();
  const { query, last } = useDryRun(appId, asked);
  const isCheap = !last?.isExpensive;
  const isAsked = asked === sent;
  useEffect(() => {
    if (sent === undefined || isAsked || !isCheap) return;
    const timer = setTimeout(() => setAsked(sent), restMs);
    return () => clearTimeout(timer);
  }, [sent, isAsked, isCheap]);
  const error = isAsked ? query.error : null;
  const { text, original } = useRefusalText(error instanceof ApiError ? error : undefined);
  const shownMessage = original === undefined ? text : `${text} ${original}`;
  const refusal =
    error instanceof ApiError && error.status >= 400 && error.status < 500
      ? { member: memberOfRefusal(error), message: shownMessage }
      : undefined;
  const run = () => {
    if (isAsked) void query.refetch();
    else setAsked(sent);
  };
  const isFresh = last !== undefined && last.text === sent && !query.isFetching && error === null;
  return { last, isFresh, isRunning: query.isFetching, error, refusal, run };
}
