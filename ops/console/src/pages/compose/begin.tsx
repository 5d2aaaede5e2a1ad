import { useQuery } from '@tanstack/react-query';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { type ReactNode, useEffect } from 'react';
import { useTranslation } from 'react-i18next';
import { call } from '../../api/client.ts';
import { bodyOfRequest, toJson } from '../../draft/fields.ts';
import { isRecord, type JsonRecord, JsonTextError, parseJsonText } from '../../draft/json-text.ts';
import { Failure, Loading } from '../../kit/states.tsx';
import type { ComposeSearch } from '../../search.ts';
import { emptyBody, storeDraft } from './draft-state.ts';

const route = getRouteApi('/apps/$appId/pushes/new');

/** Initial body for the URL, and whether it could be copied completely. */
interface InitialDraft {
  body: JsonRecord;
  isComplete: boolean;
}

/**
 * Creates the draft that the URL requests: a copy of a push, a template, or a push to the devices
 * of a condition.
 */
export function Begin({ appId, children }: { appId: string; children: ReactNode }) {
  const { t } = useTranslation();
  const search = route.useSearch();
  const navigate = useNavigate();
  const isRequested = [search.from, search.where, search.template].some((one) => one !== undefined);
  const { data, error, refetch } = useQuery({
    queryKey: ['begin', appId, search.from, search.where, search.template],
    queryFn: ({ signal }) => beginOf(appId, search, signal),
    enabled: isRequested,
    staleTime: 0,
    gcTime: 0,
  });
  useEffect(() => {
    if (!data || !isRequested) return;
    storeDraft(appId, data.body);
    const part = data.isComplete ? undefined : true;
    // Replaces the URL, so that a reload keeps later changes of the draft.
    void navigate({
      to: '/apps/$appId/pushes/new',
      params: { appId },
      search: { view: search.view, part },
      replace: true,
    });
  }, [data, isRequested, appId, navigate, search.view]);
  if (error && isRequested) return <Failure error={error} retry={() => void refetch()} />;
  if (isRequested) return <Loading rows={8} />;
  return (
    <>
      {search.part && <p role="status">{t('compose.partOnly')}</p>}
      {children}
    </>
  );
}

async function beginOf(
  appId: string,
  { from, where, template }: ComposeSearch,
  signal: AbortSignal,
): Promise<InitialDraft> {
  if (from !== undefined) {
    const push = await call('getAppPush', { path: { appId, id: from }, signal });
    const request = toJson(push.request);
    return bodyOfRequest(isRecord(request) ? request : {});
  }
  if (template !== undefined) {
    const { body } = await call('getPushTemplate', { path: { appId, name: template }, signal });
    const read = toJson(body);
    return { body: isRecord(read) ? read : emptyBody, isComplete: true };
  }
  return { body: { ...emptyBody, where: conditionIn(where ?? '{}') }, isComplete: true };
}

/**
 * Returns the condition in a URL. Invalid JSON stays a text, so that the dry run reports the error.
 */
function conditionIn(text: string) {
  try {
    return parseJsonText(text);
  } catch (error) {
    if (error instanceof JsonTextError) return text;
    throw error;
  }
}
