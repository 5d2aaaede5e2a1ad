import { CatchBoundary } from '@tanstack/react-router';
import { lazy, Suspense, useEffect, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { Button } from '../../../kit/controls/button.tsx';
import { Icon } from '../../../kit/icon.tsx';
import { loadAllLanguages } from '../../../text/texts.ts';
import type { FreezeScope } from '../freeze.tsx';
import styles from './search.module.css';

// The search also finds the names of pages in the other language.
const SearchDialog = lazy(async () => {
  const [module] = await Promise.all([import('./search-dialog.tsx'), loadAllLanguages()]);
  return { default: module.SearchDialog };
});

const isApple = /Mac|iPhone|iPad/.test(navigator.platform);

/** Message that the code of the search could not be loaded. */
function NotLoaded() {
  const { t } = useTranslation();
  return <span role="alert">{t('failure.load')}</span>;
}

/** Button that opens the search. Ctrl+K and ⌘K open it too. */
export function SearchButton({ freeze }: { freeze: (scope: FreezeScope) => void }) {
  const { t } = useTranslation();
  const [isOpen, setOpen] = useState(false);
  const [isLoaded, setLoaded] = useState(false);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey) || event.altKey)
        return;
      event.preventDefault();
      setLoaded(true);
      setOpen(true);
    };
    window.addEventListener('keydown', onKey);
    return () => window.removeEventListener('keydown', onKey);
  }, []);
  const open = () => {
    setLoaded(true);
    setOpen(true);
  };
  return (
    <>
      <Button className={styles.button} aria-keyshortcuts="Control+K Meta+K" onClick={open}>
        <Icon name="search" />
        {t('action.search')}
        <span className={styles.keys} aria-hidden="true">
          {isApple ? '⌘K' : 'Ctrl K'}
        </span>
      </Button>
      {isLoaded && (
        <CatchBoundary getResetKey={() => String(isOpen)} errorComponent={NotLoaded}>
          <Suspense>
            <SearchDialog isOpen={isOpen} setOpen={setOpen} freeze={freeze} />
          </Suspense>
        </CatchBoundary>
      )}
    </>
  );
}
