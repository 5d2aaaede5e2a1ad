import { useNavigate } from '@tanstack/react-router';
import { type FormEvent, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useDeviceChange, useTestPush } from '../../api/devices.ts';
import { useMay } from '../../api/session.tsx';
import { Button } from '../../kit/controls/button.tsx';
import { Confirm } from '../../kit/controls/confirm.tsx';
import { TextField } from '../../kit/controls/field.tsx';
import { Panel } from '../../kit/panel.tsx';
import { Failure } from '../../kit/states.tsx';
import { ComposeLink } from './bulk.tsx';
import styles from './devices.module.css';

interface OfDevice {
  appId: string;
  deviceId: string;
}

/** Buttons of a device: compose a push to it, delete it. */
export function DeviceActions({ appId, deviceId }: OfDevice) {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const { remove } = useDeviceChange(appId, deviceId);
  const mayChange = useMay('operator');
  return (
    <>
      {remove.error && <Failure error={remove.error} />}
      <ComposeLink
        appId={appId}
        where={JSON.stringify({ objectId: deviceId })}
        label={t('device.pushTo')}
      />
      {mayChange && (
        <Confirm
          trigger={t('device.delete')}
          title={t('device.deleteTitle')}
          action={t('device.deleteNow')}
          disabled={remove.isPending}
          onConfirm={() =>
            remove.mutate(undefined, {
              onSuccess: () => void navigate({ to: '/apps/$appId/devices', params: { appId } }),
            })
          }
        >
          {t('device.deleteText')}
        </Confirm>
      )}
    </>
  );
}

/** Form that sends a test message to one device. */
export function TestPush({ appId, deviceId }: OfDevice) {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const [text, setText] = useState(t('device.testText'));
  const send = useTestPush(appId);
  const maySend = useMay('sender');
  if (!maySend) return null;
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    send.mutate(
      { deviceId, text },
      {
        onSuccess: ({ objectId }) =>
          void navigate({ to: '/apps/$appId/pushes/$pushId', params: { appId, pushId: objectId } }),
      },
    );
  };
  return (
    <Panel title={t('device.test')}>
      <form className={styles.test} onSubmit={onSubmit}>
        <TextField
          isCompact
          required
          label={t('device.testLabel')}
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
        <Button type="submit" isBusy={send.isPending}>
          {t('device.sendTest')}
        </Button>
      </form>
      {send.error && <Failure error={send.error} />}
    </Panel>
  );
}
