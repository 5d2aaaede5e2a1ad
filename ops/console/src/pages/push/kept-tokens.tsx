import { useTranslation } from 'react-i18next';
import type { PushDetail } from '../../../../client/operations.ts';
import { useInvalidDeletion } from '../../api/push.ts';
import { useMay } from '../../api/session.tsx';
import { Confirm } from '../../kit/controls/confirm.tsx';
import { Notice } from '../../kit/notice.tsx';
import { Failure } from '../../kit/states.tsx';
import { connectorName } from '../../text/connectors.ts';
import { formatCount } from '../../text/format.ts';

/**
 * Says that most tokens of a profile were called invalid and how many devices were kept; operators
 * delete them after a look.
 */
export function KeptTokens({ appId, push }: { appId: string; push: PushDetail }) {
  const { t } = useTranslation();
  const mayDelete = useMay('operator');
  const deletion = useInvalidDeletion(appId, push.objectId);
  if (deletion.data)
    return (
      <Notice look="plain">{t('keptTokens.deleted', { devices: formatCount(deletion.data.deleted) })}</Notice>
    );
  if (!push.keptTokens) return null;
  return (
    <>
      {push.keptTokens.map(({ connector, profile, answers, invalid, kept, reason }) => (
        <Notice key={`${connector} ${profile}`} look="warn">
          {t('keptTokens.text', {
            gateway: connectorName(connector),
            profile,
            answers: formatCount(answers),
            invalid: formatCount(invalid),
            kept: formatCount(kept),
            reason,
          })}
        </Notice>
      ))}
      {deletion.error && <Failure error={deletion.error} />}
      {mayDelete && (
        <Confirm
          trigger={t('keptTokens.delete')}
          title={t('keptTokens.title')}
          action={t('keptTokens.deleteNow')}
          disabled={deletion.isPending}
          onConfirm={() => deletion.mutate()}
        >
          {t('keptTokens.question')}
        </Confirm>
      )}
    </>
  );
}
