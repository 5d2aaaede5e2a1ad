import { useNavigate, useParams } from '@tanstack/react-router';
import i18next from 'i18next';
import { useTranslation } from 'react-i18next';
import type { SearchHit } from '../../../../../client/operations.ts';
import { useAppName, useAppNames, useSearchHits } from '../../../api/apps.ts';
import { includesRole, useOperator } from '../../../api/session.tsx';
import { languages } from '../../../text/texts.ts';
import { appPages, isOpenTo, servicePages } from '../page-entries.ts';

/** Search result. */
export interface Entry {
  id: string;
  /** Kind of result: a page, an app, a push, a device or a user. */
  kind: string;
  title: string;
  /** Text that distinguishes similar results, such as an id or an app. */
  detail: string;
  open: () => void;
}

/**
 * Returns the pages and objects that match a text. Without a text, returns all pages. While
 * `isBusy` is true, the objects belong to an earlier text.
 */
export function useEntries(text: string): { entries: Entry[]; isBusy: boolean; error: unknown } {
  const pages = usePages(text);
  const { hits, error, isBusy } = useSearchHits(text);
  const hitEntry = useHitEntry(hits);
  return { entries: [...pages, ...hits.map(hitEntry)], isBusy, error };
}

function usePages(text: string): Entry[] {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const appId = useParams({ strict: false }).appId;
  const { role, apps } = useOperator();
  const app = useAppName(appId);
  const searchText = text.trim().toLowerCase();
  const person = { apps, may: (needed: typeof role) => includesRole(role, needed) };
  const isFound = (place: (typeof appPages | typeof servicePages)[number]) =>
    isOpenTo(place, person) &&
    [
      ...languages.map((language) => i18next.getFixedT(language)(place.title)),
      ...(place.words ?? []),
    ].some((word) => word.toLowerCase().includes(searchText));
  const entryOf = ({ to, title }: { to: string; title: string }) => ({
    id: `page ${to}`,
    kind: t('search.page'),
    title: t(title),
  });
  const ofApp = appId === undefined ? [] : appPages.filter(isFound);
  return [
    ...ofApp.map((place) => ({
      ...entryOf(place),
      detail: app,
      open: () => void navigate({ to: place.to, params: { appId: appId ?? '' } }),
    })),
    ...servicePages.filter(isFound).map((place) => ({
      ...entryOf(place),
      detail: '',
      open: () => void navigate({ to: place.to }),
    })),
  ];
}

function useHitEntry(hits: readonly SearchHit[]): (hit: SearchHit) => Entry {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const name = useAppNames(hits.map(({ appId }) => appId));
  return ({ kind, appId, id, title }) => {
    const open: Record<SearchHit['kind'], () => void> = {
      app: () => void navigate({ to: '/apps/$appId', params: { appId } }),
      push: () =>
        void navigate({ to: '/apps/$appId/pushes/$pushId', params: { appId, pushId: id } }),
      installation: () =>
        void navigate({ to: '/apps/$appId/devices/$deviceId', params: { appId, deviceId: id } }),
      user: () =>
        void navigate({ to: '/apps/$appId/users/$userId', params: { appId, userId: id } }),
    };
    const detail = kind === 'app' ? appId : `${id} · ${name(appId)}`;
    const label = kind === 'push' ? t(`pushState.${title}`) : title;
    return {
      id: `${kind} ${appId} ${id}`,
      kind: t(`search.${kind}`),
      title: label,
      detail,
      open: open[kind],
    };
  };
}
