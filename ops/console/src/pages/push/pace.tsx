import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { PushDetail } from '../../../../client/operations.ts';
import { usePace } from '../../api/push.ts';
import { Confirm } from '../../kit/controls/confirm.tsx';
import { TextField } from '../../kit/controls/field.tsx';
import { Failure } from '../../kit/states.tsx';
import { formatCount } from '../../text/format.ts';

/** Button that changes the recipients per second of a push that is not done. */
export function Pace({ appId, push }: { appId: string; push: PushDetail }) {
  const { t } = useTranslation();
  const { objectId, flowControl } = push;
  const [typed, setTyped] = useState<string>();
  const draft = typed ?? (flowControl === null ? '' : String(flowControl));
  const pace = usePace(appId, objectId, () => setTyped(undefined));
  const change = () => {
    const digits = draft.replaceAll(/\D/g, '');
    pace.mutate(digits === '' ? null : Number(digits));
  };
  const now = flowControl === null ? t('push.unlimited') : t('push.pace', { rate: formatCount(flowControl) });
  return (
    <>
      {pace.error && <Failure error={pace.error} />}
      <Confirm
        look="primary"
        triggerLook="plain"
        trigger={t('push.changePace')}
        title={t('push.changePace')}
        action={t('push.changePaceNow')}
        disabled={pace.isPending}
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
