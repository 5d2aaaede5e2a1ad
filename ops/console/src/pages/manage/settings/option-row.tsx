import { useTranslation } from 'react-i18next';
import type { SchemaField } from '../../../kit/form/schema.ts';
import { SchemaControl } from '../../../kit/form/schema-control.tsx';
import { textOf } from '../../../kit/form/values.ts';
import { formatCount } from '../../../text/format.ts';
import styles from './settings.module.css';
import { useShownValue } from './shown-value.ts';

interface OptionRowProps {
  field: SchemaField;
  text: string;
  current: unknown;
  usual: unknown;
  /** Absent for a role that may not change options. */
  change: ((text: string) => void) | undefined;
}

/** One option: what it does, its default and limit, and its value. */
export function OptionRow({ field, text, current, usual, change }: OptionRowProps) {
  const { t } = useTranslation();
  const shown = useShownValue();
  const isChanged = text !== textOf(field, current);
  const limit = limitOf(field, t);
  return (
    <div className={`${styles.option} ${isChanged ? styles.changed : ''}`}>
      <div>
        <code>{field.name}</code>
        <p className={styles.meaning}>{t(`option.${field.name}`, { defaultValue: '' })}</p>
      </div>
      <div className={styles.control}>
        {change ? (
          <SchemaControl field={field} label={field.name} isCompact text={text} change={change} />
        ) : (
          <span>{shown(current)}</span>
        )}
        <p className={styles.note}>
          {t('settings.default', { value: shown(usual) })}
          {limit && ` · ${limit}`}
        </p>
      </div>
    </div>
  );
}

function limitOf({ minimum, maximum }: SchemaField, t: ReturnType<typeof useTranslation>['t']) {
  if (minimum === undefined || maximum === undefined) return undefined;
  return t('settings.limit', { min: formatCount(minimum), max: formatCount(maximum) });
}
