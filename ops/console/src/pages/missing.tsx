import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { Button } from '../kit/controls/button.tsx';
import { PageHeader } from '../kit/panel.tsx';
import { Empty } from '../kit/states.tsx';

/** Page of an address without a page. */
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
 * Failure to load the code of a page: the server has another version by now, or cannot be reached.
 */
class PageLoadError extends Error {}

/**
 * Loads the code of a page. Throws `PageLoadError`, which the router shows in the frame of the
 * pages.
 */
export async function loadPage<T>(load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (error) {
    throw new PageLoadError('the code of the page was not loaded', { cause: error });
  }
}

/** Says why a page does not show, and loads it again once the server answers. */
export function PageFailure({ error }: { error: unknown }) {
  const { t } = useTranslation();
  const [isOffline, setOffline] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const reload = async () => {
    setBusy(true);
    // A reload without the server would leave the page of the browser in place of this one.
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
        <Button look="primary" isBusy={isBusy} onClick={() => void reload()}>
          {t('failure.reload')}
        </Button>
      </Empty>
    </>
  );
}
