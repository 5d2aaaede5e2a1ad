import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { Button } from '../controls/button.tsx';
import { TextArea } from '../controls/field.tsx';
import { Panel } from '../panel.tsx';
import { Failure } from '../states.tsx';
import { changesOf, editableOf } from './changes.ts';
import styles from './form.module.css';
import { isObject } from './schema.ts';

interface EditMembersProps {
  /** Document as it is stored. */
  document: Record<string, unknown>;
  /** Writes the members that differ. */
  save: (changes: object) => void;
  isBusy: boolean;
  error: unknown;
  close: () => void;
}

/** Members of a document as JSON; only those that differ are written. */
export function EditMembers({ document, save, isBusy, error, close }: EditMembersProps) {
  const { t } = useTranslation();
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
            look="primary"
            isBusy={isBusy}
            disabled={!changes || Object.keys(changes).length === 0}
            onClick={() => changes && save(changes)}
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
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
