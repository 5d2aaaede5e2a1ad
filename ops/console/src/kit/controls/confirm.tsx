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
  /** Name for screen readers. Needed if several buttons of a page have the same text. */
  label?: string | undefined;
  title: string;
  children: ReactNode;
  /** Text of the button that confirms. */
  action: string;
  /**
   * Number or id that must be typed to enable the confirm button: a number for actions on many
   * devices, an id if everything is deleted.
   */
  typed?: string | undefined;
  onConfirm: () => void;
  disabled?: boolean;
  /** True to disable the confirm button, for example while its text is loading. */
  isBlocked?: boolean;
  /** True if the dialog is open when the page opens, for example by a link to the action. */
  isOpenAtFirst?: boolean;
  /** Called when the dialog opens or closes. */
  onOpen?: (isOpen: boolean) => void;
  /** `primary` for the main action of a page. The default is `danger`. */
  variant?: 'danger' | 'primary';
  /** Variant of the button that opens the dialog. The default is `variant`. */
  triggerVariant?: 'danger' | 'primary' | 'plain' | 'quiet';
}

/**
 * Button for an action that cannot be undone. It opens a dialog for confirmation. The dialog
 * forgets typed text when it closes.
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
    variant = 'danger',
  } = props;
  const { isBlocked = false, isOpenAtFirst = false, onOpen, triggerVariant = variant } = props;
  const { t } = useTranslation();
  const [isOpen, setOpen] = useState(isOpenAtFirst);
  const [entered, setEntered] = useState('');
  const isNumber = typed !== undefined && /^\d+$/.test(typed);
  const given = isNumber ? entered.replaceAll(/\D/g, '') : entered.trim();
  const isReady = !isBlocked && (typed === undefined || given === typed);
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
        className={`${button.button} ${button[triggerVariant]}`}
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
              inputMode={isNumber ? 'numeric' : 'text'}
              value={entered}
              onChange={(event) => setEntered(event.target.value)}
            />
          )}
          <div className={dialog.end}>
            <AlertDialog.Close className={`${button.button} ${button.plain}`}>
              {t('action.back')}
            </AlertDialog.Close>
            <Button variant={variant} disabled={!isReady} onClick={confirm}>
              {action}
            </Button>
          </div>
        </AlertDialog.Popup>
      </AlertDialog.Portal>
    </AlertDialog.Root>
  );
}
