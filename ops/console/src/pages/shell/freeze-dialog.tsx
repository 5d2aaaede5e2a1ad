import { AlertDialog } from '@base-ui/react/alert-dialog';
import { type FormEvent, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useFreeze } from '../../api/operating.ts';
import { Button, buttonClass } from '../../kit/controls/button.tsx';
import { TextField } from '../../kit/controls/field.tsx';
import dialog from '../../kit/dialog.module.css';
import { Failure } from '../../kit/states.tsx';

interface FreezeDialogProps {
  /** App to freeze. Null for the whole service. */
  appId: string | null;
  close: () => void;
}

const maxReason = 200;

/** Asks for a reason, and freezes an app or the whole service. */
export function FreezeDialog({ appId, close }: FreezeDialogProps) {
  const { t } = useTranslation();
  const [reason, setReason] = useState('');
  const freeze = useFreeze(appId);
  const scope = appId === null ? 'Service' : 'App';
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    freeze.mutate(reason, { onSuccess: close });
  };
  return (
    <AlertDialog.Root open onOpenChange={(isOpen) => !isOpen && close()}>
      <AlertDialog.Portal>
        <AlertDialog.Backdrop className={dialog.backdrop} />
        <AlertDialog.Popup className={`${dialog.popup} ${dialog.narrow}`}>
          <AlertDialog.Title className={dialog.title}>
            {t(`freeze.freeze${scope}`)}
          </AlertDialog.Title>
          <AlertDialog.Description>{t(`freeze.about${scope}`)}</AlertDialog.Description>
          <form onSubmit={onSubmit}>
            <TextField
              label={t('freeze.reason')}
              value={reason}
              maxLength={maxReason}
              onChange={(event) => setReason(event.target.value)}
            />
            {freeze.error && <Failure error={freeze.error} />}
            <div className={dialog.end}>
              <AlertDialog.Close className={buttonClass('plain')}>
                {t('action.back')}
              </AlertDialog.Close>
              <Button type="submit" variant="danger" isBusy={freeze.isPending}>
                {t(`freeze.freeze${scope}`)}
              </Button>
            </div>
          </form>
        </AlertDialog.Popup>
      </AlertDialog.Portal>
    </AlertDialog.Root>
  );
}
