import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useFreeze, useFreezes } from '../../api/operating.ts';
import { Confirm } from '../../kit/controls/confirm.tsx';
import { TextField } from '../../kit/controls/field.tsx';
import { Panel } from '../../kit/panel.tsx';
import { Failure } from '../../kit/states.tsx';
import styles from './operating.module.css';

const maxReason = 200;

/** Freezes an app, or the service (null); a freeze that exists is released in the notice above every page. */
export function FreezePanel({ appId }: { appId: string | null }) {
  const { t } = useTranslation();
  const [reason, setReason] = useState('');
  const freezes = useFreezes();
  const freeze = useFreeze(appId);
  const isFrozen = freezes.data?.results.some((one) => one.appId === appId) ?? false;
  const scope = appId === null ? 'Service' : 'App';
  const act = t(`freeze.freeze${scope}`);
  return (
    <Panel title={t('freeze.title')}>
      <p>{isFrozen ? t('freeze.isFrozen') : t(`freeze.about${scope}`)}</p>
      {!isFrozen && (
        <div className={styles.freeze}>
          <TextField
            label={t('freeze.reason')}
            value={reason}
            maxLength={maxReason}
            onChange={(event) => setReason(event.target.value)}
          />
          <Confirm trigger={act} title={act} action={act} onConfirm={() => freeze.mutate(reason)}>
            <p>{t(`freeze.confirm${scope}`)}</p>
          </Confirm>
        </div>
      )}
      {freeze.error && <Failure error={freeze.error} />}
    </Panel>
  );
}
