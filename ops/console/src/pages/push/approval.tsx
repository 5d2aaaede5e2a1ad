import { useTranslation } from 'react-i18next';
import type { PushDetail } from '../../../../../api/replies/admin/types.ts';
import { Notice } from '../../kit/notice.tsx';
import { formatCount, formatTime } from '../../text/format.ts';

/** Says who approved a push, and whose approval it still needs. */
export function Approval({ push: { approval, state } }: { push: Pick<PushDetail, 'approval' | 'state'> }) {
  const { t } = useTranslation();
  if (!approval) return null;
  const { above, firstBy, firstAt, givenBy, givenAt, missing } = approval;
  const first = firstAt && <p>{t('push.firstApprovedBy', { by: firstBy ?? '', at: formatTime(firstAt) })}</p>;
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
      <Notice look="warn">
        {t(missing === 2 ? 'push.needsTwo' : 'push.waitsForApproval', { above: formatCount(above ?? 0) })}
      </Notice>
    </>
  );
}
