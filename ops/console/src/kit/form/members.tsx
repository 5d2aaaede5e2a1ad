import type { UseMutationResult } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { parseExactly } from '../../../../../shared/domain/exact-numbers.ts';
import { Button } from '../controls/button.tsx';
import { Choice, TextArea, TextField } from '../controls/field.tsx';
import { JsonPanel, Panel } from '../panel.tsx';
import { Failure } from '../states.tsx';
import styles from './form.module.css';
import { isObject, type SchemaField } from './schema.ts';
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

/**
 * Form for the members. Only the members that the person changed are written. The form compares with
 * the document that it began with, because a device or another person may change it while the form
 * is open.
 */
function EditMembers({ document, update, close }: MembersProps & { close: () => void }) {
  const { t } = useTranslation();
  const { mutate, isPending, error } = update;
  const [before] = useState(() => editableOf(document));
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

interface SchemaControlProps {
  field: SchemaField;
  text: string;
  change: (text: string) => void;
  label: string;
  hint?: string | undefined;
  error?: string | undefined;
  /** True to show the label only to screen readers. */
  isCompact?: boolean;
}

/** Input for a member of an object, chosen by its JSON Schema. */
export function SchemaControl({ field, text, change, ...labels }: SchemaControlProps) {
  const { t } = useTranslation();
  const common = { ...labels, required: field.isRequired };
  if (field.kind === 'boolean' || field.kind === 'choice')
    return (
      <Choice {...common} value={text} onChange={(event) => change(event.target.value)}>
        {field.kind === 'choice' && <option value="">{t('form.unset')}</option>}
        {(field.kind === 'boolean' ? ['true', 'false'] : field.choices).map((value) => (
          <option key={value} value={value}>
            {field.kind === 'boolean' ? t(value === 'true' ? 'form.on' : 'form.off') : value}
          </option>
        ))}
      </Choice>
    );
  if (field.kind === 'lines' || field.kind === 'list' || field.kind === 'json')
    return (
      <TextArea
        {...common}
        isCode
        rows={field.kind === 'list' ? 2 : 4}
        value={text}
        onChange={(event) => change(event.target.value)}
      />
    );
  return (
    <TextField
      {...common}
      type={field.kind === 'secret' ? 'password' : 'text'}
      inputMode={field.kind === 'number' ? 'numeric' : 'text'}
      autoComplete={field.kind === 'secret' ? 'new-password' : 'off'}
      spellCheck={false}
      value={text}
      onChange={(event) => change(event.target.value)}
    />
  );
}
