import { useTranslation } from 'react-i18next';
import { Choice, TextArea, TextField } from '../controls/field.tsx';
import type { SchemaField } from './schema.ts';

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
