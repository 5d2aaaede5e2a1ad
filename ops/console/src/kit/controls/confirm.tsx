import { AlertDialog } from '@base-ui/react/alert-dialog';
import { type ReactNode, useState } from 'react';
import { useTranslation } from 'react-i18next';
import dialog from '../dialog.module.css';
import button from './button.module.css';
import { Button } from './button.tsx';
import { TextField } from './field.tsx';

interface ConfirmProps {
  /** Text of the button that opens the dialog. */
  trigger: string;
  /** Its name for screen readers, where several of a page have the same text. */
  label?: string | undefined;
  title: string;
  children: ReactNode;
  /** Text of the button that acts. */
  action: string;
  /** Number to type before the button acts; for acts on many devices. */
  typed?: string | undefined;
  onConfirm: () => void;
  disabled?: boolean;
  /** Whether the button that acts is out of use, as while its text is being found out. */
  isBlocked?: boolean;
  /** Whether the page begins with the dialog open, as a link to the act does. */
  isOpenAtFirst?: boolean;
  /** Told when the dialog opens and closes. */
  onOpen?: (isOpen: boolean) => void;
  /** `primary` for the act that the page is for; `danger` by default. */
  look?: 'danger' | 'primary';
  /** Look of the button that opens the dialog; as `look` by default. */
  triggerLook?: 'danger' | 'primary' | 'plain';
}

/**
 * Button of an act that cannot be undone: it asks first. What was typed is forgotten when the
 * dialog closes.
 */
export function Confirm(props: ConfirmProps) {
  const {
    trigger,
    label,
    title,
    children,
    action,
    typed,
    onConfirm,
    disabled,
    look = 'danger',
  } = props;
  const { isBlocked = false, isOpenAtFirst = false, onOpen, triggerLook = look } = props;
  const { t } = useTranslation();
  const [isOpen, setOpen] = useState(isOpenAtFirst);
  const [entered, setEntered] = useState('');
  const isReady = !isBlocked && (typed === undefined || entered.replaceAll(/\D/g, '') === typed);
  const open = (next: boolean) => {
    setOpen(next);
    setEntered('');
    onOpen?.(next);
  };
  const confirm = () => {
    open(false);
    onConfirm();
  };
  return (
    <AlertDialog.Root open={isOpen} onOpenChange={open}>
      <AlertDialog.Trigger
        className={`${button.button} ${button[triggerLook]}`}
        disabled={disabled}
        aria-label={label}
      >
        {trigger}
      </AlertDialog.Trigger>
      <AlertDialog.Portal>
        <AlertDialog.Backdrop className={dialog.backdrop} />
        <AlertDialog.Popup className={`${dialog.popup} ${dialog.narrow}`}>
          <AlertDialog.Title className={dialog.title}>{title}</AlertDialog.Title>
          <AlertDialog.Description render={<div />}>{children}</AlertDialog.Description>
          {typed !== undefined && (
            <TextField
              label={t('confirm.type', { typed })}
              inputMode="numeric"
              value={entered}
              onChange={(event) => setEntered(event.target.value)}
            />
          )}
          <div className={dialog.end}>
            <AlertDialog.Close className={`${button.button} ${button.plain}`}>
              {t('action.back')}
            </AlertDialog.Close>
            <Button look={look} disabled={!isReady} onClick={confirm}>
              {action}
            </Button>
          </div>
        </AlertDialog.Popup>
      </AlertDialog.Portal>
    </AlertDialog.Root>
  );
}
