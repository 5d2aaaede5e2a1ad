import { Outlet, useParams, useRouterState } from '@tanstack/react-router';
import { useEffect, useRef } from 'react';
import { useTranslation } from 'react-i18next';
import { useAppName } from '../../api/apps.ts';
import { TitleScope } from '../../kit/title.ts';
import { AppMenu } from './app-menu.tsx';
import { FreezeNotice } from './freeze-notice.tsx';
import { Navigation } from './navigation.tsx';
import { PersonMenu } from './person-menu.tsx';
import { LanguageChoice, ThemeChoice } from './preferences.tsx';
import { SearchButton } from './search/search-button.tsx';
import styles from './shell.module.css';
import { useShortcuts } from './shortcuts.ts';
import { VersionNotice } from './version-notice.tsx';

/** Frame of every page: app, navigation, preferences, person. */
export function Shell() {
  const { t } = useTranslation();
  const { appId } = useParams({ strict: false });
  const main = useRef<HTMLElement>(null);
  const name = useAppName(appId);
  useFocusOnPage(main);
  useShortcuts(appId);
  return (
    <div className={styles.frame}>
      <a href="#main" className={styles.skip}>
        {t('shell.skip')}
      </a>
      <header className={styles.top}>
        <AppMenu appId={appId} />
        <div className={styles.tools}>
          <SearchButton />
          <LanguageChoice />
          <ThemeChoice />
          <PersonMenu />
        </div>
      </header>
      <Navigation appId={appId} />
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

/** Moves the focus to the heading of a page after navigation, so that screen readers begin there. */
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
    heading?.focus();
  }, [path, main]);
}
