import { useMutation } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { newRequestId, sendPush, useSaved } from '../../../api/compose.ts';
import { withTargetKind } from '../../../draft/fields.ts';
import { type JsonRecord, printJson } from '../../../draft/json-text.ts';
import { Button } from '../../../kit/controls/button.tsx';
import { TextField } from '../../../kit/controls/field.tsx';
import { Failure } from '../../../kit/states.tsx';
import { useForm } from '../draft-field.tsx';
import styles from './saved.module.css';
import { SavedDialog } from './saved-dialog.tsx';

interface TestDevicesProps {
  appId: string;
  isBlank: boolean;
}

/** Sends the draft immediately to the test devices only, regardless of its target and time. */
export function TestDevices({ appId, isBlank }: TestDevicesProps) {
  const { t } = useTranslation();
  const { draft } = useForm();
  const { data } = useSaved(appId, 'test-devices');
  const devices = data?.results ?? [];
  const send = useMutation({
    mutationFn: () => {
      const ids = devices.map(({ installation }) => installation);
      return sendPush(appId, {
        text: printJson(toDevices(draft.body, ids)),
        requestId: newRequestId(),
      });
    },
  });
  return (
    <div className={styles.test}>
      {devices.length > 0 && (
        <Button
          isBusy={send.isPending}
          disabled={isBlank || draft.fault !== undefined}
          onClick={() => send.mutate()}
        >
          {t('saved.sendTest', { count: devices.length })}
        </Button>
      )}
      <SavedDialog
        appId={appId}
        kind="test-devices"
        trigger={t('saved.testDevices')}
        title={t('saved.testDevices')}
        empty={t('saved.noTestDevice')}
        contentOf={(form) => printJson({ installation: String(form.get('installation')).trim() })}
        fields={
          <TextField
            name="installation"
            label={t('why.device')}
            hint={t('saved.installationHint')}
            required
            autoComplete="off"
          />
        }
      />
      {send.error && <Failure error={send.error} />}
      {send.data && (
        <p role="status">
          {t('saved.testSent')}{' '}
          <Link to="/apps/$appId/pushes/$pushId" params={{ appId, pushId: send.data.objectId }}>
            {t('why.backToPush')}
          </Link>
        </p>
      )}
    </div>
  );
}

/**
 * Members that are removed for a test. A test is sent immediately and does not count as part of the
 * push.
 */
const left = new Set([
  'push_time',
  'push_time_local',
  'default_time_zone',
  'flow_control',
  'channels',
  'notification_id',
  'req_id',
]);

function toDevices(body: JsonRecord, ids: string[]): JsonRecord {
  const kept = Object.entries(withTargetKind(body, 'where')).filter(([name]) => !left.has(name));
  return { ...Object.fromEntries(kept), where: { objectId: { $in: ids } } };
}
