import { Link } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
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
