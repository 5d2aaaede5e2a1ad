import { useMutation } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useRef } from 'react';
import { useTranslation } from 'react-i18next';
import { ApiError } from '../../../api/client.ts';
import { newRequestId, sendPush } from '../../../api/compose.ts';
import { Confirm } from '../../../kit/controls/confirm.tsx';
import { Failure } from '../../../kit/states.tsx';
import { formatCount } from '../../../text/format.ts';
import { type Start, startOf, useStartText } from '../delivery.tsx';
import { useForm } from '../draft-field.tsx';
import styles from './before.module.css';
import { DraftFacts } from './draft-facts.tsx';
import { type CurrentDryRun, isRefused } from './dry-run.tsx';

/** A push to more devices requires that the number is typed. */
const typedAbove = 10_000;
const undoSeconds = 10;

interface SendProps {
  appId: string;
  dryRun: CurrentDryRun;
  isUndo: boolean;
  isBlank: boolean;
  /**
   * True if a row of the condition is incomplete. The push would go to more devices than the rows
   * show.
   */
  isIncomplete: boolean;
}

/**
 * Send button with the number of devices in the dry run of the current body. It asks for
 * confirmation.
 */
export function Send({ appId, dryRun, isUndo, isBlank, isIncomplete }: SendProps) {
  const { t } = useTranslation();
  const { draft } = useForm();
  const { last, isFresh } = dryRun;
  const start = startOf(draft.body, isUndo);
  const send = useSend(appId, dryRun, start);
  const devices = last?.forecast.devices ?? 0;
  const obstacle = obstacleOf({
    dryRun,
    isBlank,
    isIncomplete,
    isFaulty: draft.fault !== undefined,
  });
  const deviceCount = isFresh ? formatCount(devices) : '…';
  const startText = useStartText(start);
  return (
    <div className={styles.send}>
      {send.error !== null && <SendFailure error={send.error} />}
      <Confirm
        variant="primary"
        trigger={t(start === 'later' ? 'compose.scheduleFor' : 'compose.sendTo', {
          count: devices,
          shown: deviceCount,
        })}
        title={t(start === 'later' ? 'compose.scheduleTitle' : 'compose.confirmTitle', {
          count: devices,
          shown: deviceCount,
        })}
        action={t(start === 'later' ? 'compose.schedule' : 'compose.send')}
        typed={devices > typedAbove ? String(devices) : undefined}
        disabled={obstacle !== undefined || send.isPending}
        onConfirm={() => send.mutate()}
      >
        <DraftFacts body={draft.body} start={[t('push.starts'), startText]} />
      </Confirm>
      {obstacle !== undefined && <p className={styles.note}>{t(`obstacle.${obstacle}`)}</p>}
    </div>
  );
}

/** Returns the reason why the push cannot be sent now, or undefined if it can. */
function obstacleOf(state: {
  dryRun: CurrentDryRun;
  isBlank: boolean;
  isIncomplete: boolean;
  isFaulty: boolean;
}): 'fault' | 'incomplete' | 'blank' | 'refused' | 'stale' | 'nobody' | undefined {
  const { isFresh, last, refusal } = state.dryRun;
  if (state.isFaulty) return 'fault';
  if (state.isIncomplete) return 'incomplete';
  if (state.isBlank) return 'blank';
  if (refusal || (isFresh && last && isRefused(last.forecast))) return 'refused';
  if (!isFresh || !last) return 'stale';
  return last.forecast.devices === 0 ? 'nobody' : undefined;
}

/** Sends the body of the dry run. Then opens the page of the push. */
function useSend(appId: string, { last, run }: CurrentDryRun, start: Start) {
  const navigate = useNavigate();
  const { draft } = useForm();
  const attempt = useRef({ text: '', requestId: '' });
  return useMutation({
    mutationFn: async () => {
      if (!last) throw new Error('there is no dry run');
      const { text, forecast } = last;
      // An attempt without a reply may have been sent. So the next attempt with the same body uses
      // the same request id.
      if (attempt.current.text !== text) attempt.current = { text, requestId: newRequestId() };
      const { requestId } = attempt.current;
      const seconds = start === 'undo' ? undoSeconds : 0;
      return sendPush(appId, { text, digest: forecast.digest, requestId, undoSeconds: seconds });
    },
    onSuccess: ({ objectId }) => {
      draft.clear();
      void navigate({ to: '/apps/$appId/pushes/$pushId', params: { appId, pushId: objectId } });
    },
    onError: (error) => {
      if (error instanceof ApiError && error.status === 409) run();
    },
  });
}

/** Failure of sending. If the audience has changed, shows its new size. */
function SendFailure({ error }: { error: unknown }) {
  const { t } = useTranslation();
  const reply = error instanceof ApiError && error.status === 409 ? error.reply : undefined;
  if (typeof reply !== 'object' || reply === null || !('devices' in reply))
    return <Failure error={error} />;
  const devices = Number(reply.devices);
  const before = 'explained' in reply && typeof reply.explained === 'number' ? reply.explained : 0;
  return (
    <p className={styles.refusal} role="alert">
      {t('compose.moved', { now: formatCount(devices), before: formatCount(before) })}
    </p>
  );
}
