import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { Button } from '../kit/controls/button.tsx';
import { PageHeader } from '../kit/panel.tsx';
import { Empty } from '../kit/states.tsx';
import { loadSharedTexts } from '../text/texts.ts';

/** Page for an unknown URL. */
export function Missing() {
  const { t } = useTranslation();
  return (
    <>
      <PageHeader title={t('missing.title')} />
      <Empty title={t('missing.text')}>
        <Link to="/">{t('missing.home')}</Link>
      </Empty>
    </>
  );
}

/**
 * Thrown if the code of a page cannot be loaded: the server has a newer version or is unreachable.
 */
class PageLoadError extends Error {}

/**
 * Loads the code of a page and the texts of the shared catalogue. Throws `PageLoadError`, which the
 * router shows inside the page frame.
 */
export async function loadPage<T>(load: () => Promise<T>): Promise<T> {
  try {
    const [page] = await Promise.all([load(), loadSharedTexts()]);
    return page;
  } catch (error) {
    throw new PageLoadError('the code of the page was not loaded', { cause: error });
  }
}

/** Reason why a page cannot be shown. Its button reloads the page when the server is reachable. */
export function PageFailure({ error }: { error: unknown }) {
  const { t } = useTranslation();
  const [isOffline, setOffline] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const reload = async () => {
    setBusy(true);
    // Checks the server first. A reload without the server would replace this page with the
    // browser's error page.
    const isReached = await fetch('/console/build.json', { cache: 'no-store' }).then(
      () => true,
      () => false,
    );
    setBusy(false);
    setOffline(!isReached);
    if (isReached) window.location.reload();
  };
  return (
    <>
      <PageHeader title={t('failure.title')} />
      <Empty title={t(error instanceof PageLoadError ? 'failure.load' : 'failure.broken')}>
        {isOffline && <p role="alert">{t('state.unreachable')}</p>}
        <Button variant="primary" isBusy={isBusy} onClick={() => void reload()}>
          {t('failure.reload')}
        </Button>
      </Empty>
    </>
  );
}
