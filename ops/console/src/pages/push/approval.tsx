import { useTranslation } from 'react-i18next';
import type { PushDetail } from '../../../../client/operations.ts';
import { Confirm } from '../../kit/controls/confirm.tsx';
import { Facts, Notice } from '../../kit/panel.tsx';
import { formatCount, formatTime } from '../../text/format.ts';
import { Sender, titleOf } from '../pushes/shown-push.tsx';
import { useTargetCount } from './audience.tsx';

interface OfPush {
  appId: string;
  push: PushDetail;
}

/**
 * Approval of a push. For a waiting push, shows its sender, the number of devices and who may
 * approve it.
 */
export function Approval({ appId, push }: OfPush) {
  const { t } = useTranslation();
  const { approval, state } = push;
  if (!approval) return null;
  const { above, firstBy, firstAt, givenBy, givenAt, missing } = approval;
  const first = firstAt && (
    <p>{t('push.firstApprovedBy', { by: firstBy ?? '', at: formatTime(firstAt) })}</p>
  );
  if (givenAt !== null)
    return (
      <>
        {first}
        <p>{t('push.approvedBy', { by: givenBy ?? '', at: formatTime(givenAt) })}</p>
      </>
    );
  if (state !== 'paused') return first;
  return (
    <>
      {first}
      <Notice variant="warn">
        {t(missing === 2 ? 'push.needsTwo' : 'push.waitsForApproval', {
          above: formatCount(above ?? 0),
        })}
      </Notice>
      <Request appId={appId} push={push} />
    </>
  );
}

/** Information for the second person who approves the push. */
function Request({ appId, push }: OfPush) {
  const { t } = useTranslation();
  const { approval, request } = push;
  const above = formatCount(approval?.above ?? 0);
  const count = useTargetCount(appId, push, true);
  return (
    <Facts
      rows={[
        [t('push.message'), titleOf(push, t)],
        [t('push.sentBy'), <Sender key="by" push={push} />],
        [t('pushes.devices'), count ?? t('push.moreThan', { above })],
        [
          t('push.condition'),
          <code key="where">{JSON.stringify(request.target ?? push.where)}</code>,
        ],
      ]}
    />
  );
}

interface ApproveProps extends OfPush {
  isBusy: boolean;
  approve: () => void;
}

/** Button that approves a push. The confirmation shows the sender and the number of devices. */
export function Approve({ appId, push, isBusy, approve }: ApproveProps) {
  const { t } = useTranslation();
  return (
    <Confirm
      variant="primary"
      trigger={t('push.approve')}
      title={t('push.approveTitle')}
      action={t('push.approveNow')}
      disabled={isBusy}
      onConfirm={approve}
    >
      <Request appId={appId} push={push} />
    </Confirm>
  );
}
