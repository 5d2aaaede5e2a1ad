import { lazy, Suspense } from 'react';
import { useTranslation } from 'react-i18next';
import type { Freeze } from '../../../../client/operations.ts';
import { useFreezes, useRelease } from '../../api/operating.ts';
import { useIsOfService, useMay, useOperator } from '../../api/session.tsx';
import { Button } from '../../kit/controls/button.tsx';
import { Icon } from '../../kit/icon.tsx';
import { Notice } from '../../kit/panel.tsx';
import { Failure } from '../../kit/states.tsx';
import { formatTime } from '../../text/format.ts';

/**
 * Notice on every page if the service or the current app is frozen. Operators can end the freeze.
 */
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
    <>
      <Notice variant="warn">
        <span>
          <strong>{t(`freeze.${scope}Frozen`)}</strong>{' '}
          {t('freeze.since', { at: formatTime(since), by })}
          {reason !== '' && ` ${t('freeze.because', { reason })}`}
        </span>
        {mayRelease && (
          <Button isBusy={release.isPending} onClick={() => release.mutate()}>
            {t(`freeze.release${scope === 'service' ? 'Service' : 'App'}`)}
          </Button>
        )}
      </Notice>
      {release.error && <Failure error={release.error} />}
    </>
  );
}

/** App to freeze, or null for the whole service. */
export type FreezeScope = string | null;

/**
 * Returns what the person may freeze now: the current app, and the whole service. Leaves out what
 * is frozen already.
 */
export function useFreezeScopes(appId: string | undefined): FreezeScope[] {
  const mayFreeze = useMay('operator');
  const isOfService = useIsOfService();
  const frozen = useFreezes().data?.results.map((freeze) => freeze.appId) ?? [];
  const scopes: FreezeScope[] = [
    ...(mayFreeze && appId !== undefined ? [appId] : []),
    ...(isOfService ? [null] : []),
  ];
  return scopes.filter((scope) => !frozen.includes(scope));
}

interface FreezeButtonProps {
  appId: string | undefined;
  freeze: (scope: FreezeScope) => void;
}

/** Button in the header that freezes the app of the page or, on other pages, the whole service. */
export function FreezeButton({ appId, freeze }: FreezeButtonProps) {
  const { t } = useTranslation();
  const scopes = useFreezeScopes(appId);
  const scope = appId ?? null;
  if (!scopes.includes(scope)) return null;
  const name = t(scope === null ? 'freeze.freezeService' : 'freeze.freezeApp');
  return (
    <Button variant="quiet" aria-label={name} title={name} onClick={() => freeze(scope)}>
      <Icon name="freeze" />
      {t('freeze.title')}
    </Button>
  );
}

const Dialog = lazy(() =>
  import('./freeze-dialog.tsx').then((module) => ({ default: module.FreezeDialog })),
);

/** Dialog of a freeze. Its code is loaded when it opens. */
export function FreezeRequest({
  scope,
  close,
}: {
  scope: FreezeScope | undefined;
  close: () => void;
}) {
  if (scope === undefined) return null;
  return (
    <Suspense>
      <Dialog appId={scope} close={close} />
    </Suspense>
  );
}
