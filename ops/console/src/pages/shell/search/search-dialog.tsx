import { Dialog } from '@base-ui/react/dialog';
import { useNavigate, useParams } from '@tanstack/react-router';
import i18next from 'i18next';
import { type KeyboardEvent, useEffect, useId, useRef, useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { SearchHit } from '../../../../../client/operations.ts';
import { useAppName, useAppNames, useSearchHits } from '../../../api/apps.ts';
import { includesRole, useOperator } from '../../../api/session.tsx';
import dialog from '../../../kit/dialog.module.css';
import { Failure } from '../../../kit/states.tsx';
import { languages } from '../../../text/texts.ts';
import { searchGuides } from '../../guides/guides.ts';
import { type FreezeScope, useFreezeScopes } from '../freeze.tsx';
import { appPages, isOpenTo, servicePages } from '../page-entries.ts';
import styles from './search.module.css';

interface SearchDialogProps {
  isOpen: boolean;
  setOpen: (isOpen: boolean) => void;
  freeze: (scope: FreezeScope) => void;
}

/**
 * Search for pages, apps, pushes, devices, users and guides. Arrow keys select, Enter opens, Escape
 * closes.
 */
export function SearchDialog({ isOpen, setOpen, freeze }: SearchDialogProps) {
  const { t } = useTranslation();
  const hasChosen = useRef(false);
  const choose = (entry: Entry) => {
    hasChosen.current = true;
    setOpen(false);
    entry.open();
  };
  // After an entry was opened, focuses the heading of its page. Otherwise, the focus returns to the
  // element before the dialog.
  const finalFocus = () => {
    const heading = hasChosen.current ? document.querySelector<HTMLElement>('main h1') : null;
    hasChosen.current = false;
    return heading ?? true;
  };
  return (
    <Dialog.Root open={isOpen} onOpenChange={setOpen}>
      <Dialog.Portal>
        <Dialog.Backdrop className={dialog.backdrop} />
        <Dialog.Popup className={`${dialog.popup} ${styles.popup}`} finalFocus={finalFocus}>
          <Dialog.Title className="visually-hidden">{t('search.title')}</Dialog.Title>
          <Search choose={choose} freeze={freeze} />
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  );
}

interface SearchProps {
  choose: (entry: Entry) => void;
  freeze: (scope: FreezeScope) => void;
}

function Search({ choose, freeze }: SearchProps) {
  const { t } = useTranslation();
  const id = useId();
  const [text, setText] = useState('');
  const [chosen, setChosen] = useState(0);
  const { entries, isBusy, error } = useEntries(text, freeze);
  const at = Math.min(chosen, entries.length - 1);
  const chooseWhenFound = useChoiceWhenFound({ entry: entries[at], isBusy, choose });
  const onKey = (event: KeyboardEvent) => {
    // Keys belong to the input method while it composes text.
    if (event.nativeEvent.isComposing) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === 'Enter') chooseWhenFound();
    else if (step === undefined || entries.length === 0) return;
    else setChosen((at + step + entries.length) % entries.length);
    event.preventDefault();
  };
  return (
    <>
      <input
        className={styles.input}
        role="combobox"
        aria-label={t('search.title')}
        aria-expanded={entries.length > 0}
        aria-controls={`${id}-list`}
        aria-activedescendant={at >= 0 ? `${id}-${at}` : undefined}
        aria-autocomplete="list"
        autoComplete="off"
        spellCheck={false}
        placeholder={t('search.hint')}
        value={text}
        onChange={(event) => {
          setText(event.target.value);
          setChosen(0);
        }}
        onKeyDown={onKey}
      />
      <Found {...{ id, at, entries, choose }} />
      {error !== null && <Failure error={error} />}
      <p className={styles.status} role="status">
        {entries.length === 0 && !isBusy
          ? t('search.nothing')
          : t('search.found', { count: entries.length, shown: entries.length })}
      </p>
    </>
  );
}

interface ChoiceWhenFound {
  entry: Entry | undefined;
  isBusy: boolean;
  choose: (entry: Entry) => void;
}

/**
 * Opens the entry. If the entries still belong to an earlier text, waits for the results of the
 * current text.
 */
function useChoiceWhenFound({ entry, isBusy, choose }: ChoiceWhenFound): () => void {
  const [isWaiting, setWaiting] = useState(false);
  useEffect(() => {
    if (!isWaiting || isBusy) return;
    setWaiting(false);
    if (entry) choose(entry);
  }, [isWaiting, isBusy, entry, choose]);
  return () => setWaiting(true);
}

interface FoundProps {
  id: string;
  at: number;
  entries: Entry[];
  choose: (entry: Entry) => void;
}

function Found({ id, at, entries, choose }: FoundProps) {
  const { t } = useTranslation();
  const show = (element: HTMLDivElement | null) => element?.scrollIntoView({ block: 'nearest' });
  return (
    <div id={`${id}-list`} role="listbox" aria-label={t('search.results')} className={styles.list}>
      {entries.map((entry, index) => (
        // biome-ignore lint/a11y/useKeyWithClickEvents: the field has the keys of the list.
        <div
          key={entry.id}
          id={`${id}-${index}`}
          ref={index === at ? show : undefined}
          role="option"
          tabIndex={-1}
          aria-selected={index === at}
          className={styles.entry}
          onClick={() => choose(entry)}
        >
          <span className={styles.kind}>{entry.kind}</span>
          <span className={styles.title}>{entry.title}</span>
          <span className={styles.detail}>{entry.detail}</span>
        </div>
      ))}
    </div>
  );
}

/** Search result. */
export interface Entry {
  id: string;
  /** Kind of result: a page, an app, a push, a device, a user or a guide. */
  kind: string;
  title: string;
  /** Text that distinguishes similar results, such as an id or an app. */
  detail: string;
  open: () => void;
}

/**
 * Returns the pages, objects and guides that match a text. Without a text, returns all pages. While
 * `isBusy` is true, the objects belong to an earlier text.
 */
function useEntries(
  text: string,
  freeze: SearchProps['freeze'],
): { entries: Entry[]; isBusy: boolean; error: unknown } {
  const pages = usePages(text);
  const guides = useGuideEntries(text);
  const acts = useFreezeEntries(text, freeze);
  const { hits, error, isBusy } = useSearchHits(text);
  const hitEntry = useHitEntry(hits);
  return { entries: [...pages, ...acts, ...hits.map(hitEntry), ...guides], isBusy, error };
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

function useGuideEntries(text: string): Entry[] {
  const { t } = useTranslation();
  const navigate = useNavigate();
  return searchGuides(text).map(({ path, title }) => ({
    id: `guide ${path}`,
    kind: t('search.guide'),
    title,
    detail: '',
    open: () => void navigate({ to: '/docs/$', params: { _splat: path } }),
  }));
}

/** Entries that freeze the current app or the whole service. */
function useFreezeEntries(text: string, freeze: SearchProps['freeze']): Entry[] {
  const { t } = useTranslation();
  const appId = useParams({ strict: false }).appId;
  const app = useAppName(appId);
  const searchText = text.trim().toLowerCase();
  return useFreezeScopes(appId)
    .map((scope) => ({
      id: `freeze ${scope}`,
      kind: t('search.action'),
      title: t(scope === null ? 'freeze.freezeService' : 'freeze.freezeApp'),
      detail: scope === null ? '' : app,
      open: () => freeze(scope),
    }))
    .filter(({ title }) =>
      [title, 'freeze', 'stop', '冻结', '停止'].some((word) =>
        word.toLowerCase().includes(searchText),
      ),
    );
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
