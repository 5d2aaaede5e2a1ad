import { type ComponentProps, useEffect, useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { ListedPush, PushDetail } from '../../../../client/operations.ts';
import { isOpenPush, usePace, usePushControl } from '../../api/push.ts';
import { useMay, useOperator } from '../../api/session.tsx';
import { Button } from '../../kit/controls/button.tsx';
import { Confirm } from '../../kit/controls/confirm.tsx';
import { TextField } from '../../kit/controls/field.tsx';
import { Facts, Notice } from '../../kit/panel.tsx';
import { Failure } from '../../kit/states.tsx';
import { formatCount, formatTime } from '../../text/format.ts';
import { PushAudience } from '../pushes/shown-condition.tsx';
import { Sender, titleOf } from '../pushes/shown-push.tsx';
import { useTargetCount } from './audience.tsx';

/** Button that changes the recipients per second of an unfinished push. */
function Pace({ appId, push }: { appId: string; push: PushDetail }) {
  const { t } = useTranslation();
  const { objectId, flowControl } = push;
  const [typed, setTyped] = useState<string>();
  const draft = typed ?? (flowControl === null ? '' : String(flowControl));
  const pace = usePace(appId, objectId, () => setTyped(undefined));
  const digits = draft.replaceAll(/[,\s]/g, '');
  const change = () => pace.mutate(digits === '' ? null : Number(digits));
  const now =
    flowControl === null ? t('push.unlimited') : t('push.pace', { rate: formatCount(flowControl) });
  return (
    <>
      {pace.error && <Failure error={pace.error} />}
      <Confirm
        variant="primary"
        triggerVariant="plain"
        trigger={t('push.changePace')}
        title={t('push.changePace')}
        action={t('push.changePaceNow')}
        disabled={pace.isPending}
        isBlocked={!/^\d*$/.test(digits)}
        onConfirm={change}
      >
        <p>{t('push.paceNow', { pace: now })}</p>
        <TextField
          label={t('compose.pace')}
          hint={t('compose.paceHint')}
          inputMode="numeric"
          value={draft}
          onChange={(event) => setTyped(event.target.value)}
        />
      </Confirm>
    </>
  );
}

/** A push that starts within this time was sent with a delay for undoing it. */
const undoMs = 60_000;
const tickMs = 250;

/**
 * Returns the time until a scheduled push starts if it is less than a minute. Otherwise, returns
 * undefined.
 */
function useUndoMs(push: PushDetail): number | undefined {
  const isScheduled = push.state === 'scheduled';
  const [nowMs, setNowMs] = useState(() => Date.now());
  const leftMs = Date.parse(push['push-time']) - nowMs;
  const isSoon = isScheduled && leftMs > 0 && leftMs < undoMs;
  useEffect(() => {
    if (!isSoon) return;
    const timer = setInterval(() => setNowMs(Date.now()), tickMs);
    return () => clearInterval(timer);
  }, [isSoon]);
  return isSoon ? leftMs : undefined;
}

/** Button that cancels a push before it starts. Shows the remaining seconds. */
function Undo({ leftMs, isBusy, undo }: { leftMs: number; isBusy: boolean; undo: () => void }) {
  const { t } = useTranslation();
  return (
    <Button variant="primary" isBusy={isBusy} onClick={undo} aria-label={t('push.undo')}>
      {t('push.undoIn', { seconds: Math.ceil(leftMs / 1000) })}
    </Button>
  );
}

/**
 * Buttons that stop a push: pause immediately, cancel after a confirmation, or undo before it
 * starts.
 */
export function Controls({ appId, push }: { appId: string; push: PushDetail }) {
  const { t } = useTranslation();
  const control = usePushControl(appId, push.objectId);
  const { name } = useOperator();
  const isOwn = name === push.createdBy;
  const { mayApprove } = useMayApprove(push);
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
        mayApprove && (
          <Approve
            appId={appId}
            push={push}
            isBusy={control.isPending}
            approve={() => control.mutate('approve')}
          />
        )
      )}
      <Pace appId={appId} push={push} />
      <Cancel push={push} control={control} />
    </>
  );
}

interface CancelProps extends Pick<ComponentProps<typeof Confirm>, 'label' | 'triggerVariant'> {
  push: Pick<ListedPush, 'devices'>;
  control: ReturnType<typeof usePushControl>;
}

/** Button that cancels a push after a confirmation. */
export function Cancel({ push, control, ...button }: CancelProps) {
  const { t } = useTranslation();
  return (
    <Confirm
      {...button}
      trigger={t('push.cancel')}
      title={t('push.cancelTitle')}
      action={t('push.cancelNow')}
      disabled={control.isPending}
      onConfirm={() => control.mutate('cancel')}
    >
      {t('push.cancelText', { devices: formatCount(push.devices) })}
    </Confirm>
  );
}

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

/**
 * Returns whether the person may approve a push, which needs a second person, and whether the
 * person may reject it.
 */
export function useMayApprove(push: PushDetail | undefined) {
  const { name } = useOperator();
  const isOwner = useMay('owner');
  const mayStopAll = useMay('operator');
  const maySend = useMay('sender');
  const isOwn = name === push?.createdBy;
  return {
    mayApprove: mayStopAll && !isOwn && (isOwner || name !== push?.approval?.firstBy),
    mayReject: mayStopAll || (maySend && isOwn),
  };
}

/** Information for the second person who approves the push. */
export function Request({ appId, push }: OfPush) {
  const { t } = useTranslation();
  const { approval } = push;
  const above = formatCount(approval?.above ?? 0);
  const count = useTargetCount(appId, push, true);
  return (
    <Facts
      rows={[
        [t('push.message'), titleOf(push, t)],
        [t('push.sentBy'), <Sender key="by" push={push} />],
        [t('pushes.devices'), count ?? t('push.moreThan', { above })],
        [t('compose.to'), <PushAudience key="where" appId={appId} push={push} />],
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
