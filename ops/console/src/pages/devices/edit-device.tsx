import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useDeviceChange } from '../../api/manage/device-changes.ts';
import { Button } from '../../kit/controls/button.tsx';
import { TextArea } from '../../kit/controls/field.tsx';
import { isObject } from '../../kit/form/schema.ts';
import { Panel } from '../../kit/panel.tsx';
import { Failure } from '../../kit/states.tsx';
import styles from './devices.module.css';
import { changesOf, editableOf } from './edited.ts';

interface EditDeviceProps {
  appId: string;
  deviceId: string;
  installation: Record<string, unknown>;
  close: () => void;
}

/** Members of a device as JSON; only those that differ are written. */
export function EditDevice({ appId, deviceId, installation, close }: EditDeviceProps) {
  const { t } = useTranslation();
  const before = editableOf(installation);
  const [text, setText] = useState(() => JSON.stringify(before, null, 2));
  const { update } = useDeviceChange(appId, deviceId);
  const after = parsed(text);
  const changes = after && changesOf(before, after);
  return (
    <Panel title={t('device.edit')}>
      <div className={styles.edit}>
        <TextArea
          isCode
          label={t('device.editLabel')}
          hint={t('device.editHint')}
          error={after ? undefined : t('devices.badWhere')}
          rows={Math.min(24, text.split('\n').length + 1)}
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
        {update.error && <Failure error={update.error} />}
        <div className={styles.buttons}>
          <Button
            look="primary"
            isBusy={update.isPending}
            disabled={!changes || Object.keys(changes).length === 0}
            onClick={() => changes && update.mutate(changes, { onSuccess: close })}
          >
            {t('settings.save')}
          </Button>
          <Button onClick={close}>{t('settings.discard')}</Button>
        </div>
      </div>
    </Panel>
  );
}

function parsed(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
