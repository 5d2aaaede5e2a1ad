import { useTranslation } from 'react-i18next';
import type { PushDetail } from '../../../../../api/replies/admin/types.ts';
import { Notice } from '../../kit/notice.tsx';
import { formatCount, formatTime } from '../../text/format.ts';

/** Says that a push waits for the approval of a second person, or who gave it. */
export function Approval({ push: { approval, state } }: { push: Pick<PushDetail, 'approval' | 'state'> }) {
  const { t } = useTranslation();
  if (!approval) return null;
  const { above, givenBy, givenAt } = approval;
  if (givenAt !== null) return <p>{t('push.approvedBy', { by: givenBy ?? '', at: formatTime(givenAt) })}</p>;
  if (state !== 'paused') return null;
  return <Notice look="warn">{t('push.waitsForApproval', { above: formatCount(above ?? 0) })}</Notice>;
}
