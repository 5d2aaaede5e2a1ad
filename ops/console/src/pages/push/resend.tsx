import { useMutation } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import type { PushDetail } from '../../../../../api/replies/admin/types.ts';
import { appPath, call } from '../../api/client.ts';
import { isOpenPush } from '../../api/push.ts';
import { useMay } from '../../api/session.tsx';
import { Confirm } from '../../kit/controls/confirm.tsx';
import { Failure } from '../../kit/states.tsx';
import { formatCount } from '../../text/format.ts';

/** Recipients from which on their number has to be typed. */
const typedFrom = 10_000;

/** Sends a finished push again to the recipients that failed or expired. Renders nothing if all were reached. */
export function Resend({ appId, push }: { appId: string; push: PushDetail }) {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const maySend = useMay('sender');
  const resend = useMutation({
    mutationFn: () =>
      call<{ objectId: string }>(appPath(appId, 'notifications', push.objectId, 'resend'), {
        method: 'POST',
        body: { outcomes: ['failed', 'expired'] },
      }),
    onSuccess: ({ objectId }) =>
      navigate({ to: '/apps/$appId/pushes/$pushId', params: { appId, pushId: objectId } }),
  });
  const { failed = 0, expired = 0 } = push.outcomes;
  const devices = failed + expired;
  if (isOpenPush(push) || !maySend || devices === 0) return null;
  return (
    <>
      {resend.error && <Failure error={resend.error} />}
      <Confirm
        trigger={t('resend.title')}
        title={t('resend.question', { devices: formatCount(devices) })}
        action={t('resend.now')}
        typed={devices > typedFrom ? String(devices) : undefined}
        disabled={resend.isPending}
        onConfirm={() => resend.mutate()}
      >
        {t('resend.text')}
      </Confirm>
    </>
  );
}
