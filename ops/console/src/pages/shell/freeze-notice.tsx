import { useTranslation } from 'react-i18next';
import type { Freeze } from '../../../../client/operations.ts';
import { useFreezes, useRelease } from '../../api/operating.ts';
import { useMay, useOperator } from '../../api/session.tsx';
import { Button } from '../../kit/controls/button.tsx';
import { Notice } from '../../kit/notice.tsx';
import { formatTime } from '../../text/format.ts';

/** Says on every page that the service is frozen, or the app of the page, and lets operators release it. */
export function FreezeNotice({ appId }: { appId: string | undefined }) {
  const freezes = useFreezes().data?.results ?? [];
  return freezes
    .filter((freeze) => freeze.appId === null || freeze.appId === appId)
    .map((freeze) => <OfFreeze key={freeze.appId ?? ''} freeze={freeze} />);
}

function OfFreeze({ freeze: { appId, since, by, reason } }: { freeze: Freeze }) {
  const { t } = useTranslation();
  const { apps } = useOperator();
  const mayRelease = useMay('operator') && (appId !== null || apps === null);
  const release = useRelease(appId);
  const scope = appId === null ? 'service' : 'app';
  return (
    <Notice look="warn">
      <span>
        <strong>{t(`freeze.${scope}Frozen`)}</strong> {t('freeze.since', { at: formatTime(since), by })}
        {reason !== '' && ` ${t('freeze.because', { reason })}`}
      </span>
      {mayRelease && (
        <Button isBusy={release.isPending} onClick={() => release.mutate()}>
          {t(`freeze.release${scope === 'service' ? 'Service' : 'App'}`)}
        </Button>
      )}
    </Notice>
  );
}
