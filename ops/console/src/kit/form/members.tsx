import type { UseMutationResult } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { parseExactly } from '../../../../../shared/domain/exact-numbers.ts';
import { Button } from '../controls/button.tsx';
import { TextArea } from '../controls/field.tsx';
import { JsonPanel, Panel } from '../panel.tsx';
import { Failure } from '../states.tsx';
import styles from './form.module.css';
import { isObject } from './schema.ts';
import { changesOf, editableOf } from './values.ts';

interface MembersProps {
  /** Document as it is stored. */
  document: Record<string, unknown>;
  /** Writes the changed members. */
  update: UseMutationResult<unknown, unknown, object>;
}

/** Members of a document as JSON, optionally editable. */
export function Members({ document, update, mayChange }: MembersProps & { mayChange: boolean }) {
  const { t } = useTranslation();
  const [isOpen, setOpen] = useState(false);
  if (isOpen)
    return <EditMembers document={document} update={update} close={() => setOpen(false)} />;
  return (
    <JsonPanel
      title={t('device.members')}
      value={document}
      side={mayChange && <Button onClick={() => setOpen(true)}>{t('edit.title')}</Button>}
    />
  );
}

/** Form for the members. Only changed members are written. */
function EditMembers({ document, update, close }: MembersProps & { close: () => void }) {
  const { t } = useTranslation();
  const { mutate, isPending, error } = update;
  const before = editableOf(document);
  const [text, setText] = useState(() => JSON.stringify(before, null, 2));
  const after = parsed(text);
  const changes = after && changesOf(before, after);
  return (
    <Panel title={t('edit.title')}>
      <div className={styles.form}>
        <TextArea
          isCode
          label={t('edit.label')}
          hint={t('edit.hint')}
          error={after ? undefined : t('form.json')}
          rows={Math.min(24, text.split('\n').length + 1)}
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
        {error !== null && <Failure error={error} />}
        <div className={styles.buttons}>
          <Button
            variant="primary"
            isBusy={isPending}
            disabled={!changes || Object.keys(changes).length === 0}
            onClick={() => changes && mutate(changes, { onSuccess: close })}
          >
            {t('settings.save')}
          </Button>
          <Button onClick={close}>{t('settings.discard')}</Button>
        </div>
      </div>
    </Panel>
  );
}

function parsed(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = parseExactly(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
