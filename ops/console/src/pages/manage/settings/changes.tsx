import { useTranslation } from 'react-i18next';
import type { ShownApp } from '../../../../../client/operations.ts';
import { useAppChange } from '../../../api/apps.ts';
import { Button } from '../../../kit/controls/button.tsx';
import { type Column, Table } from '../../../kit/data/table.tsx';
import type { SchemaField } from '../../../kit/form/schema.ts';
import { type Draft, objectOf, textOf } from '../../../kit/form/values.ts';
import { Panel } from '../../../kit/panel.tsx';
import { Failure } from '../../../kit/states.tsx';
import { formatCount } from '../../../text/format.ts';
import styles from './settings.module.css';

const maxCharacters = 80;

/** Returns a function that formats the value of an option as a short text. */
export function useValueText(): (value: unknown) => string {
  const { t } = useTranslation();
  return (value) => {
    if (value === true) return t('form.on');
    if (value === false) return t('form.off');
    if (value === undefined || value === null) return t('form.unset');
    if (typeof value === 'number') return formatCount(value);
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    if (text === '{}') return t('form.unset');
    return text.length > maxCharacters ? `${text.slice(0, maxCharacters)}…` : text;
  };
}

interface ChangesProps {
  app: ShownApp;
  fields: SchemaField[];
  draft: Draft;
  /** Removes the texts of a draft that were not changed since. */
  clear: (saved: Draft) => void;
}

interface Change {
  name: string;
  before: unknown;
  after: unknown;
  fault: string | undefined;
}

/** Unsaved changes of the options, with old and new values. Hidden without changes. */
export function Changes({ app, fields, draft, clear }: ChangesProps) {
  const { t } = useTranslation();
  const valueText = useValueText();
  const patch = useAppChange(app.appId);
  const current: Record<string, unknown> = { ...app.options };
  const changed = fields.filter(
    (field) =>
      draft[field.name] !== undefined && draft[field.name] !== textOf(field, current[field.name]),
  );
  // An option cannot be removed. So an empty text is an error unless the option accepts null.
  const strict = changed.map((field) => ({ ...field, isRequired: !field.isNullable }));
  const { object, faults } = objectOf(strict, draft);
  const rows: Change[] = changed.map(({ name }) => {
    const fault = faults[name];
    const before = current[name];
    return { name, before, after: object[name], fault: fault && t(`form.${fault}`) };
  });
  if (rows.length === 0)
    return (
      <p aria-live="polite" className={styles.saved}>
        {patch.isSuccess && t('settings.saved')}
      </p>
    );
  const columns: Column<Change>[] = [
    {
      key: 'name',
      title: t('settings.option'),
      cell: ({ name }) => t(`optionName.${name}`, { defaultValue: name }),
    },
    {
      key: 'before',
      title: t('settings.before'),
      cell: ({ before }) => <del>{valueText(before)}</del>,
    },
    {
      key: 'after',
      title: t('settings.after'),
      isWide: true,
      cell: ({ after, fault }) => fault ?? <ins>{valueText(after)}</ins>,
    },
  ];
  const save = () => patch.mutate({ options: object }, { onSuccess: () => clear(draft) });
  return (
    <div className={styles.changes}>
      <Panel title={t('settings.changes')}>
        <Table
          label={t('settings.changes')}
          columns={columns}
          rows={rows}
          keyOf={({ name }) => name}
        />
        {patch.error && <Failure error={patch.error} />}
        <div className={styles.buttons}>
          <Button
            variant="primary"
            isBusy={patch.isPending}
            disabled={Object.keys(faults).length > 0}
            onClick={save}
          >
            {t('settings.save')}
          </Button>
          <Button onClick={() => clear(draft)}>{t('settings.discard')}</Button>
        </div>
      </Panel>
    </div>
  );
}
