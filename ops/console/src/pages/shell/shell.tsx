import { useQuery } from '@tanstack/react-query';
import { Link, Outlet, useNavigate, useParams, useRouterState } from '@tanstack/react-router';
import { lazy, Suspense, useCallback, useEffect, useRef, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useAppName } from '../../api/apps.ts';
import { Button } from '../../kit/controls/button.tsx';
import { isTyping } from '../../kit/controls/field.tsx';
import { Bell, Icon } from '../../kit/icon.tsx';
import { Notice, TitleScope } from '../../kit/panel.tsx';
import { FreezeButton, FreezeNotice, FreezeRequest, type FreezeScope } from './freeze.tsx';
import { AppMenu, LanguageChoice, Navigation, PersonMenu, ThemeChoice } from './navigation.tsx';
import { appPages, servicePages } from './page-entries.ts';
import { SearchButton } from './search/search-button.tsx';
import styles from './shell.module.css';

const chordMs = 1200;

/**
 * Shortcuts on every page: `g` and a page's key open the page, `c` composes a push, `/` focuses the
 * page's search field, `?` shows the shortcuts.
 */
function useShortcuts(appId: string | undefined, help: () => void): void {
  const navigate = useNavigate();
  const chordUntil = useRef(0);
  useEffect(() => {
    const open = (key: string) => {
      const ofApp = appPages.find((place) => place.key === key);
      const ofService = servicePages.find((place) => place.key === key);
      if (ofApp && appId !== undefined) void navigate({ to: ofApp.to, params: { appId } });
      else if (ofService) void navigate({ to: ofService.to });
    };
    const onKey = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      if (event.key === '/') {
        const field = document.querySelector<HTMLElement>('main input[type=search]');
        if (!field) return;
        event.preventDefault();
        field.focus();
      } else if (event.key === 'g') chordUntil.current = event.timeStamp + chordMs;
      else if (event.key === 'c' && event.timeStamp >= chordUntil.current && appId !== undefined)
        void navigate({ to: '/apps/$appId/pushes/new', params: { appId } });
      else if (event.key === '?') help();
      else if (event.timeStamp < chordUntil.current) {
        chordUntil.current = 0;
        open(event.key);
      }
    };
    window.addEventListener('keydown', onKey);
    return () => window.removeEventListener('keydown', onKey);
  }, [appId, navigate, help]);
}

const versionCheckMs = 60_000;
/** Delay of the first check, so that it does not compete with the requests of the page. */
const firstVersionCheckMs = 2000;

/**
 * Notice that the server has another version of the console than this page. This page may not
 * understand the server's replies.
 */
function VersionNotice() {
  const { t } = useTranslation();
  const { data } = useQuery({
    queryKey: ['build'],
    queryFn: async ({ signal }) => {
      const response = await fetch('/console/build.json', { signal });
      const reply: unknown = response.ok ? await response.json() : {};
      return typeof reply === 'object' && reply !== null && 'digest' in reply ? reply.digest : null;
    },
    initialData: __BUILD__,
    refetchInterval: ({ state }) =>
      state.dataUpdateCount === 0 ? firstVersionCheckMs : versionCheckMs,
    staleTime: versionCheckMs,
    retry: false,
  });
  if (typeof data !== 'string' || data === __BUILD__) return null;
  return (
    <Notice variant="plain">
      {t('shell.newVersion')}
      <Button onClick={() => window.location.reload()}>{t('shell.reload')}</Button>
    </Notice>
  );
}

const HelpDialog = lazy(() =>
  import('./help-dialog.tsx').then((module) => ({ default: module.HelpDialog })),
);

/** Frame of every page: app, navigation, preferences, person. */
export function Shell() {
  const { t } = useTranslation();
  const { appId } = useParams({ strict: false });
  const main = useRef<HTMLElement>(null);
  const name = useAppName(appId);
  const [freezing, setFreezing] = useState<FreezeScope>();
  const [isHelpOpen, setHelpOpen] = useState(false);
  const [isMenuOpen, setMenuOpen] = useMenu();
  const help = useCallback(() => setHelpOpen(true), []);
  useFocusOnPage(main);
  useShortcuts(appId, help);
  return (
    <div className={styles.frame}>
      <a href="#main" className={styles.skip}>
        {t('shell.skip')}
      </a>
      <header className={styles.top}>
        <div className={styles.bar}>
          <Link to="/" className={styles.brand} aria-label={t('shell.home')}>
            <Bell />
            <span className={styles.product}>Carillon</span>
          </Link>
          <AppMenu appId={appId} />
        </div>
        <Button
          className={styles.menu}
          aria-expanded={isMenuOpen}
          aria-controls="navigation"
          onClick={() => setMenuOpen(!isMenuOpen)}
        >
          <Icon name="menu" />
          {t('shell.menu')}
        </Button>
        <div className={`${styles.tools} ${isMenuOpen ? styles.open : ''}`}>
          <FreezeButton appId={appId} freeze={setFreezing} />
          <SearchButton freeze={setFreezing} />
          <LanguageChoice />
          <ThemeChoice />
          <PersonMenu help={help} />
        </div>
      </header>
      <FreezeRequest scope={freezing} close={() => setFreezing(undefined)} />
      {isHelpOpen && (
        <Suspense>
          <HelpDialog close={() => setHelpOpen(false)} />
        </Suspense>
      )}
      <Navigation appId={appId} isOpen={isMenuOpen} />
      <main id="main" ref={main} className={styles.main} tabIndex={-1}>
        <VersionNotice />
        <FreezeNotice appId={appId} />
        <TitleScope value={appId === undefined ? undefined : name}>
          <Outlet />
        </TitleScope>
      </main>
    </div>
  );
}

/** Returns whether the menu of a phone is open. Another page closes it. */
function useMenu(): [isOpen: boolean, setOpen: (isOpen: boolean) => void] {
  const path = useRouterState({ select: ({ location }) => location.pathname });
  const [openAt, setOpenAt] = useState<string>();
  return [openAt === path, (isOpen) => setOpenAt(isOpen ? path : undefined)];
}

/** Moves the focus to the heading after navigation, so that screen readers start there. */
function useFocusOnPage(main: React.RefObject<HTMLElement | null>): void {
  const path = useRouterState({ select: (state) => state.resolvedLocation?.pathname });
  const isFirst = useRef(true);
  useEffect(() => {
    if (path === undefined) return;
    if (isFirst.current) {
      isFirst.current = false;
      return;
    }
    const heading = main.current?.querySelector<HTMLElement>('h1') ?? main.current;
    // The router scrolls: to the top, or to an anchor.
    heading?.focus({ preventScroll: true });
  }, [path, main]);
}
