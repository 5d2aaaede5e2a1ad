import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { ShownApp } from '../../../../../client/operations.ts';
import { type KeyName, useAppKey, useKeyRotation } from '../../../api/apps.ts';
import { useMay } from '../../../api/session.tsx';
import { Button } from '../../../kit/controls/button.tsx';
import { Confirm } from '../../../kit/controls/confirm.tsx';
import { Copy } from '../../../kit/controls/copy.tsx';
import { Choice } from '../../../kit/controls/field.tsx';
import { Time } from '../../../kit/data/values.tsx';
import { Facts, Panel } from '../../../kit/panel.tsx';
import { Failure } from '../../../kit/states.tsx';
import { formatDuration } from '../../../text/format.ts';
import styles from './settings.module.css';

const keys = ['appKey', 'masterKey', 'hookKey'] as const;
/** Id of an app, and its keys. The keys are shown only to owners and after a click. */
export function Keys({ app }: { app: ShownApp }) {
  const { t } = useTranslation();
  const isOwner = useMay('owner');
  return (
    <Panel title={t('settings.identity')}>
      <Facts
        rows={[
          [t('apps.name'), app.name],
          [t('apps.id'), <code key="id">{app.appId}</code>],
          [t('apps.plan'), t(`plan.${app.plan}`)],
          [t('settings.edition'), t(`edition.${app.edition}`)],
          ...(isOwner ? keys : []).map(
            (key) => [t(`key.${key}`), <Key key={key} appId={app.appId} name={key} />] as const,
          ),
        ]}
      />
    </Panel>
  );
}

function Key({ appId, name }: { appId: string; name: KeyName }) {
  const { t } = useTranslation();
  const [isShown, setShown] = useState(false);
  const { data, error } = useAppKey(appId, name, isShown);
  const value = isShown ? data?.value : undefined;
  return (
    <span className={styles.key}>
      <code>{value ?? '••••••••••••••••'}</code>
      <Button
        variant="quiet"
        aria-label={t(isShown ? 'key.hide' : 'key.show', { name: t(`key.${name}`) })}
        onClick={() => setShown(!isShown)}
      >
        {t(isShown ? 'action.hide' : 'action.show')}
      </Button>
      {value !== undefined && <Copy text={value} />}
      {isShown && error && <Failure error={error} />}
      <Rotate appId={appId} name={name} />
    </span>
  );
}

const hour = 3600;
/** Times in seconds for which the old key may stay valid. */
const graces = [0, hour, 24 * hour, 7 * 24 * hour] as const;

/**
 * Replaces a key after a confirmation. Devices and servers with the old key need time to switch.
 */
function Rotate({ appId, name }: { appId: string; name: KeyName }) {
  const { t } = useTranslation();
  const [graceSeconds, setGrace] = useState<number>(hour);
  const rotation = useKeyRotation(appId);
  const keyName = t(`key.${name}`);
  return (
    <>
      <Confirm
        trigger={t('key.replace')}
        label={t('key.replaceOf', { name: keyName })}
        title={t('key.replaceTitle', { name: keyName })}
        action={t('key.replaceNow')}
        disabled={rotation.isPending}
        onConfirm={() => rotation.mutate({ key: name, graceSeconds })}
      >
        <p>{t('key.replaceText')}</p>
        <Choice
          label={t('key.grace')}
          value={graceSeconds}
          onChange={(event) => setGrace(Number(event.target.value))}
        >
          {graces.map((seconds) => (
            <option key={seconds} value={seconds}>
              {seconds === 0 ? t('key.noGrace') : formatDuration(seconds * 1000)}
            </option>
          ))}
        </Choice>
      </Confirm>
      <span aria-live="polite">
        {rotation.isPending && t('key.replacing')}
        {rotation.data && t('key.replaced')}{' '}
        {rotation.data?.oldValidUntil && (
          <>
            {t('key.oldUntil')} <Time at={rotation.data.oldValidUntil} />
          </>
        )}
      </span>
      {rotation.error && <Failure error={rotation.error} />}
    </>
  );
}
