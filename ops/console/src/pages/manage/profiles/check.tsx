import { useTranslation } from 'react-i18next';
import type { ProfileCheck } from '../../../../../client/operations.ts';
import { type ProfileId, useProfileCheck } from '../../../api/profiles.ts';
import { Button } from '../../../kit/controls/button.tsx';
import { Badge } from '../../../kit/data/badge.tsx';
import { Marked } from '../../../kit/data/marked.tsx';
import { Reason } from '../../../kit/data/reason.tsx';
import { Panel } from '../../../kit/panel.tsx';
import { Failure } from '../../../kit/states.tsx';
import { useRemedyText } from '../../../text/explanation.ts';
import { formatDuration } from '../../../text/format.ts';
import styles from './profiles.module.css';

/** Question to the gateway whether it takes the credentials. Nothing is sent. */
export function Check({ id }: { id: ProfileId }) {
  const { t } = useTranslation();
  const check = useProfileCheck(id);
  return (
    <Panel
      title={t('profile.check')}
      side={
        <Button isBusy={check.isPending} onClick={() => check.mutate()}>
          {t('profile.checkNow')}
        </Button>
      }
    >
      <div aria-live="polite" className={styles.check}>
        {check.error ? (
          <Failure error={check.error} />
        ) : check.isPending ? (
          t('profile.checking')
        ) : check.data ? (
          <Answer answer={check.data} />
        ) : (
          <span className={styles.source}>{t('profile.checkHint')}</span>
        )}
      </div>
    </Panel>
  );
}

function Answer({ answer: { ok, gave, tookMs, sentence, meaning, remedy } }: { answer: ProfileCheck }) {
  const { t } = useTranslation();
  const remedyText = useRemedyText();
  return (
    <>
      <p>
        <Badge tone={ok ? 'good' : 'bad'}>{t(ok ? 'profileCheck.ok' : 'profileCheck.failed')}</Badge>{' '}
        {ok ? t(`profileCheck.${gave ?? 'connection'}`) : <Reason reason={sentence} meaning={meaning} />}{' '}
        <span className={styles.source}>{formatDuration(tookMs)}</span>
      </p>
      {remedy && (
        <p>
          <Marked text={remedyText(remedy)} />
        </p>
      )}
    </>
  );
}
