import { useNavigate } from '@tanstack/react-router';
import { type FormEvent, useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { PushDetail } from '../../../../client/operations.ts';
import { Button } from '../../kit/controls/button.tsx';
import { TextField } from '../../kit/controls/field.tsx';
import { JsonPanel } from '../../kit/json-panel.tsx';
import { Panel } from '../../kit/panel.tsx';
import styles from './push.module.css';

/** Condition of a push, and the search for the story of one device. */
export function Audience({ appId, push }: { appId: string; push: PushDetail }) {
  const { t } = useTranslation();
  return (
    <>
      <FindDevice appId={appId} pushId={push.objectId} />
      <JsonPanel title={t('push.condition')} value={push.request.target ?? push.where} />
    </>
  );
}

/** Field that opens the page that explains why a device did or did not get the push. */
export function FindDevice({ appId, pushId }: { appId: string; pushId: string }) {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const [device, setDevice] = useState('');
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    const installation = device.trim();
    if (installation === '') return;
    void navigate({
      to: '/apps/$appId/pushes/$pushId/devices/$installation',
      params: { appId, pushId, installation },
    });
  };
  return (
    <Panel title={t('why.find')}>
      <form className={styles.find} onSubmit={onSubmit}>
        <TextField
          type="search"
          label={t('why.device')}
          hint={t('why.deviceHint')}
          value={device}
          onChange={(event) => setDevice(event.target.value)}
        />
        <Button type="submit">{t('why.open')}</Button>
      </form>
    </Panel>
  );
}
