import { useTranslation } from 'react-i18next';
import type { PushDetail } from '../../../../client/operations.ts';
import { isOpenPush, usePushControl } from '../../api/push.ts';
import { useMay, useOperator } from '../../api/session.tsx';
import { Button } from '../../kit/controls/button.tsx';
import { Confirm } from '../../kit/controls/confirm.tsx';
import { Failure } from '../../kit/states.tsx';
import { formatCount } from '../../text/format.ts';
import { Approve } from './approval.tsx';
import { Pace } from './pace.tsx';
import { Undo, useUndoMs } from './undo.tsx';

/** Buttons that stop a push: pause at once, cancel after a question, undo in the seconds before it begins. */
export function Controls({ appId, push }: { appId: string; push: PushDetail }) {
  const { t } = useTranslation();
  const control = usePushControl(appId, push.objectId);
  const { name } = useOperator();
  const isOwn = name === push.createdBy;
  const isOwner = useMay('owner');
  const mayApprove = useMay('operator') && (isOwner || name !== push.approval?.firstBy);
  const mayControl = useMay(isOwn ? 'sender' : 'operator');
  const undoMs = useUndoMs(push);
  if (!isOpenPush(push) || !mayControl) return null;
  if (undoMs !== undefined)
    return (
      <>
        {control.error && <Failure error={control.error} />}
        <Undo leftMs={undoMs} isBusy={control.isPending} undo={() => control.mutate('cancel')} />
      </>
    );
  const isWaiting = push.approval !== null && push.approval.givenAt === null;
  const next = isWaiting ? 'approve' : push.state === 'paused' ? 'resume' : 'pause';
  return (
    <>
      {control.error && <Failure error={control.error} />}
      {next !== 'approve' ? (
        <Button isBusy={control.isPending} onClick={() => control.mutate(next)}>
          {t(`push.${next}`)}
        </Button>
      ) : (
        mayApprove &&
        !isOwn && (
          <Approve
            appId={appId}
            push={push}
            isBusy={control.isPending}
            approve={() => control.mutate('approve')}
          />
        )
      )}
      <Pace appId={appId} push={push} />
      <Confirm
        trigger={t('push.cancel')}
        title={t('push.cancelTitle')}
        action={t('push.cancelNow')}
        disabled={control.isPending}
        onConfirm={() => control.mutate('cancel')}
      >
        {t('push.cancelText', { devices: formatCount(push.devices) })}
      </Confirm>
    </>
  );
}
