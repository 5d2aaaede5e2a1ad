import { useTranslation } from 'react-i18next';
import { requestOf } from '../../../../client/client.ts';
import { Commands } from '../../kit/controls/copy.tsx';
import { PageHeader } from '../../kit/panel.tsx';
import { Doctor } from './doctor.tsx';

/** What is usual in production and missing here, each with what to do. */
export function GoLive() {
  const { t } = useTranslation();
  return (
    <>
      <PageHeader title={t('goLive.title')} />
      <p>{t('goLive.about')}</p>
      <Doctor isProduction />
      <Doctor />
      <Commands request={requestOf('runDoctor')} command="doctor --production" />
    </>
  );
}
